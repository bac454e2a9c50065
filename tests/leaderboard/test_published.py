"""What the project publishes is whole, of one piece, says nothing that it must not, and still verifies."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made.current_records import current

from bench.cli import main
from bench.plugins.spec import UsageError
from bench.results import signed_json
from bench.results.disclosure_check import beyond_figures
from bench.results.reason import UNSAID, withheld
from bench.results.records import Record, RecordError, dumps, picture_record, proved
from bench.results.results import Results
from bench.workbench.inputs import PROTOCOL, stale
from leaderboard.board import Row, rows
from leaderboard.packed_rows import (
    MOST_BYTES,
    MOST_PACKED,
    PackedRow,
    PackedRowError,
    cell_of,
    published_results,
    read_row,
    row_file,
    row_files,
    unnamed_pictures,
    write_row,
)
from leaderboard.published import PUBLISHED, Publication, problems, publish, published_row, unfit


def png(width: int = 4, height: int = 4, *parts: bytes) -> bytes:
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + size + b"\x08\x00\x00\x00\x00" + b"".join(parts)


def keep(folder: Path, *records: Record, pictures: dict[str, bytes] | None = None) -> Results:
    results = Results(folder)
    for record in records:
        results.keep(record, pictures or {})
    return results


def published(tmp_path: Path, *records: Record, **more: Any) -> Publication:
    return publish(keep(tmp_path / "results", *records, **more), tmp_path / "published")


def reasons(done: Publication) -> str:
    return "\n".join(f"{name}: {reason}" for name, reason in done.refused)


def row_of(record: Record, folder: Path) -> PackedRow:
    return read_row(row_file(folder, record.cell))


def test_every_published_row_holds_the_records_and_pictures_that_it_states() -> None:
    """Whether each record is intact is checked by the build of the board in tox: it reads them all."""
    for path in row_files(PUBLISHED):
        row = read_row(path)
        assert row.origin.cell == cell_of(path)
        for name, digests in row.origin.records.items():
            assert json.loads(row.records[name])["digest"] == digests.digest
            for picture, digest in digests.pictures.items():
                assert hashlib.sha256(row.pictures[name, picture]).hexdigest() == digest
    assert unnamed_pictures(PUBLISHED) == []


TOLD = re.compile(r"^\| `([^`]+)` ?([^|]*) \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_readme_tells_what_the_rows_of_patients_say(tmp_path: Path) -> None:
    """The lines of its table: method, utility AUC, ReID AUC of the strongest attack, verdict."""
    (tmp_path / "rows" / "nih").mkdir(parents=True)
    for path in row_files(PUBLISHED, "nih"):
        if any(b'"protocol": %d' % PROTOCOL in text for text in read_row(path).records.values()):
            (tmp_path / "rows" / "nih" / path.name).symlink_to(path)
    board = rows(found for _, found in published_results(tmp_path).records() if isinstance(found, Record))
    text = (PUBLISHED.parents[1] / "README.md").read_text(encoding="utf-8")
    told = {(method, parameters): tuple(figures) for method, parameters, *figures in TOLD.findall(text)}
    assert len(told) == text.count("\n| `")
    mine = [row for row in board if row.dataset == "nih"]
    found = {_named(row): _told(row) for row in mine}
    assert len(found) == len(mine)
    assert told == {name: figures for name, figures in found.items() if name in told}


def _named(row: Row) -> tuple[str, str]:
    """A row's method and parameters in print."""
    return row.method, re.sub(r"\.0(?=,|$)", "", row.label.removeprefix(row.method).strip("[]")).replace(",", ", ")


def _told(row: Row) -> tuple[str, str, str]:
    """A row's utility AUC, ReID AUC and verdict in print."""
    scores = (row.entries[name].score if name in row.entries else None for name in ("utility-auc", "reid-auc"))
    utility, found = ("–" if score is None else f"{score.value:.2f}" for score in scores)
    return utility, found, row.standing.label


def test_published_rows_stay_small() -> None:
    files = [path for path in PUBLISHED.rglob("*") if path.is_file()]
    assert len(files) < 600
    assert sum(path.stat().st_size for path in files) < 30_000_000
    assert max(path.stat().st_size for path in row_files(PUBLISHED)) < 700_000


def test_a_row_is_kept_byte_for_byte_with_its_pictures_its_command_and_its_machine(tmp_path: Path) -> None:
    sheet = png()
    record = current(pictures={"release": picture_record(sheet, "a sheet")})
    done = published(tmp_path, record, pictures={"release": sheet})
    assert (done.rows, done.refused) == ({record.cell: 1}, [])
    row = row_of(record, tmp_path / "published")
    assert row.records == {"utility": (tmp_path / f"results/cells/{record.cell}/utility.json").read_bytes()}
    assert row.pictures == {("utility", "release"): sheet}
    assert row.origin.command.startswith("bench run --method identity --dataset digits --preset smoke")
    assert row.origin.commits == ("abc",)
    assert row.origin.machines == ({"device": "cpu", "processor": "Test CPU"},)
    assert row.origin.records["utility"].pictures == {"release": hashlib.sha256(sheet).hexdigest()}
    assert list(problems(tmp_path / "published")) == []


def test_published_rows_read_as_a_results_folder_does(tmp_path: Path) -> None:
    sheet = png()
    record = current(pictures={"release": picture_record(sheet, "a sheet")})
    published(tmp_path, record, pictures={"release": sheet})
    publish(keep(tmp_path / "results", current("noise")), tmp_path / "published")
    before, after = Results(tmp_path / "results"), published_results(tmp_path / "published")
    assert list(after.records()) == list(before.records())
    assert after.fingerprint() == before.fingerprint()
    (kept,) = (found for _, found in after.records() if isinstance(found, Record) and found.pictures)
    assert after.picture(kept, "release") == sheet
    with pytest.raises(UsageError, match="only read"):
        after.keep(current("blur"), {})


def test_a_row_that_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    published(tmp_path, current())
    folder = tmp_path / "published"
    path = row_file(folder, current().cell)
    row, before = read_row(path), path.stat().st_mtime_ns
    assert not write_row(folder, row)
    assert path.stat().st_mtime_ns == before
    path.write_bytes(lzma.compress(lzma.decompress(path.read_bytes()), preset=0))  # by another version of the library
    assert not write_row(folder, row)
    assert write_row(folder, replace(row, origin=row.origin.model_copy(update={"commits": ("def",)})))


def test_pictures_are_kept_once_and_go_with_the_last_row_that_names_them(tmp_path: Path) -> None:
    sheet, other = png(), png(8, 8)
    shown = {"pictures": {"release": picture_record(sheet, "a sheet")}}
    published(tmp_path / "a", current(**shown), current("noise", **shown), pictures={"release": sheet})
    folder = tmp_path / "a/published"
    assert len(list(folder.rglob("*.png"))) == 1
    changed = {"pictures": {"release": picture_record(other, "a sheet")}}
    for number, method in enumerate(("identity", "noise")):
        record = current(method, **changed)
        publish(keep(tmp_path / f"b{number}", record, pictures={"release": other}), folder)
        assert len(list(folder.rglob("*.png"))) == 2 - number
        assert list(problems(folder)) == []


def zeros(size: int, **more: Any) -> bytes:
    packer = lzma.LZMACompressor(**more)
    return b"".join([*(packer.compress(bytes(2**20)) for _ in range(size >> 20)), packer.flush()])


KIND_HERE = f"published row {current().cell}"
BROKEN: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda _: b"", "cut off"),
    (lambda _: b"a text of no use", "cannot be unpacked"),
    (lambda packed: packed[:-9], "cut off"),
    (lambda packed: packed + b"x", "goes on after its end"),
    (lambda packed: packed[:40] + b"\0" + packed[41:], "cannot be unpacked"),
    (lambda _: zeros(MOST_BYTES + 2**20), "unpacked it takes more than"),
    (lambda _: zeros(2**20, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]), "Memory usage limit"),
    (lambda packed: bytes(MOST_PACKED + 1), "at most"),
    (lambda _: lzma.compress(b"[]"), "does not hold JSON objects"),
    (lambda _: lzma.compress(b"{\n}\n"), "it carries no digest"),
    (lambda _: lzma.compress(b"[\n}\n"), "no JSON"),
    (lambda packed: lzma.compress(lzma.decompress(packed).split(b"\n}\n")[0] + b"\n}\n"), "expected 1 records, got 0"),
    (lambda packed: lzma.compress(lzma.decompress(packed).replace(b"Test", b"Best")), "altered or moved"),
    (
        lambda _: lzma.compress(signed_json.written(signed_json.attest({"schema": 1, "cell": "x"}, KIND_HERE))),
        "command",
    ),
]


@pytest.mark.parametrize(("change", "reason"), BROKEN)
def test_a_file_that_is_not_a_row_is_refused_by_name(
    tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    published(tmp_path, current(), current("noise"))
    folder = tmp_path / "published"
    path = row_file(folder, current().cell)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(PackedRowError, match=reason):
        read_row(path)
    ((name, why),) = problems(folder)
    assert name == f"rows/{current().cell}.json.xz"
    assert reason in why
    refused = [found for _, found in published_results(folder).records() if isinstance(found, RecordError)]
    assert len(refused) == 1
    assert len(list(published_results(folder).records())) == 2


def test_records_are_never_published_over_themselves(tmp_path: Path) -> None:
    """A published row has no evidence, so that replacing a row there would take it."""
    results = keep(tmp_path / "results", current())
    before = {path: path.read_bytes() for path in results.root.rglob("*") if path.is_file()}
    with pytest.raises(FileExistsError, match="holds the records themselves: name another folder"):
        publish(results, results.root)
    assert {path: path.read_bytes() for path in results.root.rglob("*") if path.is_file()} == before


def test_failures_and_what_does_not_apply_stay_with_their_reasons(tmp_path: Path) -> None:
    failed = current(status="failed", phase="fit", code="error", reason="ValueError: no luck", scores={})
    senseless = current("noise", status="not-applicable", code="not-applicable", reason="nothing to do", scores={})
    assert published(tmp_path, failed, senseless).rows == {failed.cell: 1, senseless.cell: 1}
    kept = {
        found.reason for _, found in published_results(tmp_path / "published").records() if isinstance(found, Record)
    }
    assert kept == {"ValueError: no luck", "nothing to do"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"limit": 5}, "limited: made with --limit 5"),
        ({"isolation": "none"}, "isolation none"),
        ({"measured_by": "mine.py:Mine"}, "a plug-in from a file"),
        ({"inputs": {"protocol": 2}}, "stale code: other than what is installed here: protocol"),
        ({"inputs": {"judge code": "0"}}, "stale code: other than what is installed here: judge code"),
        ({"details": {"read": "/home/alice/scans/1"}}, "details.read holds a path"),
        ({"details": {"read": ["C:\\scans\\1"]}}, "a path"),
        ({"details": {"~/scans/a": 1}}, "a path"),
        ({"scheme": {"from": "file:///scans"}}, "a path"),
        ({"threat_model": {"rows": "as in 00000001_000.png"}}, "a file's name"),
        ({"threat_model": {"rows": "\\\\server\\share"}}, "a path"),
        ({"details": {"by": "alice@example.org"}}, "an address"),
        ({"details": {"by": "\x1b[2J"}}, "characters that a terminal"),
        ({"details": {"by": "\u202egnp.1"}}, "characters that a terminal"),
    ],
)
def test_what_may_not_be_shown_is_refused_by_name(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    done = published(tmp_path, current(**more))
    assert done.rows == {}
    assert said in reasons(done)
    assert "utility.json" in reasons(done)
    assert str(tmp_path) not in reasons(done)
    assert not (tmp_path / "published").exists()


def test_the_speed_of_an_own_method_needs_no_isolation_and_of_anothers_it_does(tmp_path: Path) -> None:
    own = current(kind="throughput", isolation="none")
    assert published(tmp_path, own).rows == {own.cell: 1}
    theirs = own.method.model_copy(update={"origin": "their-package"})
    assert any("isolation none" in reason for reason in unfit(own.model_copy(update={"method": theirs}), {}))


def test_of_a_record_whose_package_is_not_here_its_name_is_said() -> None:
    found = current()
    assert stale(found) == ""
    theirs = found.method.model_copy(update={"name": "gone", "written": "gone[x=1]", "origin": "their-package"})
    assert stale(found.model_copy(update={"method": theirs})) == (
        "not installed here: method gone of the package their-package"
    )


def test_what_only_looks_like_a_path_is_published(tmp_path: Path) -> None:
    words = {"a": "images/s", "b": "p/o and o/o", "c": "1/n of 3", "d": "A / B", "e": "x.y of 2.5 units", "f": "a: b"}
    assert published(tmp_path, current(details=words)).refused == []


def test_altered_records_are_refused_and_take_their_row_with_them(tmp_path: Path) -> None:
    whole, other = current(), current(kind="reidentification", attack="nearest-neighbour")
    results = keep(tmp_path / "results", whole, other)
    path = tmp_path / f"results/cells/{whole.cell}/utility.json"
    path.write_text(path.read_text().replace("0.75", "0.95"))
    done = publish(results, tmp_path / "published")
    assert done.rows == {}
    assert "utility.json: altered" in reasons(done)
    assert "a row is published whole" in reasons(done)
    assert str(tmp_path) not in reasons(done)


def test_records_of_several_versions_do_not_make_a_row(tmp_path: Path) -> None:
    other = current(kind="reidentification", attack="nearest-neighbour", versions={"torch": "2.11", "numpy": "2.4"})
    done = published(tmp_path, current(), other)
    assert done.rows == {}
    assert "mixed versions: numpy 2.4, torch 2.11 and numpy 2.4, torch 2.14" in reasons(done)


def test_of_data_that_may_not_be_shared_figures_alone_are_published(tmp_path: Path) -> None:
    open_data = current()
    assert open_data.dataset is not None
    secret = open_data.dataset.model_copy(update={"shareable": False})
    (figure,) = open_data.scores.values()
    quiet = {"dataset": secret, "scores": {"utility-auc": figure.model_copy(update={"note": UNSAID})}}
    assert published(tmp_path / "a", current(**quiet)).refused == []
    for more, said in (
        ({"details": {"x": 1}}, "it holds details"),
        ({"scheme": {"x": 1}}, "it holds scheme"),
        ({"threat_model": {"x": "y"}}, "it holds threat model"),
        ({"scores": dict(open_data.scores)}, "a note, replicates or exchanges"),
        ({"not_applicable": {"utility-auc": "patient 7 is alone"}, "scores": {}}, "a reason in words of its own"),
    ):
        assert any(said in why for why in unfit(current(**(quiet | more)), {})), said
    told = {"status": "failed", "scores": {}, "reason": withheld("error"), "code": "error"}
    assert unfit(current(**(quiet | told)), {}) == []
    names = {**open_data.metrics, "top-1": open_data.metrics["utility-auc"]}
    for failed, said in (("top-1; utility-auc", 0), ("top-1", 0), ("patient 7", 1)):
        why = "; ".join(f"{name}: {withheld('metric')}" for name in failed.split("; "))
        made = current(**(quiet | {"status": "failed", "scores": {}, "reason": why, "metrics": names}))
        assert sum("words of its own" in each for each in beyond_figures(made)) == said
    sheet = png()
    shown = current(**quiet, pictures={"release": picture_record(sheet, "rows")})
    assert any("it holds pictures" in why for why in unfit(shown, {"release": sheet}))


def test_nobody_gives_leave_to_share_what_may_not_be_shared() -> None:
    honest = current()
    assert honest.dataset is not None
    claimed = {"dataset": honest.dataset.model_copy(update={"name": "mimic"})}
    lying = current(**claimed, choice={**honest.choice, "dataset": "mimic"})
    assert any("mimic may not be shared, and the record says that it may" in why for why in unfit(lying, {}))
    assert any("a patient's number" in why for why in unfit(current(details={"row": "p10000032"}), {}))
    filed = current(choice={**honest.choice, "dataset": "x.py:Set"})
    assert any("a plug-in from a file" in why for why in unfit(filed, {}, current=False))
    assert any("terminal" in why for why in unfit(current(details={"row": "a\x9b31m"}), {}))


def test_pictures_are_small_sheets_that_say_nothing(tmp_path: Path) -> None:
    for sheet, said in (
        (png(8 * 66, 2 * 66), ""),
        (png(8 * 66, 2 * 66 + 1), "larger than 16 images of 64 pixels"),
        (png(4, 4, b"\x00\x00\x00\x04tEXtpath"), "carries text of its own"),
    ):
        record = current(pictures={"release": picture_record(sheet, "rows")})
        found = unfit(record, {"release": sheet})
        assert (said in found[0]) if said else found == []
    assert "its picture release is gone" in unfit(record, {})


def test_a_row_that_is_published_again_replaces_the_one_before(tmp_path: Path) -> None:
    first, second = current(), current(created="2026-01-01T00:00:00+00:00")
    attack = current(kind="reidentification", attack="nearest-neighbour")
    published(tmp_path / "a", first, attack)
    target = tmp_path / "a" / "published"
    done = publish(keep(tmp_path / "b", second), target)
    assert (done.replaced, done.kept) == ([first.cell], [])
    again = publish(keep(tmp_path / "b", second), target)
    assert (again.replaced, again.kept, again.rows) == ([], [first.cell], done.rows)
    assert [found.created for _, found in published_results(target).records() if isinstance(found, Record)] == [
        second.created
    ]
    assert list(problems(target)) == []


def test_changes_of_published_files_are_named(tmp_path: Path) -> None:
    sheet = png()
    record = current(pictures={"release": picture_record(sheet, "a sheet")})
    folder = tmp_path / "published"
    published(tmp_path, record, pictures={"release": sheet})
    row = row_of(record, folder)
    digest = row.origin.records["utility"].pictures["release"]
    picture = row_file(folder, record.cell).with_name(f"{digest[:12]}.png")

    def named() -> str:
        found = "\n".join(f"{name}: {reason}" for name, reason in problems(folder))
        publish(Results(tmp_path / "results"), folder)
        return found

    assert named() == ""
    other = dumps(current(created="2026-01-01T00:00:00+00:00")).encode()  # a whole record, in place of another
    write_row(folder, replace(row, records={"utility": other}))
    assert "utility.json: it is not the record that was published" in named()
    write_row(folder, replace(row, records={"utility": row.records["utility"].replace(b"0.75", b"0.95")}))
    assert "utility.json: it was altered" in named()
    picture.write_bytes(png(8, 8))
    assert "its picture release was altered" in named()
    picture.unlink()
    assert "its picture release is gone" in named()
    picture.with_name("0123456789ab.png").write_bytes(sheet)
    assert "0123456789ab.png: no row names this picture" in named()


def test_published_records_outlive_the_code_that_made_them(tmp_path: Path) -> None:
    record = proved(current(inputs={"judge code": "of last year"}))
    write_row(tmp_path, published_row([record], {}))
    assert list(problems(tmp_path)) == []


def test_the_command_publishes_and_says_what_it_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path / "results", current(), current("noise", limit=3))
    told = ["leaderboard", "publish", "--results", str(tmp_path / "results"), "--to", str(tmp_path / "published")]
    assert main(told) == 1
    said = capsys.readouterr()
    assert "published: digits/identity--smoke-seed0" in said.out
    assert "limited: made with --limit 3" in said.err
    assert main(["leaderboard", "publish", "--results", str(tmp_path / "nowhere")]) == 2
