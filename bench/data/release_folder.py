"""Folders of released rows: layout, tables of links, and rows.

    FOLDER/
      any image files, or release.npy, or release.safetensors (samples, and labels if there are any)
      labels.csv      released, and class or one column a finding, as in `folder:` data sets
      links.csv       released, and raw or row: which raw row stands in which released one; primary, digest
      members.csv     raw or row: the raw rows that the release was made of, if links do not name them all
      samples/        more rows of the generator that made the release: images, or release.npy ...
      keys/NAME/      further releases of the same rows under other keys, in the same layout
      release.json    maker, claim, labels, links, members, bits, findings, raw_shape; nothing is needed

`released` is the path of an image below the folder, or the number of a row of an array, from 0. `raw` is the path of a
raw image below its data set's folder, or its name alone where no other image has it; `row` is the number of a row of
the prepared data set, from 0. `digest` (hex) is checked against the raw row's content. `primary` is 1 for the raw row
that a mixed row was made for. `release_sha256`, in tables of `bench release`, is checked against release.json.

In release.json `"labels": "raw"` says that released rows have the labels of their raw rows, `"folders"` that images lie
in a sub-folder a class, and `"encoded"` that labels mean nothing without the key; `"rows": "encoded"` says that new
images need the key to become such rows, so that no model of them can be tested; `"links": "names"` that a released
image is called as its raw one, whatever the ending; `"members": "train"` (val, test) that the release was made of that
official part; `"bits": 12` how many bits count of images that hold more than eight. `"claim"` holds unit (image, pixel
or record), epsilon and delta, and is not audited. A folder of `bench release` has this layout.

Messages name lines and counts, neither files nor cells, because such data may be confidential.
"""

from __future__ import annotations

__figures__ = False  # `bench.workbench.inputs.RECORDED` covers it, for releases by other tools alone

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from bench.contract.recorded import LINKS, Recorded
from bench.contract.source import PARTS, DataError, Source
from bench.data.prepare import SIDE, left_out
from bench.data.prepared import Prepared
from bench.data.recorded_rows import (
    ABOUT,
    LAYOUT,
    SAMPLES,
    Linked,
    RecordedRows,
    Rows,
    read_about,
)
from bench.data.release_tables import (
    LABELS,
    MEMBERS,
    called,
    cells_of,
    lines_of,
    numbers,
    own_labels,
    refuse,
    released_rows,
)
from bench.data.subjects import spelling

WORDS: Mapping[str, tuple[str, ...]] = {
    "labels": ("raw", "folders", "encoded"), "rows": ("encoded",), "links": ("names",), "members": PARTS,
}  # fmt: skip
"""What release.json may say under a name, if it says anything."""
RELEASE = "release_sha256"
"""The column by which a table of links is bound to one release: the SHA-256 (hex) of its release.json."""


def side_of(recorded: Recorded) -> int | None:
    """Side in pixels at which raw images match a release, or None.

    Raises:
        DataError: There are no released rows.
    """
    told = read_about(recorded.folder)
    if "raw_shape" not in told:
        return Rows.found(recorded.folder).side
    shape = told["raw_shape"]
    whole = isinstance(shape, list) and shape and all(type(side) is int and 0 < side <= SIDE for side in shape)
    if not whole or len(shape) not in (1, 3) or (len(shape) == 3 and (shape[0] not in (1, 3) or shape[1] != shape[2])):
        raise DataError(
            f"imported: raw_shape in {ABOUT} must be [1 or 3, side, side], with a side of at most {SIDE} pixels, or "
            f"[length] of vectors, got {shape!r:.60}"
        )
    return int(shape[-1]) if len(shape) == 3 else None


def open_folder(recorded: Recorded, prepared: Prepared, source: Source, roots: Sequence[Path]) -> RecordedRows:
    """The releases of a folder, linked to rows of their data set.

    Raises:
        DataError: The folder is not as it was, or does not fit the data set; the text says what to correct.
    """
    try:
        contents = recorded.contents()
        places = recorded.places()
        if recorded.sha256 and recorded.digest() != recorded.sha256:
            raise ValueError(
                f"the folder has changed: sha256 is {recorded.sha256}, and it is {recorded.digest()} now. Leave sha256 "
                f"out to score it as it is"
            )
    except ValueError as error:
        raise DataError(f"imported: {error}") from None
    raw = _Raw(prepared, source, roots)
    releases = [_linked(recorded, place, raw) for place in places]
    shapes = {each.rows.shape for each in releases}
    if len(shapes) > 1:
        raise DataError(f"imported: releases under several keys must have rows of one shape, got {len(shapes)}")
    members = _members(recorded, releases, raw)
    notes = [note for each in releases for note in (*each.rows.notes, *each.notes)]
    names = Counter(content for name, content in contents.items() if name in set(releases[0].rows.names))
    if again := sum(count - 1 for count in names.values()):
        notes.append(f"{again} released images are copies of others, to the byte")
    if not any(each.links is not None for each in releases):
        notes.append(
            f"released rows have no links to raw ones: of who is in the release, membership and near copies are "
            f"measured, and no re-identification; the release was made of {len(members)} rows"
        )
    return RecordedRows(recorded, prepared.findings, members, tuple(releases), tuple(dict.fromkeys(notes)))


def tables_of(recorded: Recorded) -> str:
    """A summary of the tables, read without raw rows.

    Raises:
        DataError: A line of one that names no released row, or a table without its columns.
    """
    said = []
    for place in recorded.places():
        rows = Rows.found(place)
        _check_words(read_about(place))
        for name in (LINKS, LABELS):
            table = recorded.tables(place, name)
            if table is None or (name == LINKS and _only_members(table)):
                continue
            cells = lines_of(table, (), ("released", "path"), rest=True)
            column = "released" if "released" in cells.columns else "path"
            if column not in cells.columns:
                raise DataError(f"{called(table)}: expected the column released. {LAYOUT}")
            found = released_rows(table, cells[column], rows)
            said.append(f"{called(table)} names {len(np.unique(found))} of {rows.count} rows")
    return "; ".join(said) or "there are none"


def named_rows(table: Path, prepared: Prepared, source: Source, roots: Sequence[Path]) -> np.ndarray:
    """Prepared rows (n,) int64 that an owner's table names, in order.

    The column is row (a number, from 0), or raw or path (a file); other columns count for nothing.

    Raises:
        DataError: Another table, a line that names no row, or a row that is named twice.
    """
    try:
        return _named_rows(table, _Raw(prepared, source, roots))
    except DataError as error:
        raise DataError(str(error).replace(f" {LAYOUT}", "").replace(called(table), "the table of --rows")) from None


def _named_rows(table: Path, raw: _Raw) -> np.ndarray:
    cells = lines_of(table, (), ("row", "raw", "path", "digest"))
    there = [column for column in ("row", "raw", "path") if column in cells.columns]
    if len(there) != 1:
        raise DataError(
            f"the table of rows to release needs one of the columns row (a number, from 0), raw and path (a file), got "
            f"{', '.join(there) or 'none of them'}"
        )
    found = raw.rows(table, cells.rename(columns={"path": "raw"}))
    refuse(table, cells.index[pd.Series(found).duplicated().to_numpy()], "the row is listed a second time")
    return found


@dataclass(frozen=True, eq=False)
class _Raw:
    """Rows of the prepared data set, by number, name and content."""

    prepared: Prepared
    source: Source
    roots: Sequence[Path]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The path of each row's image below the data set's folder.

        Raises DataError if rows are no files.
        """
        scan = self.source.scan(self.roots, self.prepared.size)
        if scan.paths is None:
            raise DataError(
                f"imported: the rows of {self.prepared.name} are no files: name them by number, in a column called row"
            )
        gone = left_out(self.prepared)
        paths = [path for path in scan.paths if str(path) not in gone]
        if len(paths) != len(self.prepared):
            raise DataError(f"{self.prepared.name}: its files have changed since it was prepared: start again")
        top = scan.folder or Path(os.path.commonpath([path.parent for path in paths]))
        return tuple(Path(os.path.relpath(path, top)).as_posix() for path in paths)

    def places(self, form: Callable[[str], str]) -> dict[str, int]:
        """Row by name in a form, and by unique last part."""
        whole = Counter(form(name) for name in self.names)
        last = Counter(PurePosixPath(form(name)).name for name in self.names)
        found = {}
        for row, name in enumerate(self.names):
            if last[PurePosixPath(form(name)).name] == 1:
                found[PurePosixPath(form(name)).name] = row
        for row, name in enumerate(self.names):
            if whole[form(name)] == 1:
                found[form(name)] = row
        return found

    def rows(self, table: Path, cells: pd.DataFrame) -> np.ndarray:
        """The prepared row of each line, by number or name."""
        if "row" in cells.columns:
            found = numbers(table, cells["row"], len(self.prepared), f"rows of {self.prepared.name}")
        else:
            places = self.places(spelling)
            found = np.array([places.get(spelling(cell), -1) for cell in cells["raw"]], dtype=np.int64)
            refuse(table, cells.index[found < 0], f"raw is no file of {self.prepared.name}, or several have the name")
        if "digest" in cells.columns:
            own = [self.prepared.digests[row].tobytes().hex() for row in found]
            differ = np.array([a != b.strip().lower() for a, b in zip(own, cells["digest"], strict=True)])
            refuse(
                table, cells.index[differ],
                f"the raw row has another content in {self.prepared.name}: it is another version, or --size is not the "
                f"one of the release",
            )  # fmt: skip
        return found


def _linked(recorded: Recorded, place: Path, raw: _Raw) -> Linked:
    """One release with its links and labels."""
    rows, told = Rows.found(place), read_about(place)
    _check_words(told)
    table = recorded.tables(place, LINKS)
    links, primary = None, None
    if table is not None and not _only_members(table):
        links, primary = _links(table, rows, raw)
    elif told.get("links") == "names":
        links = _by_name(rows, raw)
    kind = told.get("labels")
    notes = []
    if kind == "encoded":
        notes.append("released labels are encoded by a key that is not here: Bob has none to learn from")
    if kind == "raw":
        _check_raw(links, primary)
    listed = recorded.tables(place, LABELS)
    labels = None if kind in ("encoded", "raw") else own_labels(rows, told, raw.prepared.findings, listed)
    if rows.encoded:
        notes.append(
            "released rows have another form than raw images, and nothing here gives it to new ones: a model of them "
            "cannot read new images"
        )
    pool = _pool(rows, raw.prepared.findings)
    return Linked(rows, links, primary, labels, kind == "raw", pool, tuple(notes))


def _pool(released: Rows, findings: Sequence[str]) -> tuple[Rows, np.ndarray | None] | None:
    """More rows of the generator behind a release, and their labels."""
    folder = released.place / SAMPLES
    if not folder.is_dir():
        return None
    rows = Rows.found(folder)
    rows = replace(rows, encoded=rows.encoded or released.encoded)
    return rows, own_labels(rows, read_about(folder), findings, folder / LABELS)


def _only_members(table: Path) -> bool:
    """If a table of links names raw rows alone.

    `bench release` writes such for rows without links.
    """
    return "released" not in cells_of(table, (), ("released", "raw", "row"), rest=True).columns


def check_release(table: Path, folder: Path) -> bool:
    """True if a table of links names this release, False if none.

    Raises DataError if it names another one: its links would lead to other people, and hide every leak.
    """
    cells = cells_of(table, (), (RELEASE,), rest=False)
    if RELEASE not in cells.columns:
        return False
    about = folder / ABOUT
    own = hashlib.sha256(about.read_bytes()).hexdigest() if about.is_file() else ""
    if set(cells[RELEASE]) != {own}:
        raise DataError(
            f"{called(table)} is of another release than the folder: {RELEASE} is the SHA-256 of its {ABOUT}. Name "
            "the table that `bench release` wrote beside this folder"
        )
    return True


def _check_raw(links: np.ndarray | None, primary: np.ndarray | None) -> None:
    if links is None:
        raise DataError(f'imported: "labels": "raw" in {ABOUT} takes labels by links, and there are none: add {LINKS}')
    if len(np.unique(links[:, 1])) < len(links):
        raise DataError(
            f'imported: "labels": "raw" in {ABOUT} needs one raw row a released row, and links name several: add '
            f"{LABELS}"
        )


def _links(table: Path, rows: Rows, raw: _Raw) -> tuple[np.ndarray, np.ndarray | None]:
    check_release(table, rows.place)
    cells = lines_of(table, ("released",), ("raw", "row", "primary", "digest"))
    if ("raw" in cells.columns) == ("row" in cells.columns):
        raise DataError(f"{called(table)}: expected one of the columns raw and row beside released. {LAYOUT}")
    released = released_rows(table, cells["released"], rows)
    found = np.stack((raw.rows(table, cells), released), axis=1)
    twice = pd.DataFrame(found, index=cells.index).duplicated()
    refuse(table, cells.index[twice], "the link is listed a second time")
    primary = None
    if "primary" in cells.columns:
        marks = cells["primary"].str.strip()
        refuse(table, cells.index[~marks.isin(["0", "1"])], "primary is something else than 0 or 1")
        primary = (marks == "1").to_numpy()
        primary = primary if primary.any() else None
    return found, primary


def _by_name(rows: Rows, raw: _Raw) -> np.ndarray:
    """Links between images that are called alike, whatever the ending."""
    if rows.shape is not None:
        raise DataError(f'imported: "links": "names" in {ABOUT} is for images, and the rows are an array: add {LINKS}')

    def form(name: str) -> str:
        return spelling(PurePosixPath(name).with_suffix("").as_posix())

    places = raw.places(form)
    found = [places.get(form(name), places.get(PurePosixPath(form(name)).name, -1)) for name in rows.names]
    if lost := found.count(-1):
        raise DataError(
            f"imported: {lost} of {rows.count} released images are called as no raw image of {raw.prepared.name}, or "
            f"as several: list the pairs in {LINKS}"
        )
    return np.stack((np.array(found, dtype=np.int64), np.arange(rows.count)), axis=1)


def _members(recorded: Recorded, releases: Sequence[Linked], raw: _Raw) -> np.ndarray:
    """The raw rows behind the releases."""
    found = [each.links[:, 0] for each in releases if each.links is not None]
    table, word = recorded.tables(recorded.folder, MEMBERS), read_about(recorded.folder).get("members")
    given = recorded.tables(recorded.folder, LINKS)
    if given is not None and _only_members(given):
        table = given
    if table is not None:
        check_release(table, recorded.folder)
        cells = lines_of(table, (), ("raw", "row", "digest"))
        if ("raw" in cells.columns) == ("row" in cells.columns):
            raise DataError(f"{called(table)}: expected one of the columns raw and row. {LAYOUT}")
        rows = raw.rows(table, cells)
        refuse(table, cells.index[pd.Series(rows).duplicated().to_numpy()], "the row is listed a second time")
        found.append(rows)
    elif word is not None:
        if raw.prepared.parts is None:
            raise DataError(f'imported: "members": "{word}" in {ABOUT}, and {raw.prepared.name} has no official parts')
        found.append(np.flatnonzero(raw.prepared.parts == PARTS.index(str(word))))
    if not found or not sum(map(len, found)):
        raise DataError(
            f"imported: nothing says which raw rows of {raw.prepared.name} the release was made of: add {LINKS} if "
            f"released rows come of single raw rows, else {MEMBERS}, or members (train, val or test) to {ABOUT} if it "
            f"was an official part. {LAYOUT}"
        )
    members = np.unique(np.concatenate(found))
    partly = sum(each.links is None for each in releases)
    if partly and table is None and word is None and partly < len(releases):
        raise DataError(f"imported: {partly} of {len(releases)} releases have no {LINKS}: add it, or {MEMBERS}")
    return members


def _check_words(told: Mapping[str, Any]) -> None:
    for name, known in WORDS.items():
        if name in told and told[name] not in known:
            raise DataError(f"imported: {name} in {ABOUT} must be one of {', '.join(known)}, got {told[name]!r:.40}")
