"""The records that the project shows: a results folder without anything private, a row's provenance beside its records.

    published/cells/DATA SET/CELL/EVALUATOR.json    the records, byte for byte as they were written, with their pictures
    published/rows/DATA SET/CELL.json               command, commit, machine, protocol, and the digest of each record

A row is published whole or not at all: whoever could leave out a record could leave out the attack that broke it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.results import signed_json
from bench.results.atomic_file import write_atomically
from bench.results.records import Record, RecordError
from bench.results.results import Results, cell_and_evaluator
from bench.results.signed_json import AlteredError
from leaderboard.board import rows
from leaderboard.fitness import mixed, unfit
from leaderboard.repeat import command

PUBLISHED = Path(__file__).parent / "published"
KIND = "published row"


@dataclass(frozen=True)
class Publication:
    """What became of a results folder.

    Args:
        rows: Cells that are published now, with how many records.
        replaced: Those of them that were published before.
        refused: Files, or whole cells, with the reason.
    """

    rows: dict[str, int] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def publish(results: Results, folder: Path = PUBLISHED) -> Publication:
    """Bring every row of `results` that may be shown into `folder`, and say by name what may not, and why.

    Failures and what does not apply are published with their reasons. A row that is there is replaced.

    Raises:
        FileExistsError: `folder` is that of `results`: replacing rows there would take their evidence.
    """
    if folder.resolve() == results.root.resolve():
        raise FileExistsError(f"{folder} holds the records themselves: name another folder with --to")
    done = Publication()
    fit, done.refused[:] = examined(results, current=True)
    for cell, (records, pictures) in fit.items():
        _write(folder, cell, records, pictures, done)
    return done


Pictures = dict[tuple[str, str], bytes]
"""By record and name."""


def examined(
    results: Results, *, current: bool
) -> tuple[dict[str, tuple[list[Record], Pictures]], list[tuple[str, str]]]:
    """The cells of a results folder that may be shown, whole, and by name what may not, and why.

    Args:
        results: Where the records lie.
        current: Whether they must be of the code that is installed here.
    """
    cells: dict[str, list[Record]] = {}
    refused: list[tuple[str, str]] = []
    spoiled: dict[str, str] = {}
    for name, found in results.records():
        cell, _ = cell_and_evaluator(name)
        if isinstance(found, RecordError):
            refused.append((name, f"altered, or no record of this version: {results.bare(name, found)}"))
            spoiled[cell] = name
        else:
            cells.setdefault(cell, []).append(found)
    fit = {}
    for cell, records in cells.items():
        pictures: Pictures = {}
        faults: list[tuple[str, str]] = []
        for record in records:
            read, why = _pictures(results, record)
            pictures |= {(record.evaluator, name): png for name, png in read.items()}
            told = (*why, *unfit(record, read, current=current))
            faults += [(f"cells/{cell}/{record.evaluator}.json", text) for text in told]
        if text := mixed(records):
            faults.append((f"cells/{cell}", text))
        if cell in spoiled:
            faults.append((f"cells/{cell}", f"a row is published whole, and {spoiled[cell]} is refused"))
        if faults:
            refused += faults
        else:
            fit[cell] = records, pictures
    return fit, refused


def problems(folder: Path = PUBLISHED) -> Iterator[tuple[str, str]]:
    """Every file of published records that is not what was published, or should not be there, and why.

    Code moves on and published records stay: whether they are of the present code is not asked here.
    """
    results = Results(folder)
    stated: dict[str, str] = {}
    for path in sorted(folder.glob("rows/*/*.json")):
        cell = path.relative_to(folder / "rows").with_suffix("").as_posix()
        try:
            told = signed_json.read(path.read_bytes(), f"{KIND} {cell}")
        except (AlteredError, OSError) as error:
            yield f"rows/{cell}.json", str(error)
            continue
        digests = cast("dict[str, dict[str, str]]", told["records"])
        stated |= {f"cells/{cell}/{evaluator}.json": each["digest"] for evaluator, each in digests.items()}
    for name, found in results.records():
        digest = stated.pop(name, None)
        if isinstance(found, RecordError):
            yield name, results.bare(name, found)
        elif digest is None:
            yield name, "no row was published with it"
        elif digest != found.digest:
            yield name, "it is not the record that was published: its digest is another"
        else:
            read, why = _pictures(results, found)
            yield from ((name, text) for text in (*why, *unfit(found, read, current=False)))
    yield from ((name, "it was published, and is gone") for name in stated)


def _write(
    folder: Path, cell: str, records: Sequence[Record], pictures: dict[tuple[str, str], bytes], done: Publication
) -> None:
    target = Results(folder)
    if (folder / "rows" / f"{cell}.json").exists():
        done.replaced.append(cell)
    place = folder / "cells" / cell
    for old in sorted(place.glob("*")):
        old.unlink()
    for record in records:
        own = {name: png for (evaluator, name), png in pictures.items() if evaluator == record.evaluator}
        kept = target.keep(record, own)
        if kept.digest != record.digest:
            raise RecordError(f"{cell}/{record.evaluator}: the copy has another digest than the record")
    write_atomically(folder / "rows" / f"{cell}.json", signed_json.written(_provenance(cell, records)))
    done.rows[cell] = len(records)


def _provenance(cell: str, records: Sequence[Record]) -> dict[str, JsonValue]:
    """What is kept of a row beside its records: how to repeat it, and what made it."""
    (row,) = rows(records)
    content: dict[str, JsonValue] = {
        "schema": 1,
        "cell": cell,
        "command": command(row),
        "commits": cast("list[JsonValue]", sorted({record.git or "unknown" for record in records})),
        "machines": cast(
            "list[JsonValue]",
            [dict(each) for each in {signed_json.written(r.hardware): r.hardware for r in records}.values()],
        ),
        "records": {record.evaluator: _digests(record) for record in records},
    }
    return signed_json.attest(content, f"{KIND} {cell}")


def _digests(record: Record) -> dict[str, JsonValue]:
    """What tells a record, its pictures and its evidence from any other."""
    return {
        "digest": record.digest,
        "evidence": None if record.evidence is None else record.evidence.sha256,
        "pictures": {name: picture.sha256 for name, picture in sorted(record.pictures.items())},
    }


def _pictures(results: Results, record: Record) -> tuple[dict[str, bytes], list[str]]:
    found, faults = {}, []
    for name in record.pictures:
        try:
            png = results.picture(record, name)
        except RecordError:
            faults.append(f"its picture {name} was altered")
            continue
        if png is not None:
            found[name] = png
    return found, faults
