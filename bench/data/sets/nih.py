"""ChestX-ray14 of the NIH Clinical Center (Wang et al. 2017).

The official layout: Data_Entry_2017.csv (or
Data_Entry_2017_v2020.csv), images_001/images/*.png to images_012 or one flat images folder, and train_val_list.txt
with test_list.txt, which must be disjoint by patient. "No Finding" is 0 for all fourteen findings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import read_list, read_table, refuse
from bench.data.raw_files import FileSource
from bench.data.subjects import person

FINDINGS = (
    "Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia",
    "Pneumothorax", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia",
)  # fmt: skip
_TABLES = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")
_ATTRIBUTES = {
    "sex": ("Patient Sex", "Patient Gender"), "age": ("Patient Age",), "view": ("View Position",)
}  # fmt: skip
"""The columns of each attribute, one name an edition of the table."""
_ROWS, _PEOPLE = 112_120, 30_805
_NAME = re.compile(r"[0-9]{8}_[0-9]{3}\.png")
_PLACES = (
    "NIH", "ChestX-ray14", "ChestX-ray8", "chestxray14", "CXR8", "ChestXray-NIHCC", "nih-chest-xrays/data",
)  # fmt: skip
_LISTS = ("train_val_list.txt", "test_list.txt")


@dataclass(frozen=True)
class NIH(FileSource):
    """Frontal chest X-rays of adults with fourteen findings mined from reports."""

    name: ClassVar[str] = "nih"
    title: ClassVar[str] = "NIH ChestX-ray14"
    source: ClassVar[str] = "Wang et al. 2017, CVPR, doi:10.1109/CVPR.2017.369; NIH Clinical Center"
    public: ClassVar[str] = "kermany-cxr"
    origin: ClassVar[str] = "nih-cxr"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "free use; cite Wang et al. 2017, acknowledge the NIH Clinical Center"
    obtain: ClassVar[str] = (
        "Get Data_Entry_2017_v2020.csv, train_val_list.txt, test_list.txt and the image archives from "
        "https://nihcc.app.box.com/v/ChestXray-NIHCC and unpack the archives into images_001, images_002, ..."
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = _PLACES
    markers: ClassVar[tuple[str, ...]] = _TABLES
    tables: ClassVar[tuple[str, ...]] = (*_TABLES, *_LISTS)
    images: ClassVar[tuple[str, ...]] = ("images_*/images", "images")

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        table_path = next(top / name for name in _TABLES if (top / name).exists())
        columns = [column for names in _ATTRIBUTES.values() for column in names]
        needed = ("Image Index", "Finding Labels", "Patient ID")
        table = read_table(table_path, needed, optional=columns, obtain=self.obtain)
        entries = [(name, folder / name) for folder in _folders(top) for name in os.listdir(folder)]  # noqa: PTH208
        files = dict(entries)
        here = table["Image Index"].isin(files)
        if not here.any():
            raise DataError(
                f"{self.name}: none of the {len(table)} images listed in {table_path} was found in "
                f"{top}/images_*/images or {top}/images. {self.obtain}"
            )
        people = dict(zip(table["Image Index"], table["Patient ID"], strict=True))
        refuse(table["Image Index"].duplicated(), table_path, "an image listed a second time", self.obtain)
        self._check_names(table_path, people)
        parts, note = self._parts(top, people, table)
        notes = [note]
        if not here.all():
            notes.append(f"{int((~here).sum())} of {len(table)} listed images are not on this machine")
        if len(files) < len(entries):
            notes.append(f"{len(entries) - len(files)} names lie in two folders of images; the last is read")
        labels = np.stack([_marks(table_path, line, cell) for line, cell in table["Finding Labels"].items()])
        return Scan(
            labels=labels[here.to_numpy()],
            subjects=list(table["Patient ID"][here]),
            findings=FINDINGS,
            exclusive=False,
            paths=[files[name] for name in table["Image Index"][here]],
            folder=top,
            version=table_path.stem,
            notes=tuple(notes),
            attributes={
                name: list(table[column][here])
                for name, columns in _ATTRIBUTES.items()
                for column in columns
                if column in table
            },
            parts=None if parts is None else [parts.get(name, "") for name in table["Image Index"][here]],
            official=(
                Official("listed images", len(table), (_ROWS,)),
                Official("listed patients", table["Patient ID"].nunique(), (_PEOPLE,)),
            ),
        )

    def top(self, roots: Sequence[Path]) -> Path:
        """The set's folder; a hint on Kaggle's sample if missing."""
        try:
            return super().top(roots)
        except DataError as error:
            sample = [root / name for root in roots for name in ("sample_labels.csv", "nih/sample_labels.csv")]
            path = next((path for path in sample if path.exists()), None)
            if path is None:
                raise
            raise DataError(f"{error} (Found {path}: Kaggle's 5 % sample, which is another version.)") from None

    def _check_names(self, path: Path, people: dict[str, str]) -> None:
        """Raise DataError if an official name starts with another patient's number."""
        torn = sum(
            person(patient) not in (None, person(image[:8]))
            for image, patient in people.items()
            if _NAME.fullmatch(image)
        )
        if torn:
            raise DataError(
                f"{path}: expected names to start with the patient of their line, as 00000001_000.png does with 1, "
                f"found {torn} of {len(people)} beside another Patient ID: the columns do not belong together. "
                f"{self.obtain}"
            )

    def _parts(self, top: Path, people: dict[str, str], table: pd.DataFrame) -> tuple[dict[str, str] | None, str]:
        """Official part of each image, and a note; DataError if mixed."""
        if not all((top / name).exists() for name in _LISTS):
            return None, f"official lists ({', '.join(_LISTS)}) not found and not checked"
        listed = {name: read_list(top / name, self.obtain) for name in _LISTS}
        sides = [
            {who for image in images if image in people and (who := person(people[image])) is not None}
            for images in listed.values()
        ]
        both = sides[0] & sides[1]
        if both:
            line = next(line for line, patient in table["Patient ID"].items() if person(patient) in both)
            raise DataError(
                f"{self.name}: expected {_LISTS[0]} and {_LISTS[1]} in {top} to share no patient, found {len(both)} in "
                f"both, first the one of line {line} of the table. {self.obtain}"
            )
        listed_here = sum(image in people for images in listed.values() for image in images)
        if not listed_here:
            raise DataError(
                f"{self.name}: expected {_LISTS[0]} and {_LISTS[1]} in {top} to name images such as "
                f"00000001_000.png, found none of the table's {len(people)} in them. {self.obtain}"
            )
        parts = {image: part for part, name in zip(("train", "test"), _LISTS, strict=True) for image in listed[name]}
        return parts, "official lists are disjoint by patient"


def _folders(top: Path) -> list[Path]:
    return [folder for folder in (*sorted(top.glob("images_*/images")), top / "images") if folder.is_dir()]


def _marks(path: Path, line: object, cell: str) -> np.ndarray:
    """(14,) float32 labels of a cell such as "Edema|Mass"."""
    named = [] if cell == "No Finding" else cell.split("|")
    unknown = [name for name in named if name not in FINDINGS]
    if unknown:
        raise DataError(
            f"{path}: line {line}: expected findings among {', '.join(FINDINGS)} joined by '|', or "
            f"'No Finding'; got {cell!r}"
        )
    return np.array([name in named for name in FINDINGS], dtype=np.float32)
