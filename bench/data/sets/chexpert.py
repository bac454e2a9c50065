"""CheXpert (Irvin et al. 2019) in its official layout.

train.csv and valid.csv (test.csv if present) lie in CheXpert-v1.0 or CheXpert-v1.0-small, beside
train/patient00001/study1/view1_frontal.jpg. Or they lie in "CheXpert-v1.0 batch 1 (validate & csv)", as the download
has it, beside the batches 2 to 4, which hold the patients of train.csv without a folder train.

Uncertain (-1) and blank labels are unknown; rows in which none of the tasks is known are left out. The table of the
test images tells no views: their files' names say which are frontal, and none of these counts as AP or PA. The data are
under a use agreement: messages about rows name lines of the tables, never a file or a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import VIEWS, read_marks, read_table, refuse, tasks_of
from bench.data.raw_files import STAY, FileSource, attributes_of, of_row, present, stamp_files, stamp_images
from bench.validation import one_of

_TABLES = {"train.csv": "train", "valid.csv": "val", "test.csv": "test"}
_ROWS = {"train.csv": (223_414,), "valid.csv": (234,), "test.csv": (500, 668)}
_FOLDERS = ("CheXpert-v1.0-small", "CheXpert-v1.0", "CheXpert", "chexpertchestxrays-u20210408")
_BATCH = "CheXpert-v1.0*batch"
_FRONTAL = "frontal"  # a view that is not stated as AP or PA
_PATIENT = re.compile(r"(?:.*/)?(?:train|valid|test)/(patient[0-9]+)/study[0-9]+/[^/]+")


@dataclass(frozen=True)
class CheXpert(FileSource):
    """Frontal chest X-rays of a hospital with findings mined from reports.

    Args:
        tasks: Findings, joined by "+"; columns of the tables.
        views: Which frontal views to keep: AP and PA, or one of them.
    """

    tasks: str = "Atelectasis+Cardiomegaly+Consolidation+Edema+Pleural Effusion"
    views: Literal["frontal", "AP", "PA"] = "frontal"

    name: ClassVar[str] = "chexpert"
    title: ClassVar[str] = "CheXpert"
    source: ClassVar[str] = "Irvin et al. 2019, AAAI 33:590, doi:10.1609/aaai.v33i01.3301590"
    public: ClassVar[str] = "nih"
    origin: ClassVar[str] = "chexpert"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "Stanford University Dataset Research Use Agreement; not redistributable"
    obtain: ClassVar[str] = (
        "CheXpert needs a registration: accept the research use agreement at "
        "https://stanfordaimi.azurewebsites.net/datasets/8cbd9ed4-2eb9-4565-affc-111cf4f7ebe2, fetch the archive there "
        f"and unpack it, keeping its folder. {STAY}"
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = (*_FOLDERS, *(f"chexpert/{name}" for name in _FOLDERS))
    markers: ClassVar[tuple[str, ...]] = ("train.csv",)
    tables: ClassVar[tuple[str, ...]] = tuple(_TABLES)
    images: ClassVar[tuple[str, ...]] = ("train", "valid", "test")

    def __post_init__(self) -> None:
        tasks_of(self.tasks)
        one_of(VIEWS, views=self.views)

    @property
    def _findings(self) -> tuple[str, ...]:
        return tasks_of(self.tasks)

    def top(self, roots: Sequence[Path]) -> Path:
        """The folder of the tables; DataError as `locate`."""
        try:
            return super().top(roots)
        except DataError:
            places = [root / folder for root in roots for folder in ("", self.name, *self.folders)]
            found = (table.parent for place in places for table in sorted(place.glob(f"{_BATCH} 1 */train.csv")))
            if (first := next(found, None)) is None:
                raise
            return Path(os.path.realpath(first))

    def stamp(self, roots: Sequence[Path]) -> str:
        """See `Source.stamp`; other batches beside that of the tables count, too."""
        top = self.top(roots)
        others = _batches(top)
        if not others:
            return super().stamp(roots)
        folders = [top, *(folder for other in others for folder in (other, other / "train"))]
        tables = stamp_files(top / name for name in _TABLES)
        return f"{tables}\n{stamp_images([folder for folder in folders if folder.is_dir()], top, self.obtain)}"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        tables = {name: self._table(top / name) for name in _TABLES if (top / name).exists()}
        whole = pd.concat([table.assign(part=_TABLES[name]) for name, table in tables.items()], ignore_index=True)
        places = [_place(Path(), name) for name in whole["Path"]]
        if len(set(places)) < len(places):
            raise DataError(
                f"{self.name}: {len(places) - len(set(places))} images are in several of {', '.join(tables)}. Fetch "
                f"the tables again. {self.obtain}"
            )
        viewed = whole[whole["AP/PA"].isin({*VIEWS[self.views], self.views})]
        known = viewed[viewed[list(self._findings)].notna().any(axis=1)]
        paths = _places(top, list(known["Path"]))
        here = present(paths, name=self.name, where=f"{top}/train/patient*/study*", obtain=self.obtain)
        views = known["AP/PA"].replace(_FRONTAL, "")
        attributes = {"sex": list(known["Sex"]), "age": list(known["Age"]), "view": list(views)}
        return Scan(
            labels=known[list(self._findings)].to_numpy(dtype=np.float32)[here.rows],
            subjects=of_row(list(known["person"]), here.rows),
            findings=self._findings,
            exclusive=False,
            paths=here.paths,
            folder=top.parent if _batches(top) else top,
            version=top.name,
            notes=(
                *here.notes,
                f"{len(whole) - len(viewed)} of {len(whole)} images left out: not {'/'.join(VIEWS[self.views])}",
                f"{len(viewed) - len(known)} left out: none of the tasks is labelled 0 or 1",
                "uncertain (-1) and blank labels are unknown",
            ),
            attributes=attributes_of(attributes, here.rows),
            parts=of_row(list(known["part"]), here.rows),
            official=tuple(Official(f"rows in {name}", len(table), _ROWS[name]) for name, table in tables.items()),
        )

    def _table(self, path: Path) -> pd.DataFrame:
        columns = ("Path", "Sex", "Age", "AP/PA", *self._findings)
        if path.name == "test.csv":  # it may have labels alone
            columns = ("Path", *self._findings)
        table = read_table(path, columns, optional=("Sex", "Age", "AP/PA"), obtain=self.obtain)
        person = table["Path"].str.extract(f"^{_PATIENT.pattern}$", expand=False)
        odd = person.isna() | table["Path"].str.contains("..", regex=False)
        form = "expected a path such as train/patient00001/study1/view1_frontal.jpg"
        refuse(odd, path.name, form, f"Download the table again. {self.obtain}")
        places = pd.Series([_place(Path(), name) for name in table["Path"]], index=table.index)
        refuse(places.duplicated(), path.name, "an image listed a second time", self.obtain)
        for task in self._findings:
            table[task] = read_marks(path, table[task])
        if "AP/PA" not in table:
            table["AP/PA"] = table["Path"].str.contains("_frontal.", regex=False).map({True: _FRONTAL, False: ""})
        for column in {"Sex", "Age"} - set(table.columns):
            table[column] = ""
        return table.assign(person=person)


def _place(top: Path, listed: str) -> Path:
    """The file of a listed path, which begins with the archive's folder."""
    parts = listed.split("/")
    return top.joinpath(*parts[next(place for place, part in enumerate(parts) if part in ("train", "valid", "test")) :])


def _batches(top: Path) -> list[Path]:
    """The batches of the download beside that of the tables."""
    if not fnmatchcase(top.name, f"{_BATCH} *"):
        return []
    return [path for path in sorted(top.parent.glob(f"{_BATCH} *")) if path.is_dir() and path.name != top.name]


def _places(top: Path, listed: Sequence[str]) -> list[Path]:
    """The files of listed paths, in whichever batch they lie."""
    homes = {
        patient.name: folder
        for batch in _batches(top)
        for folder in (batch / "train", batch)
        if folder.is_dir()
        for patient in folder.glob("patient*")
    }
    places = [_place(Path(), name) for name in listed]
    return [
        homes[place.parts[1]].joinpath(*place.parts[1:])
        if place.parts[0] == "train" and place.parts[1] in homes
        else top / place
        for place in places
    ]
