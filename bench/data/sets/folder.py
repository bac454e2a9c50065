"""The user's own images: `folder:PATH` with class sub-folders or a CSV.

The CSV is PATH/labels.csv or PATH itself. Columns: `path` (relative to the CSV's folder), optionally `subject` and
`split` (train, val, test, or blank), and either `class`, a word each for exclusive classes, or one column a finding
with 1, 0, or blank or -1 for unknown; `[exclusive=true]` says that each row has exactly one of them, and that is
checked. The columns `sex`, `age`, `view` and `site`, and those called `attribute:NAME`, hold words: groups for which
figures are given apart. Without labels.csv, a table of other libraries is read (`bench.data.sets.image_tables`). Class
sub-folders give exclusive classes and know no people; they are
not called train, val and test, which are parts, nor patient1 and patient2, which are people. Messages name lines and
counts, neither files nor cells, because such data may be confidential.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PureWindowsPath
from typing import ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Scan, Source
from bench.data.csv_tables import MARKS, read_table
from bench.data.dicom import IDENTIFIED, UNSETTLED, self_description
from bench.data.picture import coloured
from bench.data.raw_files import (
    ENDINGS,
    Tree,
    absent,
    attributes_of,
    has_system_name,
    is_image,
    of_row,
    stamp_files,
    stamp_folder,
    walk,
)
from bench.data.sets.image_tables import METADATA, other_table, read_other
from bench.data.subjects import NOTHING, UNKNOWN, contradictions, person, spelling, unreadable
from bench.progress import stage
from bench.validation import one_of, within

_TABLES = frozenset({".csv", ".tsv", ".xls", ".xlsx", ".ods"})
BurnedIn = Literal["ask", "keep", "leave-out"]
_BURNED = {
    "ask": f", {UNSETTLED}: clean them, leave them out by [burned_in=leave-out], or, after a look, [burned_in=keep]",
    "keep": ", and were looked at, as is stated",
    "leave-out": ", and are left out",
}  # fmt: skip
_LETTER = r"[^\W\d_]"
_PERSON = re.compile(
    r"(patient|person|subject)s?[ _.-]*(ids?|number|num|no|nr|key|code|name)?|"
    r"(pat|pt|case|client|p)[ _.-]*(ids?|number|num|no|nr|key|code|name)|mrn|nhs[ _.-]*(number|no)",
    re.IGNORECASE,
)
_PEOPLE = re.compile(r"(patient|person|subject|pat|case)s?[ _.-]*(id|no)?[ _.-]*[0-9]+", re.IGNORECASE)
_KNOWN = ("path", "subject", "class", "split")
_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test", "": ""}
_PART_FOLDERS = {*_PARTS, "training", "testing", "dev", "evaluation"}
_ATTRIBUTES = ("sex", "age", "view", "site")
_PREFIX = "attribute:"
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_LOOKED_AT = 16
_BINS = "as in a recycle bin or among thumbnails or hidden files"
_FEW, _MANY, _IMAGES = 10, 32, 5  # sub-folders that are classes, or of so few images each more likely people


def unread_tables(files: Iterable[Path]) -> int:
    """Number of tables beside class folders; DataError for a misspelt labels.csv."""
    tables = [path for path in files if not _TABLES.isdisjoint(map(str.lower, path.suffixes))]
    meant = sum(path.name.lower().partition(".")[0].strip() == "labels" for path in tables)
    if meant:
        raise DataError(
            f"folder: expected class sub-folders, or a table called labels.csv, found {meant} files called labels with "
            f"other capitals or another ending: save it as labels.csv, or remove it to read the class sub-folders"
        )
    return len(tables)


def table_of(place: Path) -> Path | None:
    """The table of a place's images; None for class folders."""
    if place.is_file():
        return place
    table = place / "labels.csv"
    if table.exists() or table.is_symlink():
        return table
    return other_table(place)


def _rows(table: Path, obtain: str) -> pd.DataFrame:
    """The table with this project's columns, as `read_table` gives it."""
    if table.name in METADATA:
        return read_other(table)
    return read_table(table, ("path",), optional=(*_KNOWN[1:], *_ATTRIBUTES), rest=True, obtain=obtain)


def findings_of(rows: pd.DataFrame, findings: Sequence[str]) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """Labels of the findings, and the bad lines with their reasons."""
    bad: list[tuple[int, str]] = []
    for column in findings:
        odd = rows.index[~rows[column].str.strip().isin(list(MARKS))]
        wrong = [f"{column} is something else than 1, 0, blank or -1"] * len(odd)
        cells = rows[column][odd]
        if cells.str.strip().str.casefold().isin(NOTHING).any():
            wrong[0] += ": leave cells blank if nothing is known, for NA might be a class"
        elif len(odd) and cells.str.contains(_LETTER).all():  # a column of words, no damaged finding
            wrong[0] += f": call it class if it names classes, or attribute:{column} if it names groups"
        bad += zip(map(int, odd), wrong, strict=True)
    return rows[list(findings)].apply(lambda column: column.str.strip().map(MARKS)), bad


def one_hot(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """One-hot labels of the column class, spellings joined; lines without a class."""
    classes = {cell: _class(cell) for cell in rows["class"].unique()}
    first = {word: cell for cell, word in reversed(classes.items()) if word is not None}
    numbers = {word: number for number, word in enumerate(sorted(first, key=lambda word: spelling(first[word])))}
    codes = rows["class"].map({cell: -1 if word is None else numbers[word] for cell, word in classes.items()})
    marks = {" ".join(first[word].split()): (codes == number).astype(float) for word, number in numbers.items()}
    return pd.DataFrame(marks, index=rows.index), [
        (int(line), "class is blank or a word for nothing, such as none or unknown: name the class")
        for line in rows.index[codes < 0]
    ]


def _class(cell: str) -> str | tuple[str, str, int] | None:
    """The key of a class; unlike people, 1.1 and 1.10 differ.

    >>> _class("1") == _class("01") == _class("1.0") != _class("1.1") != _class("1.10")
    True
    """
    key = person(cell)
    return spelling(cell) if isinstance(key, tuple) and key[-1] < 0 else key


@dataclass(frozen=True)
class Folder(Source):
    """The user's own images in a folder.

    Args:
        path: The folder, or a CSV file; relative to the working directory or to a data root.
        channels: 1 grey or 3 colour.
        bits: How many bits of a grey value count (8 to 16) if files have more than eight and do not say; None if
            they do.
        exclusive: Whether the label columns of the CSV are classes, exactly one a row; for sub-folders, that they are
            classes and not people, regardless of their names, their number and their images.
        share: Whether pixels may leave this machine, as in figures on pages.
        burned_in: What becomes of DICOM images that say that text is part of their pixels (BurnedInAnnotation YES):
            "ask" notes their number, and a release is refused; "leave-out"; "keep" if somebody has looked at them.
    """

    path: str
    channels: int = 1
    bits: int | None = None
    exclusive: bool = False
    share: bool = False
    burned_in: BurnedIn = "ask"

    name: ClassVar[str] = "folder"
    title: ClassVar[str] = "Your own images"
    source: ClassVar[str] = "the user"
    public: ClassVar[str] = "folder"
    origin: ClassVar[str] = "folder"
    shareable: ClassVar[bool] = False
    obtainable: ClassVar[bool] = False
    licence: ClassVar[str] = "the user's"
    obtain: ClassVar[str] = (
        "Give folder:PATH a folder with one sub-folder of images per class, or a CSV (PATH/labels.csv or PATH itself) "
        "with the columns path, optionally subject and split (train, val, test), and either class (a word) or one per "
        "finding with 1, 0, blank or -1; sex, age, view, site and attribute:NAME may hold groups of rows."
    )
    default_size: ClassVar[int | None] = 64
    confidential: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path must name a folder or a CSV file, got nothing: write folder:PATH")
        if self.channels not in (1, 3):
            raise ValueError(f"channels must be 1 (grey) or 3 (colour), got {self.channels}")
        within(8, 16, bits=self.bits)
        one_of(get_args(BurnedIn), burned_in=self.burned_in)

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        place = self._place(roots)
        table = table_of(place)
        contents = self._classes(place) if table is None else self._listed(table)
        stage(f"read the headers of {len(contents.paths or ())} files")
        contents = self._described(contents)
        notes = (*contents.notes, *self._greyed(contents.paths or ()))
        origin = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
        return Scan(
            labels=contents.labels,
            subjects=contents.subjects,
            findings=contents.findings,
            exclusive=contents.exclusive,
            paths=contents.paths,
            notes=notes,
            attributes=contents.attributes,
            parts=contents.parts,
            channels=self.channels,
            bits=self.bits,
            folder=place if table is None else table.parent,
            version="class folders" if table is None else "table",
            origin=f"folder-{origin}",
            shareable=self.share,
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Names, sizes and times of all files, which may change any time."""
        place = self._place(roots)
        table = table_of(place)
        if table is not None:
            contents = self._listed(table)
            return "\n".join((stamp_files([table, *(contents.paths or ())]), *contents.notes))
        tree = self._walk(place)
        return "\n".join((*(stamp_folder(part, sizes=True) for part in tree.folders), *tree.notes()))

    def _place(self, roots: Sequence[Path]) -> Path:
        named = Path(self.path).expanduser()
        tried = [named] if named.is_absolute() else [Path.cwd() / named, *(root / named for root in roots)]
        for place in tried:
            if place.exists():
                return Path(os.path.realpath(place))
        looked = "\n".join(f"  {place}" for place in tried)
        raise DataError(
            f"{self.name}: expected a folder or CSV file at one of\n{looked}\nand found none. {self.obtain}"
        )

    def _walk(self, place: Path) -> Tree:
        try:
            return walk(place)
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from None

    def _classes(self, place: Path) -> Scan:
        tree = self._walk(place)
        parts = [part for part in tree.folders if part.parent == place and part != place]
        files: dict[str, list[Path]] = {part.name: [] for part in parts}
        for path in tree.files:
            if path.parent != place and is_image(path):
                files[path.relative_to(place).parts[0]].append(path)
        named = [name for name in files if name.lower() in _PART_FOLDERS]
        if named and (len(named) > 1 or len(named) == len(files)):
            raise DataError(
                f"{self.name}: expected sub-folders that are classes, found {', '.join(named)}, which are parts of a "
                f"split: name one of them (PATH/{named[0]}), or list the images in a CSV with the columns path, class "
                f"and split"
            )
        empty = [name for name, images in files.items() if not images]
        if len(parts) < 2 or empty:
            none = f"no image in {', '.join(empty)} (by the endings {', '.join(ENDINGS)}, or DICOM without one)"
            what = none if empty else f"{len(parts)} sub-folders and no labels.csv"
            what = "; ".join((what, *archives(tree.files)))
            raise DataError(
                f"{self.name}: expected at least two class sub-folders with images, found {what}. {self.obtain}"
            )
        total = sum(map(len, files.values()))
        called = sum(_PEOPLE.fullmatch(name) is not None for name in files)
        many = len(parts) > _FEW and (len(parts) > _MANY or total < _IMAGES * len(parts))
        if not self.exclusive and (many or 2 * called > len(parts)):
            raise DataError(
                f"{self.name}: {len(parts)} sub-folders with {total} images look like people, whose names would become "
                f"the names of classes: list people in a CSV with the columns path, subject and class; if each folder "
                f"is a class, say so with folder:PATH[exclusive=true]"
            )
        tables = unread_tables(path for path in tree.files if path.parent == place)
        packed = sum(path.name.lower().endswith(_ARCHIVES) for path in tree.files)
        left = len(tree.files) - total - tables - packed
        passed_over = (
            (tables, "tables beside the class folders are not read: folder:PATH/TABLE.csv would"),
            (left, "files that are no images of a class are left out"),
        )
        numbers = [number for number, images in enumerate(files.values()) for _ in images]
        return Scan(
            labels=np.eye(len(parts), dtype=np.float32)[numbers],
            subjects=None,
            findings=tuple(files),
            exclusive=True,
            paths=[path for images in files.values() for path in images],
            notes=(
                UNKNOWN,
                *(f"{count} {note}" for count, note in passed_over if count),
                *archives(tree.files),
                *tree.notes(),
            ),
        )

    def _listed(self, table: Path) -> Scan:
        rows = _rows(table, self.obtain)
        if "" in rows.columns:
            raise DataError(f"{table}: column {list(rows.columns).index('') + 1} has no name. Name it or remove it")
        attributes = {column: name for column in rows.columns if (name := _attribute(column)) is not None}
        findings = tuple(column for column in rows.columns if column not in _KNOWN and column not in attributes)
        if len(set(attributes.values())) < len(attributes):
            raise DataError(f"{table}: expected each attribute once, found {', '.join(attributes)}. Remove all but one")
        who = [column for column in findings if _PERSON.fullmatch(column.strip())]
        if who and "subject" not in rows.columns:  # as a finding of 0 and 1 it would part no people
            raise DataError(
                f"{table}: the column {who[0]} seems to name people. Call it subject if it does, or attribute:{who[0]}"
            )
        classes = "class" in rows.columns
        if classes and findings:
            raise DataError(
                f"{table}: the column class holds exclusive classes, so there can be no other labels; found "
                f"{', '.join(findings)}. Remove them, call them attribute:NAME, or leave class out"
            )
        if not (findings or classes) or not len(rows):
            raise DataError(
                f"{table}: expected rows and at least one column of labels beside path and subject, found "
                f"{len(rows)} rows and the columns {', '.join(rows.columns)}. {self.obtain}"
            )
        marks, bad = one_hot(rows) if classes else findings_of(rows, findings)
        if self.exclusive and not classes and not bad:
            odd = rows.index[((marks == 1).sum(axis=1) != 1) | marks.isna().any(axis=1)]
            bad += [(int(line), "expected exactly one of the classes to be 1 and the others 0") for line in odd]
        for column, name in attributes.items():
            bad += [(int(rows.index[row]), f"{column}: {why}") for row, why in unreadable(name, list(rows[column]))]
        parts = None
        if "split" in rows.columns:
            parts = rows["split"].str.strip().str.lower().map(_PARTS)
            odd = rows.index[parts.isna()]
            bad += [(int(line), "split is something else than train, val, test or blank") for line in odd]
        listed_as, notes = _as_on_disk(table.parent, rows["path"])
        paths = [table.parent / name for name in listed_as]
        seen: set[str] = set()
        gone: dict[int, str] = {}
        for line, path, listed in zip(map(int, rows.index), paths, listed_as, strict=True):
            real = os.path.realpath(path)
            if real in seen:
                bad.append((line, "the image is listed a second time"))
            elif has_system_name(listed if not listed.startswith("/") else path.name):
                bad.append((line, f"the image has a name that systems make, {_BINS}: move or rename it to keep it"))
            elif not os.path.isfile(path):  # noqa: PTH113 - False too for names that no file system takes
                gone[line] = listed
            seen.add(real)
        bad += zip(gone, absent(table.parent, gone.values()), strict=True) if gone else ()
        if bad:
            lines = "".join(f"\n  line {line}: {what}" for line, what in sorted(bad)[:20])
            raise DataError(
                f"{table}: {len(bad)} bad rows{' (the first 20)' if len(bad) > 20 else ''}:{lines}\n"
                f"Correct or remove them."
            )
        known = "subject" in rows.columns
        named = {name: list(rows[column]) for column, name in attributes.items()}
        return Scan(
            labels=marks.to_numpy(dtype=np.float32),
            subjects=list(rows["subject"]) if known else None,
            findings=tuple(marks.columns),
            exclusive=self.exclusive or classes,
            paths=paths,
            notes=(
                *(() if known else (UNKNOWN,)),
                *(() if parts is None else ("the column split is read by --splits official alone",)),
                *(contradictions(list(rows["subject"]), named) if known else ()),
                *notes,
                *(_other_folder(listed_as, rows["class"]) if classes else ()),
                *(
                    f"{other.name} beside {table.name} is not read: folder:PATH/{other.name} would"
                    for other in map(table.with_name, METADATA)
                    if other.is_file() and table.name == "labels.csv"
                ),
                *self._unlisted(table.parent, paths, seen),
            ),
            attributes=named,
            parts=None if parts is None else list(parts),
        )

    def _described(self, contents: Scan) -> Scan:
        """The images among the files, by what DICOM files say of themselves.

        Raises DataError if a class would have none.
        """
        paths = contents.paths or ()
        told = [self_description(path) for path in paths]
        kept = np.array([each is None or each.image for each in told], dtype=bool)
        marked = np.array([each is not None and each.image and each.burned_in == "YES" for each in told], dtype=bool)
        if self.burned_in == "leave-out":
            kept &= ~marked
        dicom = [each for each, here in zip(told, kept, strict=True) if each is not None and here]
        others = sum(each is not None and not each.image for each in told)
        text = f"say that text is part of their pixels{_BURNED[self.burned_in]}"
        counts = (
            (others, f"of {len(paths)} files are DICOM objects without an image, such as reports, and are left out"),
            (int(marked.sum()), f"of {len(paths)} images {text}"),
            (sum(each.captured and not each.burned_in for each in dicom),
             f"of {len(paths)} images are scanned films or captured screens that do not say whether they show text"),
            (sum(each.overlays for each in dicom), f"of {len(paths)} images hold overlays, which are not shown"),
            (sum(each.removed not in ("YES", "NO") for each in dicom),
             f"of {len(paths)} images do not say that the patient's identity was removed from the file"),
            (sum(each.removed == "NO" for each in dicom),
             f"of {len(paths)} images {IDENTIFIED}, {UNSETTLED}: de-identify them, for their pixels may show it, too"),
            (sum(each.removed == "YES" and not each.codes for each in dicom),
             f"of {len(paths)} images say that the patient's identity was removed, and not how"),
            *((sum(code in each.codes for each in dicom),
               f"of {len(paths)} images say that the patient's identity was removed by {code}")
              for code in sorted({code for each in dicom for code in each.codes})),
        )  # fmt: skip
        notes = tuple(f"{count} {what}" for count, what in counts if count)
        if (
            contents.exclusive
            and (gone := (contents.labels[kept].sum(axis=0) == 0) & (contents.labels.sum(axis=0) > 0)).any()
        ):
            raise DataError(f"{self.name}: {int(gone.sum())} classes have no image left: {'; '.join(notes)}")
        rows = kept.tolist()
        return replace(
            contents,
            labels=contents.labels[kept],
            subjects=None if contents.subjects is None else of_row(contents.subjects, rows),
            paths=[path for path, here in zip(paths, rows, strict=True) if here],
            notes=(*contents.notes, *notes),
            attributes=attributes_of(contents.attributes, kept),
            parts=None if contents.parts is None else of_row(contents.parts, rows),
        )

    def _greyed(self, paths: Sequence[Path]) -> Iterator[str]:
        """A note if images, sampled over all, lose their colours."""
        seen = paths[:: max(1, len(paths) // _LOOKED_AT)] if self.channels == 1 else ()
        if number := sum(map(coloured, seen)):
            yield f"{number} of {len(seen)} images looked at show colours and become grey: [channels=3] keeps them"

    def _unlisted(self, top: Path, paths: Sequence[Path], seen: AbstractSet[str]) -> Iterator[str]:
        """A note if images beside or below the CSV are not listed."""
        named = set(map(os.path.abspath, paths))
        try:
            tree = walk(top)
            images = [path for path in tree.files if is_image(path)]
        except DataError as error:
            yield f"images that the table does not list are not counted: {error}"
            return
        left = sum(str(path) not in named and os.path.realpath(path) not in seen for path in images)
        if left:
            yield f"{left} images below the table's folder that it does not list are left out"
        yield from archives(tree.files)
        yield from tree.notes(named)


def archives(files: Iterable[Path]) -> Iterator[str]:
    """A note that counts archives, which may hold images."""
    if count := sum(path.name.lower().endswith(_ARCHIVES) for path in files):
        yield f"{count} archives (zip, tar, 7z and the like) are not opened: unpack them if they hold images"


def _as_on_disk(top: Path, listed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Listed paths as files are called here, and notes.

    A table may be written with \\ between folders, or with accents coded in another way (NFC, NFD).
    """
    names = list(listed)
    away = {number: name for number, name in enumerate(names) if not os.path.isfile(top / name)}  # noqa: PTH113
    away = {number: name for number, name in away.items() if "\\" in name or not name.isascii()}
    if not away:
        return names, []
    try:
        here = [path.relative_to(top).as_posix() for path in walk(top).files]
    except DataError:
        here = []
    forms: dict[str, list[str]] = {}
    for name in here:
        forms.setdefault(unicodedata.normalize("NFC", name), []).append(name)
    changed = 0
    for number, name in away.items():
        found = forms.get(unicodedata.normalize("NFC", str(PureWindowsPath(name).as_posix())), [])
        if len(found) == 1:
            names[number], changed = found[0], changed + 1
    text = f"{changed} images are listed with \\ between folders, or with accents coded in another way than files are"
    return names, [text] if changed else []


def _other_folder(listed: Sequence[str], classes: Iterable[str]) -> Iterator[str]:
    """A note that counts images in folders called like another class."""
    words = [" ".join(word.split()).casefold() for word in classes]
    known = {*words}
    count = sum(
        bool(there := known & {part.casefold() for part in PurePath(name).parts[:-1]}) and word not in there
        for name, word in zip(listed, words, strict=True)
    )
    if count:
        yield f"{count} images lie in a folder that is called like another class than the table's, which is taken"


def _attribute(column: str) -> str | None:
    """The attribute of a column; None for other columns."""
    if column in _ATTRIBUTES:
        return column
    return column.removeprefix(_PREFIX) if column.startswith(_PREFIX) else None
