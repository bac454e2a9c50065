"""A sealed challenge: what is published, what stays sealed, and what an entry is told."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from math import factorial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bench.cli import main
from bench.exchange.challenge import (
    ABOUT,
    ABOVE,
    ANSWERS,
    CHANCE,
    COLUMNS,
    ENTRIES,
    MATCHES,
    STATE,
    About,
    Entry,
    Made,
    Order,
    Score,
    Scored,
    by_luck,
    make,
    scheme_of,
    score,
)
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.randomness import Secret

CLOSES = date(2030, 1, 1)
ROWS, KNOWN, FILMS = 60, 6, 36
SECRET = Secret.of_seed(1, "challenge")
NAMES = ("dauntless", "mosaic", "dauntless-2")


def _order(folder: Path, *methods: str) -> Order:
    chosen = [configure("methods", method, "smoke") for method in methods]
    return Order(chosen, folder / "out", folder / "sealed", CLOSES, data="synth-cxr", side=32, preset="smoke",
                 rows=ROWS, known=KNOWN, films=FILMS, entries=4)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Order, Made]:
    order = _order(tmp_path_factory.mktemp("challenge"), "dauntless", "mosaic", "dauntless")
    return order, make(order, SECRET)


@pytest.fixture
def sealed(made: tuple[Order, Made], tmp_path: Path) -> Path:
    """A sealed folder of the test's own: scores leave traces in it."""
    for name in (ANSWERS, ABOUT):
        (tmp_path / "sealed").mkdir(exist_ok=True)
        (tmp_path / "sealed" / name).write_bytes((made[0].sealed / name).read_bytes())
    return tmp_path / "sealed"


@pytest.fixture(scope="module")
def answers(made: tuple[Order, Made]) -> Mapping[str, torch.Tensor]:
    return load_file(made[0].sealed / ANSWERS)


def _write(folder: Path, rows: list[tuple[object, ...]], **arrays: np.ndarray) -> Path:
    folder.mkdir()
    with (folder / MATCHES).open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    for name, values in arrays.items():
        (folder / "dauntless").mkdir(exist_ok=True)
        np.save(folder / "dauntless" / f"{name}.npy", values)
    return folder


def _cell(found: Score, task: str, scheme: str = "dauntless") -> Scored:
    return next(each for each in found.tasks if (each.scheme, each.task) == (scheme, task))


def _right(answers: Mapping[str, torch.Tensor], task: str) -> list[tuple[object, ...]]:
    return [("dauntless", task, row, int(raw)) for row, raw in enumerate(answers[f"dauntless/{task}"])]


def test_the_folder_holds_what_its_hashes_say_and_no_answer(
    made: tuple[Order, Made], answers: Mapping[str, torch.Tensor]
) -> None:
    order, told = made
    listed = dict(line.split("  ")[::-1] for line in (order.out / "SHA256SUMS").read_text().splitlines())
    files = {str(path.relative_to(order.out)): path for path in order.out.rglob("*") if path.is_file()}
    assert {*listed, "SHA256SUMS"} == set(files)
    assert all(hashlib.sha256(files[name].read_bytes()).hexdigest() == digest for name, digest in listed.items())
    about = About.model_validate_json((order.out / ABOUT).read_text())
    assert about == told.about
    assert about.commitment == hashlib.sha256((order.sealed / ANSWERS).read_bytes()).hexdigest()
    assert order.sealed.stat().st_mode & 0o77 == (order.sealed / ANSWERS).stat().st_mode & 0o77 == 0
    content = b"".join(path.read_bytes() for path in files.values())
    for name, tensor in answers.items():
        assert tensor.numpy().tobytes() not in content, name


def test_released_rows_are_those_of_the_films_that_the_answers_name(
    made: tuple[Order, Made], answers: Mapping[str, torch.Tensor]
) -> None:
    folder, mosaic = made[0].out / "mosaic", made[1].about.schemes[1]
    key = scheme_of(made[0].out, mosaic, "smoke").sample_key(Secret.of_seed(0))  # it has no secret
    for task in ("known-set", "known-pairs"):
        raw = torch.from_numpy(np.load(folder / task / "raw.npy")).float() / 255
        released = torch.from_numpy(np.load(folder / task / "released.npy"))
        expected = key.query(raw).half()
        assert torch.equal(released, expected[answers[f"mosaic/{task}"]])
    known = np.loadtxt(folder / "known-pairs" / "known.csv", delimiter=",", skiprows=1, dtype=int)
    assert known.shape == (KNOWN, 2)
    assert [int(answers["mosaic/known-pairs"][row]) for row in known[:, 0]] == known[:, 1].tolist()
    unseen = torch.from_numpy(np.load(folder / "unseen" / "released.npy"))
    hidden = answers["mosaic/reconstruct"].float() / 255
    assert torch.equal(unseen, key.query(hidden).half())


def test_a_trained_network_of_known_weights_fits_in_with_its_hash_and_without_its_file(tmp_path: Path) -> None:
    kept = Path(__file__).parents[2] / "leaderboard" / "weights"
    digits = json.loads((kept / "syfer-kermany.json").read_text())["sha256"]["steps-50000"][:12]
    sizes = f"width=256,blocks=5,depth=5,weights={kept / 'syfer-kermany-50000.safetensors'},weights_sha256={digits}"
    order = replace(_order(tmp_path, f"syfer[{sizes}]"), side=64, rows=12, known=2, films=4)
    (scheme,) = make(order, SECRET).about.schemes
    assert f"weights=WEIGHTS,weights_sha256={digits}" in scheme.method
    assert scheme.with_key == 1
    rules = (order.out / "README.md").read_text()
    assert f"--method '{scheme.method}'" in rules
    assert "A word in capitals stands for the full path" in rules
    assert "--preset smoke --size 64 \\\n  --rows 12 --known 2 --films 4" in rules
    assert not [path for path in order.out.rglob("*") if path.is_file() and str(kept).encode() in path.read_bytes()]
    assert (order.out / "syfer" / STATE).stat().st_size < 14_000_000  # as short as the file of weights
    secret = Secret.load(load_file(order.sealed / ANSWERS)["secret"])
    unseen = secret.derive("scheme", "syfer").derive("unseen")
    key = scheme_of(order.out, scheme, "smoke").sample_key(unseen.derive("key"))
    films = torch.from_numpy(np.load(order.out / "syfer" / "unseen" / "films.npy")).float() / 255
    assert torch.equal(key.query(films).half(), load_file(order.sealed / ANSWERS)["syfer/encode"])


def test_people_stand_in_one_release_and_follow_the_secret(made: tuple[Order, Made], tmp_path: Path) -> None:
    out = made[0].out
    films = [np.load(path) for path in sorted(out.glob("*/*/*.npy")) if path.name in ("raw.npy", "films.npy")]
    rows = np.concatenate(films).reshape(-1, 32 * 32)
    assert len(np.unique(rows, axis=0)) == len(rows)
    again, other = (_order(tmp_path / name, "mosaic") for name in ("again", "other"))
    for order, secret in ((again, SECRET), (other, Secret.of_seed(2, "challenge"))):
        make(order, secret)
    made_again, made_other = (np.load(order.out / "mosaic" / "known-set" / "raw.npy") for order in (again, other))
    assert not np.array_equal(made_again, made_other)
    twice = replace(again, out=tmp_path / "twice", sealed=tmp_path / "twice-sealed")
    assert make(twice, SECRET).about.commitment == About.model_validate_json((again.out / ABOUT).read_text()).commitment


def test_two_schemes_of_a_method_have_keys_of_their_own(answers: Mapping[str, torch.Tensor]) -> None:
    assert {name.partition("/")[0] for name in answers} == {*NAMES, "secret"}
    assert not torch.equal(answers["dauntless/known-set"], answers["dauntless-2/known-set"])


def test_right_answers_reach_the_highest_band_and_the_key_encodes(
    made: tuple[Order, Made], sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path
) -> None:
    rows = _right(answers, "known-set") + _right(answers, "known-pairs")
    entry = _write(
        tmp_path / "entry", rows, encodings=answers["dauntless/encode"].numpy(),
        reconstructions=(answers["dauntless/reconstruct"].numpy() / 400 + 0.1).astype("float32"),
    )  # fmt: skip
    before = score(entry, sealed)
    tasks = ("known-set", "known-pairs", "encode", "reconstruct")
    assert [_cell(before, task).band for task in tasks] == ["above 20 %"] * 4
    assert all(each.right is each.low is each.p is each.rows is None for each in before.tasks)
    assert _cell(before, "known-set", "mosaic").band == ""
    assert _cell(before, "known-pairs").asked == ROWS - KNOWN
    after = score(entry, sealed, final=True, today=CLOSES)
    for task in tasks:
        cell = _cell(after, task)
        assert cell.right == cell.rows == cell.asked - cell.asked // 3
        assert cell.low is not None
        assert 0.2 < cell.low < 1
    assert made[1].about.schemes[0].with_key == 1
    similarity = _cell(after, "reconstruct").similarity
    assert similarity is not None
    assert similarity[0] > similarity[1]


def test_one_right_row_among_guesses_is_chance(
    sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path
) -> None:
    truth = answers["dauntless/known-set"]
    for row in range(3):
        guess = torch.from_numpy(np.random.default_rng(row).permutation(ROWS))
        guess[row] = truth[row]
        rows = [("dauntless", "known-set", at, int(raw)) for at, raw in enumerate(guess)]
        entry = _write(tmp_path / f"entry-{row}", rows)
        assert _cell(score(entry, sealed), "known-set").band == CHANCE
    lone = _write(tmp_path / "lone", _right(answers, "known-set")[:1])
    assert _cell(score(lone, sealed), "known-set").band == CHANCE
    ended = _cell(score(lone, sealed, final=True, today=CLOSES), "known-set")
    assert (ended.band, ended.answered) == (CHANCE, 1)
    assert ended.rows == ROWS - ROWS // 3  # rows without an answer count as wrong


def test_before_the_end_other_rows_count_for_each_entry_and_none_that_count_in_the_end(
    sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "bench.exchange.challenge.by_luck", lambda right, rows, among: seen.append((right, rows)) or 1.0
    )
    right = _right(answers, "known-set")
    final = _write(tmp_path / "final", right)
    counted: list[set[int]] = []
    for entry in range(2):  # which rows count is asked of entries that are right in one row
        for row in range(ROWS):
            one = [("dauntless", "known-set", row, right[row][3]), ("dauntless", "known-pairs", entry, 0)]
            _write(tmp_path / f"{entry}-{row}", one)  # type: ignore[arg-type]
    from bench.exchange import challenge

    monkeypatch.setattr(challenge, "_enter", lambda sealed, about, digest: 1)
    fixed = {"value": ""}
    monkeypatch.setattr(challenge.Entry, "digest_of", lambda entry, cell: fixed["value"])  # which decides on the rows
    for entry in range(2):
        fixed["value"] = f"hash {entry}"
        found = set()
        for row in range(ROWS):
            seen.clear()
            score(tmp_path / f"{entry}-{row}", sealed)
            found |= {row} if seen[0][0] else set()
        counted.append(found)
    assert [len(each) for each in counted] == [ROWS // 6] * 2
    assert counted[0] != counted[1]
    for row in range(ROWS):
        seen.clear()
        score(tmp_path / f"0-{row}", sealed, final=True, today=CLOSES)
        assert not (seen[0][0] and row in counted[0] | counted[1])
    seen.clear()
    score(final, sealed, final=True, today=CLOSES)
    assert seen[0] == (ROWS - ROWS // 3, ROWS - ROWS // 3)


def test_another_task_draws_no_other_rows_for_the_same_answers(tmp_path: Path) -> None:
    answers = torch.arange(ROWS)
    cell = ("dauntless", "known-set")
    one, two = (Entry({cell: answers, ("dauntless", "known-pairs"): other}, {}, "") for other in (answers, answers + 1))
    assert one.digest_of(cell) == two.digest_of(cell) != one.digest_of(("dauntless", "encode"))
    assert one.digest_of(cell) != two.digest_of(("dauntless", "known-pairs"))


def test_entries_before_the_end_are_counted_once_and_end(
    sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path
) -> None:
    entries = [_write(tmp_path / f"entry-{n}", _right(answers, "known-set")[: n + 1]) for n in range(5)]
    assert [score(entry, sealed).left for entry in (*entries[:4], entries[0])] == [3, 2, 1, 0, 0]
    with pytest.raises(UsageError, match="4 entries were scored"):
        score(entries[4], sealed)
    assert len((sealed / ENTRIES).read_text().splitlines()) == 4
    with pytest.raises(UsageError, match="full scores are given from 2030-01-01 on"):
        score(entries[4], sealed, final=True, today=date(2029, 12, 31))
    assert score(entries[4], sealed, final=True, today=CLOSES).left is None
    with pytest.raises(UsageError, match="has ended"):
        score(entries[0], sealed)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("dauntless", "known-set", 0, 60)], "line 2: expected released and raw from 0 to 59, got 0 and 60"),
        ([("dauntless", "known-set", -1, 0)], "got -1 and 0"),
        ([("dauntless", "known-set", "1.0", 0)], "got 1.0 and 0"),
        ([("dauntless", "known-set", 0, 0)] * 2, "line 3: a second answer for released row 0"),
        ([("dauntless", "encode", 0, 0)], "expected a scheme and a task of this challenge"),
        ([("syfer", "known-set", 0, 0)], "got syfer,known-set"),
        ([("dauntless", "known-set")], "line 2: expected 4 cells, scheme,task,released,raw, got 2"),
        ([("dauntless", "known-set", 0, 0, 7)], "line 2: expected 4 cells, .*, got 5"),
        ([("dauntless", "known-set", "\u0660", "\u00b2")], "got \u0660 and \u00b2"),
        ([("d\u0430untless", "known-set", 0, 0)], "expected a scheme and a task of this challenge"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    sealed: Path, tmp_path: Path, rows: list[tuple[object, ...]], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        score(_write(tmp_path / "entry", rows), sealed)
    assert not (sealed / ENTRIES).exists()


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"encodings": np.zeros((3, 1, 32, 32))}, r"expected numbers of shape \(36, 1, 32, 32\)"),
        ({"encodings": np.array([None])}, "expected an array of numbers"),
        ({"encodings": np.zeros((36, 1, 32, 32), dtype="S1")}, "expected numbers"),
        (
            {"encodings": np.zeros((36, 1, 32, 32), dtype="complex128")},
            "expected numbers of shape",
        ),
        ({"encoding": np.zeros(3)}, "got also dauntless/encoding.npy"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(
    sealed: Path, tmp_path: Path, arrays: dict[str, np.ndarray], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        score(_write(tmp_path / "entry", [], **arrays), sealed)


def test_encodings_and_films_without_a_nearest_are_not_right(sealed: Path, tmp_path: Path) -> None:
    nothing = np.full((FILMS, 1, 32, 32), np.nan, dtype="float32")
    nothing[0] = np.inf
    flat = np.ones((ROWS, 1, 32, 32), dtype="float32")
    found = score(
        _write(tmp_path / "entry", [], encodings=nothing, reconstructions=flat), sealed, final=True, today=CLOSES
    )
    assert (_cell(found, "encode").answered, _cell(found, "encode").band) == (0, "")
    assert (_cell(found, "reconstruct").right, _cell(found, "reconstruct").band) == (0, CHANCE)


def test_answers_that_were_changed_or_are_absent_are_refused(sealed: Path, tmp_path: Path) -> None:
    entry = _write(tmp_path / "entry", [("dauntless", "known-set", 0, 0)])
    content = bytearray((sealed / ANSWERS).read_bytes())
    content[-1] ^= 1
    (sealed / ANSWERS).write_bytes(content)
    with pytest.raises(UsageError, match="another SHA-256 than the challenge committed to"):
        score(entry, sealed)
    with pytest.raises(UsageError, match=r"holds no challenge\.json"):
        score(entry, tmp_path)


def test_files_that_are_no_tables_or_lead_elsewhere_are_refused(sealed: Path, tmp_path: Path) -> None:
    entry = _write(tmp_path / "entry", [])
    (entry / MATCHES).write_text(",".join(COLUMNS) + "\n" + "x" * 200_000)
    with pytest.raises(UsageError, match="no table of comma-separated values"):
        score(entry, sealed)
    (entry / MATCHES).unlink()
    (tmp_path / "private.csv").write_text("a secret,b\n")
    (entry / MATCHES).symlink_to(tmp_path / "private.csv")
    with pytest.raises(UsageError, match=r"matches\.csv is a link") as refused:
        score(entry, sealed)
    assert "secret" not in str(refused.value)
    (entry / MATCHES).unlink()
    (entry / "dauntless").mkdir()
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }"
    (entry / "dauntless" / "encodings.npy").write_bytes(header.ljust(127) + b"\n")
    with pytest.raises(UsageError, match="expected an array of numbers"):
        score(entry, sealed)
    np.savez(entry / "dauntless" / "several.npz", a=np.zeros(3))
    (entry / "dauntless" / "several.npz").rename(entry / "dauntless" / "encodings.npy")
    with pytest.raises(UsageError, match="got an archive"):
        score(entry, sealed)


def test_a_table_of_a_million_lines_is_refused_at_the_first_that_says_nothing_new(sealed: Path, tmp_path: Path) -> None:
    entry = _write(tmp_path / "entry", [])
    (entry / MATCHES).write_text(",".join(COLUMNS) + "\n" + "dauntless,known-set,0,1\n" * 1_000_000)
    with pytest.raises(UsageError, match="line 3: a second answer for released row 0"):
        score(entry, sealed)


def test_a_scheme_s_folder_that_is_a_link_is_refused(sealed: Path, tmp_path: Path) -> None:
    """Its arrays would count as not there, without a word."""
    entry = _write(tmp_path / "entry", [])
    other = _write(tmp_path / "other", [], encodings=np.zeros((FILMS, 1, 32, 32)))
    (entry / "dauntless").symlink_to(other / "dauntless")
    with pytest.raises(UsageError, match="dauntless is a link"):
        score(entry, sealed)


def test_a_table_of_a_spreadsheet_is_read(sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path) -> None:
    plain = _write(tmp_path / "plain", _right(answers, "known-set"))
    other = _write(tmp_path / "other", [])
    (other / MATCHES).write_bytes(
        b"\xef\xbb\xbf" + (plain / MATCHES).read_bytes().replace(b"dauntless", b'"dauntless"')
    )
    assert score(plain, sealed).digest == score(other, sealed).digest


def test_an_interrupted_challenge_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = _order(tmp_path, "mosaic")

    def full(path: Path, content: bytes, *, mode: int) -> None:
        if path.name == "README.md":
            raise KeyboardInterrupt
        path.write_bytes(content)

    monkeypatch.setattr("bench.exchange.challenge.write_new", full)
    with pytest.raises(KeyboardInterrupt):
        make(order, SECRET)
    assert list(tmp_path.iterdir()) == []


def test_an_entry_is_a_folder_with_something(sealed: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        score(tmp_path / "absent", sealed)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is empty"):
        score(tmp_path / "empty", sealed)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"methods": []}, "at least one --method"),
        ({"methods": ["k-same"]}, "equal rows for several people"),
        ({"methods": ["instahide"]}, "does not release a row for each image"),
        ({"known": ROWS}, "expected --known from 1 to 59"),
        ({"closes": date(2020, 1, 1)}, "expected --closes from today"),
        ({"side": 33, "methods": ["neuracrypt"]}, "neuracrypt does not apply to these films"),
        ({"data": "digits"}, "cannot draw people under a secret"),
    ],
)
def test_an_order_that_cannot_be_a_challenge_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    methods = change.pop("methods", ["mosaic"])
    order = replace(_order(tmp_path, *methods), **change)  # type: ignore[arg-type,misc]
    with pytest.raises(UsageError, match=said):
        make(order, SECRET)
    assert not order.out.exists()
    assert not order.sealed.exists()


def test_a_download_that_is_too_large_is_refused_after_the_first_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.exchange.challenge.MOST_BYTES", 2_000_000)
    stages: list[str] = []
    with pytest.raises(UsageError, match=r"at most 2 MB to download, got about 2\.1 MB: take fewer methods"):
        make(_order(tmp_path, *["mosaic"] * 4), SECRET, lambda stage, done, total: stages.append(stage))
    assert stages == ["release by mosaic"]
    assert not (tmp_path / "sealed").exists()


def test_folders_are_new_and_apart(made: tuple[Order, Made], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a new folder"):
        make(made[0], SECRET)
    with pytest.raises(UsageError, match="would lie in the one to be published"):
        make(replace(_order(tmp_path, "mosaic"), sealed=tmp_path / "out" / "sealed"), SECRET)


@pytest.mark.parametrize(("right", "rows", "among"), [(2, 3, 3), (3, 4, 6), (1, 5, 5), (2, 2, 5)])
def test_the_bound_on_luck_holds_for_every_way_to_guess(right: int, rows: int, among: int) -> None:
    from itertools import permutations

    bound = by_luck(right, rows, among)
    truths = [order[:rows] for order in permutations(range(among))]
    for guess in (tuple(range(rows)), (0,) * rows, (0, 1) * rows):
        hits = [sum(a == b for a, b in zip(guess, truth, strict=False)) for truth in truths]
        assert sum(each >= right for each in hits) / len(truths) <= bound + 1e-12
    assert by_luck(right, among, among) == pytest.approx(1 / factorial(right))


def test_bands_are_named_by_lower_bounds(sealed: Path, answers: Mapping[str, torch.Tensor], tmp_path: Path) -> None:
    truth = answers["dauntless/known-set"]
    found: dict[int, str] = {}
    for share in range(0, ROWS + 1, 2):
        guess = torch.where(torch.arange(ROWS) < share, truth, torch.roll(truth, 1))
        rows = [("dauntless", "known-set", at, int(raw)) for at, raw in enumerate(guess)]
        cell = _cell(score(_write(tmp_path / f"share-{share}", rows), sealed, final=True, today=CLOSES), "known-set")
        assert cell.right is not None
        found[cell.right] = cell.band
    assert found[0] == CHANCE
    assert list(dict.fromkeys(found[right] for right in sorted(found))) == [CHANCE, ABOVE, "above 5 %", "above 20 %"]


def test_the_example_and_the_command_line_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, sealed, entry = tmp_path / "out", tmp_path / "sealed", tmp_path / "entry"
    words = ["challenge", "make", "--method", "mosaic", "--preset", "smoke", "--rows", "12", "--known", "2"]
    words += ["--films", "6", "--size", "32", "--out", str(out), "--sealed", str(sealed)]
    assert main(words) == 0
    about = json.loads((out / ABOUT).read_text())
    printed = capsys.readouterr().out
    assert about["commitment"] in printed
    assert hashlib.sha256((out / "SHA256SUMS").read_bytes()).hexdigest() in printed
    subprocess.run([sys.executable, str(out / "example_entry.py"), str(out), str(entry)], check=True)
    assert main(["challenge", "score", str(entry), "--sealed", str(sealed)]) == 0
    text = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in text[1:5]] == [
        ["mosaic", task] for task in ("known-set", "known-pairs", "encode", "reconstruct")
    ]
    assert main(["challenge", "score", str(entry), "--sealed", str(sealed), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["left"] == 19
    assert {task["right"] for task in told["tasks"]} == {None}
    assert main(["challenge", "score", str(entry), "--sealed", str(sealed), "--final"]) == 2
    rules = (out / "README.md").read_text()
    assert about["commitment"] in rules
    assert str(tmp_path) not in rules
