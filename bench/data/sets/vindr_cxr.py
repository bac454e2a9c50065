"""VinDr-CXR 1.0.0 (Nguyen et al. 2022) in PhysioNet's layout.

Beside train/*.dicom and test/*.dicom lie annotations/image_labels_train.csv (three radiologists an image) and
annotations/image_labels_test.csv (a consensus).

A finding of a training image is yes if two of its three radiologists say so. Files are read as `bench.data.dicom`
says. The set names no patients. The data are under a use agreement: messages name lines and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import read_marks, read_table, refuse, tasks_of
from bench.data.raw_files import FileSource, of_row, physionet, present
from bench.data.subjects import UNKNOWN

_TABLES = {"train": "annotations/image_labels_train.csv", "test": "annotations/image_labels_test.csv"}
_READERS = 3  # of a training image
_ROWS = {"train": 15_000, "test": 3_000}


@dataclass(frozen=True)
class VinDrCXR(FileSource):
    """Chest X-rays of two Vietnamese hospitals with findings by radiologists.

    Args:
        tasks: Findings, joined by "+"; columns of the tables.
    """

    tasks: str = "Cardiomegaly+Aortic enlargement+Pleural thickening+Pleural effusion"

    name: ClassVar[str] = "vindr-cxr"
    title: ClassVar[str] = "VinDr-CXR"
    source: ClassVar[str] = "Nguyen et al. 2022, Scientific Data 9:429, doi:10.1038/s41597-022-01498-w"
    public: ClassVar[str] = "nih"
    origin: ClassVar[str] = "vindr-cxr"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "PhysioNet Credentialed Health Data License 1.5.0; not redistributable"
    obtain: ClassVar[str] = physionet("VinDr-CXR", "https://physionet.org/content/vindr-cxr/1.0.0/")
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("vindr-cxr/1.0.0", "physionet.org/files/vindr-cxr/1.0.0", "VinDr-CXR")
    markers: ClassVar[tuple[str, ...]] = tuple(_TABLES.values())
    tables: ClassVar[tuple[str, ...]] = tuple(_TABLES.values())
    images: ClassVar[tuple[str, ...]] = tuple(_TABLES)

    def __post_init__(self) -> None:
        tasks_of(self.tasks)

    @property
    def _findings(self) -> tuple[str, ...]:
        return tasks_of(self.tasks)

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        tables = {part: self._table(top / name, part) for part, name in _TABLES.items() if (top / name).exists()}
        whole = pd.concat([table.assign(part=part) for part, table in tables.items()])
        names = list(whole.index)
        if len(set(names)) != len(names):
            raise DataError(
                f"{self.name}: {len(names) - len(set(names))} images are in the tables of both parts. Fetch the tables "
                f"again. {self.obtain}"
            )
        paths = [top / part / f"{name}.dicom" for name, part in zip(names, whole["part"], strict=True)]
        here = present(paths, name=self.name, where=f"{top}/train/*.dicom and {top}/test/*.dicom", obtain=self.obtain)
        return Scan(
            labels=whole[list(self._findings)].to_numpy(dtype=np.float32)[here.rows],
            subjects=None,
            findings=self._findings,
            exclusive=False,
            paths=here.paths,
            folder=top,
            version="1.0.0",
            notes=(UNKNOWN, "a training image has a finding if two of three radiologists say so", *here.notes),
            parts=of_row(list(whole["part"]), here.rows),
            official=tuple(Official(f"{part} rows", len(table), (_ROWS[part],)) for part, table in tables.items()),
        )

    def _table(self, path: Path, part: str) -> pd.DataFrame:
        """0 or 1 for each image (the index) and task."""
        readers = ("rad_id",) if part == "train" else ()
        table = read_table(path, ("image_id", *readers, *self._findings), obtain=self.obtain)
        odd = ~table["image_id"].str.fullmatch("[0-9a-f]{32}")
        refuse(
            odd, path.name, "expected an image_id of 32 hexadecimal digits", f"Download the table again. {self.obtain}"
        )
        again = table.duplicated(subset=["image_id", *readers])
        refuse(again, path.name, "a reading listed a second time", self.obtain)
        readings = table.groupby("image_id")["image_id"].transform("size")
        few = table.index[readings != _READERS]
        if readers and len(few):
            raise DataError(
                f"{path.name}: line {few[0]}: expected {_READERS} radiologists an image, found {readings[few[0]]} "
                f"({table['image_id'][few].nunique()} such images). Download the table again. {self.obtain}"
            )
        for task in self._findings:
            table[task] = read_marks(path, table[task])
            if table[task].isna().any():
                line = table.index[table[task].isna()][0]
                raise DataError(
                    f"{path.name}: line {line}, column {task}: expected 0 or 1, found neither. {self.obtain}"
                )
        votes = table.groupby("image_id", sort=False)[list(self._findings)].agg(["sum", "count"])
        return pd.DataFrame(
            {task: (2 * votes[task]["sum"] > votes[task]["count"]).astype(float) for task in self._findings},
            index=votes.index,
        )
