"""Joined folders hold what either held: the same record once, different ones of a name only where one is preferred."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from made.results_folders import (
    CARRIED,
    SECRET,
    artefact,
    cell_of,
    files,
    folder,
    inputs,
    keep,
    one,
    restricted,
    under,
    whole,
)

from bench.cli import main
from bench.exchange.disclosed_secrets import is_under, secret_of_cell
from bench.exchange.merge import Outcomes, Prefer, merge
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import signed_json
from bench.results.records import Record, RecordError, dumps, evidence_record, picture_record, proved
from bench.results.results import Results, names_beside
from bench.results.signed_json import content_key
from bench.results.signing_key import make_pair
from leaderboard.board import rows
from leaderboard.site import build

OTHER = Secret(bytes([7] * 32))


def joined(
    into: Results, *sources: Results, prefer: Prefer | None = None, secret_of: Results | None = None
) -> Outcomes:
    return merge(sources, into, prefer=prefer, secret_of=secret_of)


def records(results: Results) -> list[Record]:
    return [record for _, record in results.records() if isinstance(record, Record)]


def test_two_folders_and_their_like_join_to_one(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a"), folder(tmp_path / "b", count=8)
    artefact(b, "schemes", inputs(one(), method="another"))
    keep(b, restricted())
    into = Results(tmp_path / "into")
    tally = joined(into, a, b)
    assert tally.count("refused") == 0
    assert files(into.root, *CARRIED) == {**files(a.root, *CARRIED), **files(b.root, *CARRIED)}
    assert into.keep_secret().root == SECRET
    assert list(into.journal.plans()) == ["synth-cxr/c0"]
    assert not list(into.problems())
    again = joined(into, a, b)
    assert again.count("copied") == 0
    assert files(into.root, *CARRIED) == {**files(a.root, *CARRIED), **files(b.root, *CARRIED)}


def test_signatures_stay(tmp_path: Path) -> None:
    key, _ = make_pair(tmp_path / "key")
    source, into = Results(tmp_path / "a"), Results(tmp_path / "into", trusted=frozenset({key.public}))
    source.keep(one(), {}, key)
    keep(source, one("unsigned"))
    joined(into, Results(source.root, trusted=into.trusted))
    assert [record.signed_by(key.public) for record in records(Results(into.root))] == [True]


def test_different_records_of_one_name_are_both_named_and_refused(tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    keep(a, whole(), one("only-a"))
    keep(b, one(seconds={"fit": 2.5}, created="2025-03-01T00:00:00+00:00"))
    tally = joined(into, a, b)
    assert tally.summary("refused") == "1 record"
    (why,) = tally.reasons("refused")
    assert str(a.root) in why
    assert str(b.root) in why
    assert "under the same key" in why
    assert [record.cell for record in records(into)] == ["synth-cxr/only-a"]


@pytest.mark.parametrize(("prefer", "fit"), [("newest", 2.5), ("first", 1.5)])
def test_one_of_different_records_can_be_preferred(prefer: Prefer, fit: float, tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    keep(a, whole())
    keep(b, one(seconds={"fit": 2.5}, created="2025-03-01T00:00:00+00:00"))
    for _ in range(2):  # again changes nothing
        assert joined(into, a, b, prefer=prefer).count("refused") == 0
        (kept,) = records(into)
        assert kept.seconds["fit"] == fit
    assert bool(list(into.root.rglob("*.png"))) is (prefer == "first")  # what belongs to the other goes


def test_equally_new_records_are_refused(tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    keep(a, one())
    keep(b, one(seconds={"fit": 2.5}))
    assert "none is the newest" in joined(into, a, b, prefer="newest").reasons("refused")[0]
    keep(b, one(seconds={"fit": 2.5}, created="yesterday"))
    assert "no time of the past" in joined(into, a, b, prefer="newest").reasons("refused")[0]


def test_what_is_there_and_refused_is_not_overwritten(tmp_path: Path) -> None:
    a, into = Results(tmp_path / "a"), Results(tmp_path / "into")
    keep(a, one())
    place = into.root / "cells/synth-cxr/a/utility.json"
    place.parent.mkdir(parents=True)
    place.write_text("precious")
    assert "take it out" in joined(into, a, prefer="newest").reasons("refused")[0]
    assert place.read_text() == "precious"


def test_folders_of_two_run_secrets_join_and_each_cell_keeps_its_own(tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    for results, secret, name, seed in ((a, SECRET, "a", 0), (b, OTHER, "b", 1)):
        keep(results, under(one(name, seed=seed), secret))
        results.keep_secret(secret)
    tally = joined(into, a, b, secret_of=b)
    assert into.keep_secret().root == OTHER
    assert tally.notes[0].endswith(f"the run secret of {b.root}")
    assert tally.notes[1:] == []
    for name, secret, seed in (("a", SECRET, 0), ("b", OTHER, 1)):
        made = into.record(f"synth-cxr/{name}", "utility")
        assert secret_of_cell(into, made) == cell_of(one(name, seed=seed), secret)
        assert is_under(into, made)
    assert not list(into.problems())
    assert len(rows(records(into))) == 2
    assert build(into, into.root / "site").is_file()
    with pytest.raises(UsageError, match="another run secret"):
        joined(into, a, b, secret_of=a)
    assert main(["leaderboard", "verify", "--results", str(into.root)]) == 0


def test_records_whose_secret_did_not_come_along_are_named(tmp_path: Path) -> None:
    a, into = Results(tmp_path / "a"), Results(tmp_path / "into")
    keep(a, under(one("a"), SECRET))
    assert joined(into, a).notes[0].startswith("1 records were made under secrets that are not in")


def test_a_secret_that_all_share_goes_along(tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    for results, name in ((a, "a"), (b, "b")):
        keep(results, under(one(name), SECRET))
    a.keep_secret(SECRET)
    tally = joined(into, a, b)
    assert into.keep_secret().root == SECRET
    assert into.secret_file.stat().st_mode & 0o777 == 0o600
    assert tally.notes == [f"keys and noise of later runs are drawn from the run secret of {a.root}"]


def test_plans_of_one_cell_are_joined(tmp_path: Path) -> None:
    a, b, into = (Results(tmp_path / name) for name in ("a", "b", "into"))
    for results, name in ((a, "utility"), (b, "throughput")):
        keep(results, one(name))
        results.journal.keep_plan("d/c", f"method: m\nevaluators:\n- name: {name}\n", None)
    joined(into, a, b)
    plan = into.journal.plan("d/c")
    assert plan is not None
    assert "utility" in plan
    assert "throughput" in plan


def test_of_a_folder_that_nobody_trusted_signed_nothing_is_taken(tmp_path: Path) -> None:
    """All later keys and noise would be drawn from a secret that its maker knows, and plans name code."""
    stranger, into = (
        folder(tmp_path / "a", count=1),
        Results(tmp_path / "into", trusted=frozenset({make_pair(tmp_path / "key")[0].public})),
    )
    stranger.keep_secret(SECRET)
    stranger.journal.keep_plan("d/c", "method: m\nevaluators:\n- name: utility\n", None)
    assert joined(into, stranger).reasons("refused")
    assert not [path for path in into.root.rglob("*") if path.is_file()]
    joined(into, stranger, secret_of=stranger)
    assert into.keep_secret().root == SECRET


def test_a_plan_that_is_none_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    a, into = folder(tmp_path / "a", count=1), Results(tmp_path / "into")
    a.journal.keep_plan("d/b", "a: 1", None)
    a.journal.keep_plan("d/c", "method: m\nevaluators:\n- name: utility\n", None)
    assert "a plan must be a mapping" in "".join(joined(into, a).reasons("refused"))
    assert "d/c" in into.journal.plans()
    assert "d/b" not in into.journal.plans()


def test_a_file_is_no_folder_to_join_in(tmp_path: Path) -> None:
    (tmp_path / "into").write_text("mine")
    with pytest.raises(UsageError, match="expected a folder to join results in"):
        joined(Results(tmp_path / "into"), folder(tmp_path / "a", count=1))


def test_a_folder_from_a_stranger_is_read_with_care(tmp_path: Path) -> None:
    a, into = folder(tmp_path / "a", count=1), Results(tmp_path / "into")
    cell = a.root / "cells/synth-cxr/c0"
    (cell / "linked.json").symlink_to("/etc/passwd")
    os.mkfifo(cell / "pipe.json")
    (cell / "large.json").touch()
    os.truncate(cell / "large.json", 1 << 42)
    (a.root / "cells/synth-cxr/behind").symlink_to(cell)
    next((a.root / "artefacts/schemes").glob("[0-9a-f]" * 32)).joinpath("more.pickle").write_bytes(b"\x80")
    keep(a, one("altered"))
    altered = a.root / "cells/synth-cxr/altered/utility.json"
    altered.write_text(altered.read_text().replace("0.75", "0.95"))
    tally = joined(into, a)
    told = "\n".join(tally.reasons("refused"))
    for reason in ("a link", "is no file", "at most", "altered", "other things than"):
        assert reason in told
    assert tally.summary("copied") == "1 detector, 2 records"
    assert not list(into.problems())


Harm = Callable[[Path], object]
HARMS: dict[str, tuple[Harm, str]] = {
    "no json": (lambda cell: (cell / "x.json").write_text("{"), "no JSON"),
    "deep": (lambda cell: (cell / "x.json").write_text("[" * 100_000), "no JSON"),
    "no utf-8": (lambda cell: (cell / "x.json").write_bytes(b"\xff"), "utf-8"),
    "empty": (lambda cell: (cell / "x.json").touch(), "no JSON"),
    "a later schema": (lambda cell: rewrite(cell, '"schema": 4', '"schema": 9'), "later"),
    "moved": (lambda cell: (cell / "utility.json").rename(cell / "x.json"), "was moved"),
    "a hidden name": (lambda cell: put(cell, one("c0", evaluator=".hidden")), "names a file that no record has"),
    "a picture elsewhere": (lambda cell: put(cell, pictured("../../look")), "names a picture that no record has"),
    "a hidden picture": (lambda cell: put(cell, pictured(".look")), "names a picture that no record has"),
    "a script as picture": (lambda cell: put(cell, one("c0", pictures={"look": SVG}), SCRIPT), "no PNG"),
    "no picture": (lambda cell: put(cell, whole("c0")), "gone"),
    "a pickle as evidence": (lambda cell: put(cell, one("c0", evidence=evidence_record(BOOM)), BOOM), "no safetensors"),
}  # fmt: skip
SCRIPT, BOOM = b"<svg onload=alert(1)>", pickle.dumps([1])
SVG = picture_record(SCRIPT, "")


def rewrite(cell: Path, old: str, new: str) -> None:
    (cell / "utility.json").write_text((cell / "utility.json").read_text().replace(old, new))


def pictured(name: str) -> Record:
    return one("c0", pictures={name: whole().pictures["look"]})


def put(cell: Path, made: Record, beside: bytes = b"") -> None:
    """The record in its place, as a stranger writes it, with a file beside it."""
    made = proved(made)
    (cell / f"{made.evaluator}.json").write_text(dumps(made))
    for name in names_beside(made) if beside else ():
        (cell / name.rpartition("/")[2]).write_bytes(beside)


@pytest.mark.parametrize("harm", HARMS)
def test_a_strangers_record_is_refused_by_name(harm: str, tmp_path: Path) -> None:
    source, into = Results(tmp_path / "a"), Results(tmp_path / "into")
    keep(source, one("c0"))
    does, reason = HARMS[harm]
    does(source.root / "cells/synth-cxr/c0")
    outcomes = joined(into, source)
    assert reason in " ".join(outcomes.reasons("refused"))
    assert outcomes.count("copied") <= 1
    assert not list(into.problems())
    assert {path.name for path in tmp_path.iterdir()} <= {"a", "into"}


@pytest.mark.parametrize("tensors", [BOOM, b"x", b"\xff" * 64])
def test_a_strangers_artefact_without_tensors_is_refused(tensors: bytes, tmp_path: Path) -> None:
    source, into, origin = Results(tmp_path / "a"), Results(tmp_path / "into"), inputs(one())
    folder = source.store.root / "schemes" / content_key(origin)
    folder.mkdir(parents=True)
    told = {"kind": "schemes", "inputs": origin, "notes": {}, "sha256": hashlib.sha256(tensors).hexdigest()}
    (folder / "manifest.json").write_bytes(signed_json.written(signed_json.attest(told, "artefact")))
    (folder / "data.safetensors").write_bytes(tensors)
    assert "safetensors" in " ".join(joined(into, source).reasons("refused"))
    assert not list((into.root / "artefacts").rglob("*.safetensors"))


def test_a_damaged_artefact_is_made_whole(tmp_path: Path) -> None:
    source, into = folder(tmp_path / "a", count=1), folder(tmp_path / "into", count=1)
    data = next((into.root / "artefacts/schemes").rglob("data.safetensors"))
    data.write_bytes(data.read_bytes()[:-1] + b"!")
    with pytest.warns(UserWarning, match="corrupt"):
        assert joined(into, source).summary("copied") == "1 scheme"
    assert not list(into.problems())


def test_folders_that_hold_each_other_or_nothing_are_refused(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", count=1)
    for into in (a.root, a.root / "inner"):
        with pytest.raises(UsageError, match="folders apart"):
            joined(Results(into), a)
    with pytest.raises(UsageError, match="expected a results folder"):
        joined(Results(tmp_path / "into"), Results(tmp_path))
    assert main(["leaderboard", "merge", str(tmp_path / "nowhere"), "--into", str(tmp_path / "into")]) == 2
    assert main(["leaderboard", "merge", str(a.root), str(a.root), "--into", str(tmp_path / "into")]) == 0
    with pytest.raises((RecordError, FileNotFoundError)):
        Results(tmp_path / "into").record("synth-cxr/none", "utility")


def test_a_run_goes_on_in_a_merged_and_in_an_exported_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(bytes(range(32)))
    asked = ("--attack", "none", "--metric", "max-dispersion", "--dataset", "digits", "--preset", "smoke", "--limit",
             "60", "--device", "cpu", "--isolation", "none", "--no-site")  # fmt: skip

    def run(results: Path, *methods: str) -> str:
        capsys.readouterr()
        named = [word for method in methods for word in ("--method", method)]
        assert main(["run", *named, *asked, "--results", str(results), "--secret", str(secret)]) == 0
        return capsys.readouterr().out

    for name, method in (("a", "identity"), ("b", "mosaic")):
        run(tmp_path / name, method)
    into, copy = tmp_path / "into", tmp_path / "copy"
    assert main(["leaderboard", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "--into", str(into)]) == 0
    both = files(into, "cells")
    assert len([name for name in both if name.endswith(".json")]) == 2
    assert main(["leaderboard", "export", str(copy), "--results", str(into)]) == 0
    assert files(copy, "cells") == both
    assert "1 computed, 2 already there" in run(copy, "identity", "mosaic", "blur")
    assert {name: text for name, text in files(copy, "cells").items() if name in both} == both
