"""The rows that the project publishes: publishing and checking them.

A row is published whole or not at all: leaving out a record could leave out the attack that broke the method.
`leaderboard.packed_rows` says how rows lie on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.results import signed_json
from bench.results.bundle import ENDING, Bundle, BundleError
from bench.results.records import Record, RecordError, dumps
from bench.results.results import Results, cell_and_evaluator
from leaderboard.board import rows
from leaderboard.fitness import mixed, unfit
from leaderboard.intake import SUBMISSIONS
from leaderboard.packed_rows import (
    Digests,
    Origin,
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
from leaderboard.repeat import command

PUBLISHED = Path(__file__).parent / "published"


@dataclass(frozen=True)
class Publication:
    """The outcome of publishing a results folder.

    Args:
        rows: Cells that are published now, with how many records.
        replaced: Those of them that were published before.
        refused: Files, or whole cells, with the reason.
    """

    rows: dict[str, int] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def publish(results: Results, folder: Path = PUBLISHED) -> Publication:
    """Publish every row of `results` that may be shown; report refusals.

    Failures and what does not apply are published with their reasons. A row that is there is replaced.

    Raises:
        FileExistsError: `folder` is that of `results`: replacing rows there would take their evidence.
    """
    if folder.resolve() == results.root.resolve():
        raise FileExistsError(f"{folder} holds the records themselves: name another folder with --to")
    done = Publication()
    fit, done.refused[:] = examined(results, current=True)
    for cell, (records, pictures) in fit.items():
        if row_file(folder, cell).exists():
            done.replaced.append(cell)
        write_row(folder, published_row(records, pictures))
        done.rows[cell] = len(records)
    return done


Pictures = dict[tuple[str, str], bytes]
"""By record and name."""


def examined(
    results: Results, *, current: bool
) -> tuple[dict[str, tuple[list[Record], Pictures]], list[tuple[str, str]]]:
    """The whole cells that may be shown, and reasons against the others.

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
    """Every published file that is altered, missing or superfluous, and why.

    Code moves on and published records stay: whether they are of the present code is not asked here.
    """
    results = published_results(folder)
    stated: dict[str, str] = {}
    for path in row_files(folder):
        with suppress(PackedRowError):  # its file stands among the records below, with the reason
            origin = read_row(path).origin
            stated |= {f"cells/{cell_of(path)}/{name}.json": each.digest for name, each in origin.records.items()}
    for name, found in results.records():
        if isinstance(found, RecordError):
            yield name, results.bare(name, found)
        elif found.digest != stated[name]:
            yield name, "it is not the record that was published: its digest is another"
        else:
            read, why = _pictures(results, found)
            yield from ((name, text) for text in (*why, *unfit(found, read, current=False)))
    yield from ((path.relative_to(folder).as_posix(), "no row names this picture") for path in unnamed_pictures(folder))


def published_row(records: Sequence[Record], pictures: Pictures) -> PackedRow:
    """The row of some records, with its origin."""
    (row,) = rows(records)
    origin = Origin(
        cell=row.cell,
        command=command(row),
        commits=tuple(sorted({record.git or "unknown" for record in records})),
        machines=tuple(dict(each) for each in {signed_json.written(r.hardware): r.hardware for r in records}.values()),
        records={record.evaluator: _digests(record) for record in records},
    )
    return PackedRow(origin, {record.evaluator: dumps(record).encode() for record in records}, pictures)


def _digests(record: Record) -> Digests:
    return Digests(
        digest=str(record.digest),
        evidence=None if record.evidence is None else record.evidence.sha256,
        pictures={name: picture.sha256 for name, picture in sorted(record.pictures.items())},
    )


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


def submitted(folder: Path = SUBMISSIONS) -> tuple[list[Results], list[tuple[str, str]]]:
    """Submitted bundles as sources of records, and refusals with reasons.

    A bundle that is not what was packed is refused whole. Code moves on and bundles stay, as published records do.
    """
    found: list[Results] = []
    refused: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            bundle = Bundle.open(path)
        except (BundleError, OSError) as error:
            refused.append((path.name, str(error).replace(str(path), path.name).removeprefix(f"{path.name}: ")))
            continue
        fit, why = examined(bundle.results, current=False)
        refused += [(f"{path.name}: {name}", reason) for name, reason in why]
        kept = {name: each for name, each in bundle.files.items() if cell_and_evaluator(name)[0] in fit}
        found.append(replace(bundle, files=kept).results)
    return found, refused
