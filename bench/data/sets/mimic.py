"""MIMIC-CXR-JPG 2.0.0 and 2.1.0 (Johnson et al. 2019) in its official layout.

The images files/p10/p10000032/s50414267/<dicom>.jpg lie beside mimic-cxr-2.x.0-{chexpert,metadata,split}.csv.gz (or
.csv).

Tasks follow the Syfer paper (section 5): explicit negatives only; uncertain (-1) and blank labels are unknown. Rows in
which none of the tasks is known are left out. The data are under a use agreement: messages about rows name lines of
the tables, never a file or a person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import VIEWS, read_marks, read_table, refuse, tasks_of
from bench.data.raw_files import FileSource, physionet
from bench.data.subjects import AGES
from bench.validation import one_of

_VERSIONS = ("2.1.0", "2.0.0")
_ENDS = (".gz", "")
_FOLDERS = tuple(
    f"{name}{version}"
    for name in ("mimic-cxr-jpg", "MIMIC-CXR-JPG", "mimic-cxr", "physionet.org/files/mimic-cxr-jpg")
    for version in ("", *(f"/{version}" for version in _VERSIONS))
)
_PARTS = ("train", "validate", "test")
_ROWS, _PEOPLE = 377_110, 65_379
_TABLES = ("chexpert", "metadata", "split")
_OLDEST = 89  # all older people are of 91 years in MIMIC-IV
_MIMIC_IV = physionet("MIMIC-IV", "https://physionet.org/content/mimiciv/")
_PATIENTS = ("patients.csv.gz", "patients.csv")
"""MIMIC-IV's table of the same patients, with sex and age; used if present."""


@dataclass(frozen=True)
class MIMIC(FileSource):
    """Frontal chest X-rays of an emergency department with findings mined from reports.

    Args:
        tasks: Findings, joined by "+"; columns of the CheXpert table.
        views: Which frontal views to keep: AP and PA, or one of them.
    """

    tasks: str = "Edema+Consolidation+Cardiomegaly+Atelectasis"
    views: Literal["frontal", "AP", "PA"] = "frontal"

    name: ClassVar[str] = "mimic"
    title: ClassVar[str] = "MIMIC-CXR-JPG"
    source: ClassVar[str] = "Johnson et al. 2019, arXiv:1901.07042, doi:10.13026/jsn5-t979"
    public: ClassVar[str] = "nih"
    origin: ClassVar[str] = "mimic-cxr"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "PhysioNet Credentialed Health Data License 1.5.0; not redistributable"
    obtain: ClassVar[str] = physionet("MIMIC-CXR-JPG", "https://physionet.org/content/mimic-cxr-jpg/")
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = _FOLDERS
    markers: ClassVar[tuple[str, ...]] = tuple(
        f"mimic-cxr-{version}-chexpert.csv{end}" for version in _VERSIONS for end in _ENDS
    )
    tables: ClassVar[tuple[str, ...]] = ("mimic-cxr-*.csv*", *_PATIENTS)
    images: ClassVar[tuple[str, ...]] = ("files/p[0-9][0-9]",)

    def __post_init__(self) -> None:
        tasks_of(self.tasks)
        one_of(VIEWS, views=self.views)

    @property
    def _findings(self) -> tuple[str, ...]:
        return tasks_of(self.tasks)

    def stamp(self, roots: Sequence[Path]) -> str:
        """See `Source.stamp`; a missing table is named before missing images."""
        self._tables(self.top(roots))
        return super().stamp(roots)

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        tables = self._tables(top)
        chexpert = read_table(tables["chexpert"], ("subject_id", "study_id", *self._findings), obtain=self.obtain)
        metadata = read_table(
            tables["metadata"], ("dicom_id", "subject_id", "study_id", "ViewPosition"), optional=("StudyDate",),
            obtain=self.obtain,
        )  # fmt: skip
        split = read_table(tables["split"], ("dicom_id", "subject_id", "split"), obtain=self.obtain)
        self._check(tables, chexpert, metadata, split)
        for task in self._findings:
            chexpert[task] = read_marks(tables["chexpert"], chexpert[task])
        frontal = metadata[metadata["ViewPosition"].isin(VIEWS[self.views])]
        rows = frontal.merge(chexpert[["study_id", *self._findings]], on="study_id", how="left")
        part = split["split"].replace("validate", "val")
        rows["part"] = rows["dicom_id"].map(dict(zip(split["dicom_id"], part, strict=True))).fillna("")
        known = rows[rows[list(self._findings)].notna().any(axis=1)]
        parts = zip(known["subject_id"], known["study_id"], known["dicom_id"], strict=True)
        paths = [
            top / "files" / f"p{who[:2]}" / f"p{who}" / f"s{study}" / f"{dicom}.jpg" for who, study, dicom in parts
        ]
        here = np.array([path.is_file() for path in paths], dtype=bool)
        if not here.any():
            raise DataError(
                f"{self.name}: expected images at files/pXX/pXXXXXXXX/sXXXXXXXX/*.jpg in {top}, found none of the "
                f"{len(known)} {'/'.join(VIEWS[self.views])} views that {tables['metadata'].name} lists with a label "
                f"for {', '.join(self._findings)}. {self._wrong_kind(top)}{self.obtain}"
            )
        notes = [
            f"{len(metadata) - len(frontal)} of {len(metadata)} images left out: not {'/'.join(VIEWS[self.views])}",
            f"{len(rows) - len(known)} left out: none of the tasks is labelled 0 or 1",
            "uncertain (-1) and blank labels are unknown",
        ]
        if not here.all():
            notes.insert(0, f"{int((~here).sum())} of {len(known)} listed images are not on this machine")
        return Scan(
            labels=known[list(self._findings)].to_numpy(dtype=np.float32)[here],
            subjects=list(known["subject_id"][here]),
            findings=self._findings,
            exclusive=False,
            paths=[path for path, there in zip(paths, here, strict=True) if there],
            folder=top,
            version=self._version(top),
            notes=tuple(notes),
            attributes={"view": list(known["ViewPosition"][here]), **self._sex_and_age(top, known[here])},
            parts=list(known["part"][here]),
            official=(
                Official("listed images", len(metadata), (_ROWS,)),
                Official("listed patients", metadata["subject_id"].nunique(), (_PEOPLE,)),
            ),
        )

    def top(self, roots: Sequence[Path]) -> Path:
        """The set's folder, with hints on other versions if it is missing."""
        try:
            return super().top(roots)
        except DataError as error:
            places = [root / folder for root in roots for folder in ("", self.name, *self.folders)]
            other = next((path for place in places for path in place.glob("mimic-cxr-*-chexpert.csv*")), None)
            kind = next((text for place in places if (text := self._wrong_kind(place))), "")
            if other is None and not kind:
                raise
            hint = f"Found {other}: this version is not known here (known: {', '.join(_VERSIONS)}). " if other else kind
            raise DataError(f"{error}\n{hint.strip()}") from None

    def _sex_and_age(self, top: Path, rows: pd.DataFrame) -> dict[str, list[str]]:
        """Sex and age at the image, from MIMIC-IV's table if present.

        `anchor_age` is the age in `anchor_year`, 91 for all above 89 (there and for the image, if the image was taken
        at most nine years before). The age is unknown without `anchor_year` and `StudyDate`.
        """
        path = next((top / name for name in _PATIENTS if (top / name).exists()), None)
        if path is None:
            return {}
        columns = ("subject_id", "gender", "anchor_age")
        patients = read_table(path, columns, optional=("anchor_year",), obtain=_MIMIC_IV)
        again = patients["subject_id"].duplicated()
        refuse(again, path.name, "a subject_id listed a second time", f"Download the table again. {_MIMIC_IV}")
        by_row = patients.set_index("subject_id").reindex(rows["subject_id"]).fillna("")
        if "anchor_year" not in by_row or "StudyDate" not in rows:
            return {"sex": list(by_row["gender"])}
        anchors = zip(by_row["anchor_age"], by_row["anchor_year"], rows["StudyDate"], strict=True)
        return {"sex": list(by_row["gender"]), "age": [_age(*words) for words in anchors]}

    def _tables(self, top: Path) -> dict[str, Path]:
        tables = {}
        for table in _TABLES:
            names = [f"mimic-cxr-{version}-{table}.csv{end}" for version in _VERSIONS for end in _ENDS]
            path = next((top / name for name in names if (top / name).exists()), None)
            if path is None:
                raise DataError(
                    f"{self.name}: expected {names[-2]} (or {names[0]}) in {top}, found neither. {self.obtain}"
                )
            tables[table] = path
        return tables

    @staticmethod
    def _version(top: Path) -> str:
        return next(version for version in _VERSIONS if any(top.glob(f"mimic-cxr-{version}-*.csv*")))

    @staticmethod
    def _wrong_kind(place: Path) -> str:
        if (place / "cxr-record-list.csv.gz").exists():
            return f"Found MIMIC-CXR with DICOM files in {place}; MIMIC-CXR-JPG is a distribution of its own. "
        return ""

    def _check(
        self, tables: dict[str, Path], chexpert: pd.DataFrame, metadata: pd.DataFrame, split: pd.DataFrame
    ) -> None:
        remedy = f"Download the tables again. {self.obtain}"
        once = (("chexpert", chexpert, "study_id"), ("metadata", metadata, "dicom_id"), ("split", split, "dicom_id"))
        for table, frame, column in once:
            refuse(frame[column].duplicated(), tables[table].name, f"a {column} listed a second time", remedy)
        numbers = [
            (table, frame, column, "[0-9]{8}", "of 8 digits")
            for table, frame in (("metadata", metadata), ("chexpert", chexpert), ("split", split))
            for column in ("subject_id", "study_id")
            if column in frame
        ]
        words = [
            ("metadata", metadata, "dicom_id", "[0-9A-Za-z-]+", "of digits, letters and hyphens"),
            ("split", split, "split", "|".join(_PARTS), f"among {', '.join(_PARTS)}"),
        ]
        for table, frame, column, form, rule in (*numbers, *words):
            refuse(~frame[column].str.fullmatch(form), tables[table].name, f"expected a {column} {rule}", remedy)
        owner = metadata["study_id"].map(dict(zip(chexpert["study_id"], chexpert["subject_id"], strict=True)))
        other = owner.notna() & (owner != metadata["subject_id"])
        fault = f"expected the subject_id that {tables['chexpert'].name} gives that study"
        refuse(other, tables["metadata"].name, fault, remedy)
        sides = split.groupby("subject_id")["split"].nunique()
        both = int((sides > 1).sum())
        if both:
            line = split.index[split["subject_id"].isin(sides.index[sides > 1])][0]
            raise DataError(
                f"{tables['split'].name}: expected every patient on one side of the official split, found "
                f"{both} on several, first at line {line}. Download the table again. {self.obtain}"
            )


def _age(anchor_age: str, anchor_year: str, study_date: str) -> str:
    """The age in the year of a study, "" for unknown.

    >>> _age("55", "2150", "21600615"), _age("91", "2150", "21490101"), _age("91", "2150", "21300101")
    ('65', '90+', '')
    """
    if not (anchor_age.isdecimal() and anchor_year.isdecimal() and re.fullmatch("[0-9]{4}.*", study_date)):
        return ""
    later = int(study_date[:4]) - int(anchor_year)
    if int(anchor_age) > _OLDEST:
        return f"{_OLDEST + 1}+" if later >= AGES[-1] - _OLDEST else ""
    return str(int(anchor_age) + later) if int(anchor_age) + later >= 0 else ""
