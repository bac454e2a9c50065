"""Images in a folder of one's own: `folder:PATH`, with class sub-folders (PATH/CLASS/**/*.png) or with a CSV.

The CSV is PATH/labels.csv or PATH itself. Columns: `path` (relative to the CSV's folder), optionally `subject`, and one
column a finding with 1, 0, or blank or -1 for unknown. Class sub-folders give exclusive classes and know no people.
Messages name lines and counts, not files, because such data may be confidential.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import DataError, Scan, Source
from bench.data.csv_table import read_table
from bench.data.roots import stamp_files, stamp_folder

_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm"})
_MARKS = {"1": 1.0, "1.0": 1.0, "0": 0.0, "0.0": 0.0, "-1": np.nan, "-1.0": np.nan, "": np.nan}


@dataclass(frozen=True)
class Folder(Source):
    """Images in a folder of one's own.

    Args:
        path: The folder, or a CSV file; relative to the working directory or to a data root.
        channels: 1 grey or 3 colour.
        share: Whether pixels may leave this machine, as in figures on pages.
    """

    path: str
    channels: int = 1
    share: bool = False

    name: ClassVar[str] = "folder"
    title: ClassVar[str] = "Your own images"
    source: ClassVar[str] = "the user"
    public: ClassVar[str] = "folder"
    origin: ClassVar[str] = "folder"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "the user's"
    obtain: ClassVar[str] = (
        "Give folder:PATH a folder with one sub-folder of images per class, or a CSV (PATH/labels.csv or PATH itself) "
        "with the columns path, optionally subject, and one per finding with 1, 0, blank or -1."
    )
    default_size: ClassVar[int | None] = 64
    confidential: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path must name a folder or a CSV file, got nothing: write folder:PATH")
        if self.channels not in (1, 3):
            raise ValueError(f"channels must be 1 (grey) or 3 (colour), got {self.channels}")

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        place = self._place(roots)
        table = _table(place)
        found = self._classes(place) if table is None else self._listed(table)
        origin = hashlib.sha256(str(place).encode()).hexdigest()[:16]
        return Scan(
            labels=found.labels,
            subjects=found.subjects,
            findings=found.findings,
            exclusive=found.exclusive,
            paths=found.paths,
            notes=found.notes,
            channels=self.channels,
            version="class folders" if table is None else "table",
            origin=f"folder-{origin}",
            shareable=self.share,
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Names, sizes and times of all files: they are the user's own and may change any time."""
        place = self._place(roots)
        table = _table(place)
        if table is not None:
            return stamp_files([table, *(path for path in self._listed(table).paths or ())])
        tree = [place, *(part for part in sorted(place.rglob("*")) if part.is_dir())]
        return "\n".join(stamp_folder(part, sizes=True) for part in tree)

    def _place(self, roots: Sequence[Path]) -> Path:
        named = Path(self.path).expanduser()
        tried = [named] if named.is_absolute() else [Path.cwd() / named, *(root / named for root in roots)]
        for place in tried:
            if place.exists():
                return place.resolve()
        looked = "\n".join(f"  {place}" for place in tried)
        raise DataError(
            f"{self.name}: expected a folder or CSV file at one of\n{looked}\nand found none. {self.obtain}"
        )

    def _classes(self, place: Path) -> Scan:
        parts = sorted(part for part in place.iterdir() if part.is_dir() and not part.name.startswith("."))
        files = {part.name: sorted(path for path in part.rglob("*") if _is_image(path)) for part in parts}
        empty = [name for name, found in files.items() if not found]
        if len(parts) < 2 or empty:
            what = f"no image in {', '.join(empty)}" if empty else f"{len(parts)} sub-folders and no labels.csv"
            raise DataError(
                f"{self.name}: expected at least two class sub-folders with images, found {what}. {self.obtain}"
            )
        numbers = [number for number, found in enumerate(files.values()) for _ in found]
        return Scan(
            labels=np.eye(len(parts), dtype=np.float32)[numbers],
            subjects=None,
            findings=tuple(files),
            exclusive=True,
            paths=[path for found in files.values() for path in found],
            notes=("people are not known: images of one person may stand on two sides",),
        )

    def _listed(self, table: Path) -> Scan:
        rows = read_table(table, ("path",), rest=True, obtain=self.obtain)
        findings = tuple(column for column in rows.columns if column not in ("path", "subject"))
        if not findings or not len(rows):
            raise DataError(
                f"{table}: expected rows and at least one column of labels beside path and subject, found "
                f"{len(rows)} rows and the columns {', '.join(rows.columns)}. {self.obtain}"
            )
        bad = []
        for column in findings:
            odd = rows.index[~rows[column].str.strip().isin(list(_MARKS))]
            bad += [(int(line), f"{column} is {rows[column][line]!r}, expected 1, 0, blank or -1") for line in odd]
        paths = [table.parent / name for name in rows["path"]]
        bad += [
            (line, "the image was not found")
            for line, path in zip(rows.index, paths, strict=True)
            if not path.is_file()
        ]
        again = rows.index[rows["path"].duplicated()]
        bad += [(int(line), "the image is listed a second time") for line in again]
        if bad:
            lines = "".join(f"\n  line {line}: {what}" for line, what in sorted(bad)[:20])
            raise DataError(
                f"{table}: {len(bad)} bad rows{' (the first 20)' if len(bad) > 20 else ''}:{lines}\n"
                f"Mend or remove them."
            )
        marks = rows[list(findings)].apply(lambda column: column.str.strip().map(_MARKS))
        subjects = list(rows["subject"].str.strip()) if "subject" in rows.columns else None
        unknown = len(rows) if subjects is None else subjects.count("")
        return Scan(
            labels=marks.to_numpy(dtype=np.float32),
            subjects=subjects,
            findings=findings,
            exclusive=False,
            paths=paths,
            notes=(f"the person is unknown for {unknown} of {len(rows)} images",) if unknown else (),
        )


def _table(place: Path) -> Path | None:
    if place.is_file():
        return place
    return place / "labels.csv" if (place / "labels.csv").is_file() else None


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in _ENDINGS and not path.name.startswith(".") and path.is_file()
