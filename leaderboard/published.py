"""The rows that the project publishes: publishing and checking them.

A row is published whole or not at all: leaving out a record could leave out the attack that broke the method. Of data
that may not be shared only figures are published: no picture, and no text of a plug-in, because texts have held paths
and identifiers. `leaderboard.packed_rows` describes the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from bench.plugins import registry
from bench.plugins.spec import parse
from bench.results import signed_json
from bench.results.bundle import ENDING, Bundle, BundleError
from bench.results.disclosure_check import unfit_text
from bench.results.records import PluginRecord, Record, RecordError, dumps, is_no_past_time
from bench.results.results import Results, cell_and_evaluator
from bench.types import Method
from bench.workbench.inputs import PROTOCOL, files_of, stale
from leaderboard.board import THROUGHPUT, mixed, rows
from leaderboard.intake import SUBMISSIONS, protocol_of
from leaderboard.packed_rows import (
    Digests,
    Origin,
    PackedRow,
    PublishedRows,
    cell_of,
    published_results,
    row_file,
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
        replaced: Those of them that were published before with other content.
        kept: Those of them that are as they were.
        refused: Files, or whole cells, with the reason.
    """

    rows: dict[str, int] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def publish(results: Results, folder: Path = PUBLISHED) -> Publication:
    """Publish every row of `results` that may be shown; report refusals.

    Failures and what does not apply are published with their reasons. A row that is there is replaced.

    Raises:
        FileExistsError: `folder` is that of `results`: replacing rows there would take their evidence.
    """
    if folder.resolve() == results.root.resolve():
        raise FileExistsError(f"{folder} holds the records themselves: name another folder with --to")
    outcome = Publication()
    fit, outcome.refused[:] = examined(results, current=True)
    for cell, (records, pictures) in fit.items():
        there = row_file(folder, cell).exists()
        if not write_row(folder, published_row(records, pictures)):
            outcome.kept.append(cell)
        elif there:
            outcome.replaced.append(cell)
        outcome.rows[cell] = len(records)
    return outcome


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
    for name, record in results.records():
        cell, _ = cell_and_evaluator(name)
        if isinstance(record, RecordError):
            refused.append((name, f"altered, or no record of this version: {results.bare(name, record)}"))
            spoiled[cell] = name
        else:
            cells.setdefault(cell, []).append(record)
    fit = {}
    for cell, records in cells.items():
        pictures: Pictures = {}
        faults: list[tuple[str, str]] = []
        for record in records:
            images, why = _pictures(results, record)
            pictures |= {(record.evaluator, name): png for name, png in images.items()}
            reasons = (*why, *unfit(record, images, current=current, text=results.text(record)))
            faults += [(f"cells/{cell}/{record.evaluator}.json", text) for text in reasons]
        if text := mixed(records):
            faults.append((f"cells/{cell}", text))
        if cell in spoiled:
            faults.append((f"cells/{cell}", f"a row is published whole, and {spoiled[cell]} is refused"))
        if faults:
            refused += faults
        else:
            fit[cell] = records, pictures
    return fit, refused


def problems(folder: Path = PUBLISHED, results: PublishedRows | None = None) -> Iterator[tuple[str, str]]:
    """Every published file that is altered, missing or superfluous, and why.

    Published records may be of earlier code. `results` are those of the folder, if somebody has read them.
    """
    results = results or published_results(folder)
    digests = {
        f"cells/{cell_of(path)}/{name}.json": each.digest
        for path, origin in results.origins.items()
        for name, each in origin.records.items()
    }
    for name, record in results.records():
        if isinstance(record, RecordError):
            yield name, results.bare(name, record)
        elif record.digest != digests[name]:
            yield name, "it is not the record that was published: its digest is another"
        else:
            images, why = _pictures(results, record)
            reasons = unfit(record, images, current=False, text=results.text(record))
            yield from ((name, text) for text in (*why, *reasons))
    unnamed = unnamed_pictures(folder, origins=results.origins)
    yield from ((path.relative_to(folder).as_posix(), "no row names this picture") for path in unnamed)


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
    images, faults = {}, []
    for name in record.pictures:
        try:
            png = results.picture(record, name)
        except RecordError:
            faults.append(f"its picture {name} was altered")
            continue
        if png is not None:
            images[name] = png
    return images, faults


def submitted(folder: Path = SUBMISSIONS) -> tuple[list[Results], list[tuple[str, str]]]:
    """Submitted bundles as sources of records, and refusals with reasons.

    An altered bundle is refused whole, and one that its author withdrew (`withdrawn`) is left out. Records may be of
    earlier code, as published ones may.
    """
    sources: list[Results] = []
    refused: list[tuple[str, str]] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        if (reason := _withdrawal(path)) is not None:
            refused.append((path.name, f"withdrawn: {reason}"))
            continue
        try:
            bundle = Bundle.open(path)
        except (BundleError, OSError) as error:
            refused.append((path.name, str(error).replace(str(path), path.name).removeprefix(f"{path.name}: ")))
            continue
        fit, why = examined(bundle.results, current=False)
        refused += [(f"{path.name}: {name}", reason) for name, reason in why]
        files = {name: each for name, each in bundle.files.items() if cell_and_evaluator(name)[0] in fit}
        sources.append(replace(bundle, files=files).results)
    return sources, refused


WITHDRAWN = ".withdrawn.txt"
"""Ending of the file, beside a bundle, in which its author says why it is withdrawn."""
MOST_REASON = 500


def _withdrawal(path: Path) -> str | None:
    """The reason of a withdrawn bundle, or None."""
    note = path.with_name(f"{path.name.removesuffix(ENDING)}{WITHDRAWN}")
    if not note.is_file():
        return None
    with note.open("rb") as file:
        return " ".join(file.read(MOST_REASON).decode(errors="replace").split()) or None


def withdrawn(folder: Path = SUBMISSIONS) -> list[Results]:
    """Bundles withdrawn with a reason, which count as tries."""
    found = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        if _withdrawal(path) is not None:
            with suppress(BundleError, OSError):
                found.append(Bundle.open(path).results)
    return found


IMAGES, SIDE = 16, 64 + 2  # of a contact sheet; each image has a frame of a pixel
SHEET = IMAGES * SIDE * SIDE
PHANTOMS = frozenset({"synth-cxr", "synth-mimic", "synth-nih"})
"""Data sets that this project draws: pictures of them show no real person."""


def unfit(
    record: Record, pictures: Mapping[str, bytes], *, current: bool = True, text: bytes | None = None
) -> list[str]:
    """The reasons not to publish a record; empty if it may be.

    Args:
        record: As it was read.
        pictures: PNG files beside it, by name.
        current: Whether it must be of the code that is installed here.
        text: Its file, if it is at hand.
    """
    reasons = []
    if record.limit is not None:
        reasons.append(f"limited: made with --limit {record.limit}")
    if record.dataset is None:
        return [*reasons, "its data were never opened"]
    if protocol_of(record) not in range(1, PROTOCOL + 1):  # a later one would start a board of its own
        reasons.append(f"its protocol is none that this version knows, 1 to {PROTOCOL}")
    if is_no_past_time(record.created):
        reasons.append("it says no time, or one that has not come yet, as when it was made")
    if record.isolation == "none" and not (record.kind == THROUGHPUT and record.method.origin == registry.HOME):
        reasons.append("method and attack worked in the judge's own process (isolation none)")
    if record.method.role is not None and record.method.role != _role(record.method):
        reasons.append(
            f"it calls its method a reference ({record.method.role}), and no method of this project of that name "
            "is: only those go unrated"
        )
    if files_of(record):
        reasons.append("a plug-in from a file, which others do not have: make a package of it")
    elif current and (why := stale(record)):  # which builds what the record names
        reasons.append(f"stale code: {why}")
    if current and record.git is not None and record.git.endswith("-dirty"):
        reasons.append("made from changed files of a checkout, which no commit holds: commit them, and measure again")
    reasons += unfit_text(record, text)
    return [*reasons, *_picture_faults(record, pictures)]


def _role(method: PluginRecord) -> str | None:
    """The role of this project's method of that name, if any."""
    called = parse(method.written).name
    if called != method.name or method.origin != registry.HOME or called not in registry.own("methods"):
        return None
    return cast("type[Method]", registry.load("methods", called)).role


def _picture_faults(record: Record, pictures: Mapping[str, bytes]) -> Iterator[str]:
    assert record.dataset is not None
    for name in record.pictures:
        if name not in pictures:
            yield f"its picture {name} is gone"
            continue
        width, height = (int.from_bytes(pictures[name][at : at + 4], "big") for at in (16, 20))
        # A plane of vectors shows points; of images no more than a small sheet may be shown.
        images = len(record.dataset.shape) == 3 and record.dataset.name not in PHANTOMS
        if images and width * height > SHEET:
            yield f"its picture {name} is larger than {IMAGES} images of 64 pixels: {width} x {height}"
        if b"tEXt" in pictures[name]:
            yield f"its picture {name} carries text of its own"
