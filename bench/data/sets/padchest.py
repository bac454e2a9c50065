"""PadChest (Bustos et al. 2020) in its official layout.

Beside PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv (or .gz) lie the images, in the numbered folders of the
archives (`ImageDir`) or all in one.

The files are grey values of up to 16 bits in PNG. How many bits count is `BitsStored_DICOM` of the table; files whose
values need more are refused, and `padchest[bits=16]` says that the whole container counts. Images that the table calls
MONOCHROME1 are taken as they are stored, and counted. Reports were labelled exhaustively: a finding is 1 if `Labels`
has it or a kind of it (by the tree of the authors' published list, without localizations and the later COVID-19
labels), else 0; but unknown if the report is labelled `unchanged`, for
it compares with an earlier image and need not repeat what that showed. Rows labelled `exclude` or not at all are left
out. The data are under a use agreement: messages name lines and counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import read_table, refuse, tasks_of
from bench.data.raw_files import STAY, FileSource, attributes_of, of_row, present, stamp_files, stamp_images
from bench.validation import one_of, within

_BELOW: Mapping[str, tuple[str, ...]] = {
    "calcified densities": (
        "calcified granuloma", "calcified adenopathy", "calcified pleural thickening", "calcified pleural plaques",
        "heart valve calcified", "calcified fibroadenoma",
    ),
    "calcified adenopathy": ("calcified mediastinal adenopathy",),
    "granuloma": ("calcified granuloma",),
    "adenopathy": ("calcified adenopathy",),
    "nodule": ("multiple nodules",),
    "pseudonodule": ("nipple shadow", "end on vessel"),
    "pneumothorax": ("hydropneumothorax",),
    "infiltrates": ("interstitial pattern", "alveolar pattern"),
    "interstitial pattern": (
        "ground glass pattern", "reticular interstitial pattern", "reticulonodular interstitial pattern",
        "miliary opacities",
    ),
    "alveolar pattern": ("consolidation", "air bronchogram"),
    "consolidation": ("air bronchogram",),
    "atelectasis": (
        "total atelectasis", "lobar atelectasis", "segmental atelectasis", "laminar atelectasis", "round atelectasis",
        "atelectasis basal",
    ),
    "fissure thickening": ("minor fissure thickening", "major fissure thickening", "loculated fissural effusion"),
    "pleural thickening": ("apical pleural thickening", "calcified pleural thickening"),
    "pleural plaques": ("calcified pleural plaques",),
    "pleural effusion": (
        "loculated pleural effusion", "loculated fissural effusion", "hydropneumothorax", "empyema", "hemothorax",
    ),
    "vascular redistribution": ("central vascular redistribution",),
    "hilar enlargement": ("adenopathy", "vascular hilar enlargement"),
    "vascular hilar enlargement": ("pulmonary artery enlargement",),
    "aortic elongation": (
        "descendent aortic elongation", "ascendent aortic elongation", "aortic button enlargement",
        "supra aortic elongation",
    ),
    "mediastinal enlargement": (
        "superior mediastinal enlargement", "descendent aortic elongation", "ascendent aortic elongation",
        "aortic aneurysm", "mediastinal mass", "hiatal hernia",
    ),
    "superior mediastinal enlargement": ("goiter", "supra aortic elongation"),
    "mass": ("mediastinal mass", "breast mass", "pleural mass", "pulmonary mass", "soft tissue mass"),
    "thoracic cage deformation": ("scoliosis", "kyphosis", "pectum excavatum", "pectum carinatum", "cervical rib"),
    "vertebral degenerative changes": ("vertebral compression",),
    "vertebral compression": ("vertebral anterior compression",),
    "sclerotic bone lesion": ("blastic bone lesion",),
    "fracture": ("clavicle fracture", "humeral fracture", "vertebral fracture", "rib fracture"),
    "rib fracture": ("callus rib fracture",),
    "catheter": ("central venous catheter",),
    "central venous catheter": (
        "central venous catheter via subclavian vein", "central venous catheter via jugular vein",
        "reservoir central venous catheter", "central venous catheter via umbilical vein",
    ),
    "electrical device": ("dual chamber device", "single chamber device", "pacemaker", "dai"),
    "artificial heart valve": ("artificial mitral heart valve", "artificial aortic heart valve"),
    "surgery": (
        "metal", "bone cement", "prosthesis", "surgery breast", "surgery neck", "surgery lung", "surgery heart",
        "surgery humeral",
    ),
    "metal": ("osteosynthesis material", "sternotomy", "suture material"),
    "prosthesis": ("humeral prosthesis", "mammary prosthesis", "endoprosthesis"),
    "endoprosthesis": ("aortic endoprosthesis",),
    "surgery breast": ("mastectomy",),
    "pneumonia": ("atypical pneumonia",),
    "tuberculosis": ("tuberculosis sequelae",),
    "pulmonary fibrosis": ("post radiotherapy changes", "asbestosis signs"),
    "pulmonary hypertension": ("pulmonary artery hypertension", "pulmonary venous hypertension"),
}  # fmt: skip
_TABLES = tuple(f"PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv{end}" for end in ("", ".gz"))
_COLUMNS = ("ImageID", "ImageDir", "PatientID", "Projection", "BitsStored_DICOM", "Labels")
_OPTIONAL = ("PatientSex_DICOM", "PatientBirth", "StudyDate_DICOM", "PhotometricInterpretation_DICOM")
_VIEWS = {"frontal": ("PA", "AP", "AP_horizontal"), "PA": ("PA",), "AP": ("AP",)}
_PEOPLE = 67_625
_UNCHANGED = "unchanged"
_GLUED = re.compile(r"""(['"])\s+\1""")
"""Labels without a comma between them, as arrays are printed: Python would read one label of both."""


def kinds(label: str) -> frozenset[str]:
    """The label itself and its kinds, in small letters.

    >>> sorted(kinds("alveolar pattern"))
    ['air bronchogram', 'alveolar pattern', 'consolidation']
    """
    word = label.lower()
    return frozenset({word}).union(*map(kinds, _BELOW.get(word, ())))


@dataclass(frozen=True)
class PadChest(FileSource):
    """Chest X-rays of a Spanish hospital, labelled by physicians and from reports.

    Args:
        tasks: Labels, joined by "+", as the table writes them; each stands for its kinds, too.
        views: Which projections to keep: all frontal ones, PA or AP.
        bits: How many bits of a value count (8 to 16) in all files; None: as the table says of each.
    """

    tasks: str = "cardiomegaly+pleural effusion+pneumonia+atelectasis"
    views: Literal["frontal", "PA", "AP"] = "frontal"
    bits: int | None = None

    name: ClassVar[str] = "padchest"
    title: ClassVar[str] = "PadChest"
    source: ClassVar[str] = "Bustos et al. 2020, Medical Image Analysis 66:101797, doi:10.1016/j.media.2020.101797"
    public: ClassVar[str] = "nih"
    origin: ClassVar[str] = "padchest"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "PadChest Dataset Research Use Agreement; not redistributable"
    obtain: ClassVar[str] = (
        "PadChest needs a registration: accept the use agreement at https://bimcv.cipf.es/bimcv-projects/padchest/, "
        f"fetch {_TABLES[1]} and the archives there, and unpack these into folders 0, 1, ... beside the table. "
        f"{STAY}"
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("PadChest", "PADCHEST", "BIMCV-PadChest-FULL")
    markers: ClassVar[tuple[str, ...]] = _TABLES
    tables: ClassVar[tuple[str, ...]] = _TABLES

    def __post_init__(self) -> None:
        tasks_of(self.tasks, "labels")
        one_of(_VIEWS, views=self.views)
        within(8, 16, bits=self.bits)

    @property
    def _findings(self) -> tuple[str, ...]:
        return tasks_of(self.tasks, "labels")

    @property
    def _kinds(self) -> tuple[frozenset[str], ...]:
        return tuple(map(kinds, self._findings))

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        path = next(top / name for name in _TABLES if (top / name).exists())
        table = read_table(path, _COLUMNS, optional=_OPTIONAL, obtain=self.obtain)
        self._check(path, table)
        labels = pd.Series([_labels(path, line, cell) for line, cell in table["Labels"].items()], index=table.index)
        frontal = table["Projection"].isin(_VIEWS[self.views])
        labelled = labels.map(lambda words: bool(words) and "exclude" not in words)
        listed, words = table[frontal & labelled], labels[frontal & labelled]
        missing = {
            task for task, wanted in zip(self._findings, self._kinds, strict=True) if all(map(wanted.isdisjoint, words))
        }
        if missing:
            raise DataError(
                f"{self.name}: no row of {path.name} is labelled {', '.join(sorted(missing))}: check `tasks`. "
                f"{self.obtain}"
            )
        every = np.array([self._marks(row) for row in words], dtype=np.float32)
        known = ~np.isnan(every).all(axis=1)
        rows, marks = listed.iloc[np.flatnonzero(known)], every[known]
        paths = self._paths(top, rows)
        here = present(paths, name=self.name, where=f"{top}/0, 1, ..., or {top}", obtain=self.obtain)
        inverted = (rows[here.rows].get("PhotometricInterpretation_DICOM", pd.Series(dtype=str)) == "MONOCHROME1").sum()
        return Scan(
            labels=marks[here.rows],
            subjects=of_row(list(rows["PatientID"]), here.rows),
            findings=self._findings,
            exclusive=False,
            paths=here.paths,
            bits=self.bits or [int(word) for word in of_row(list(rows["BitsStored_DICOM"]), here.rows)],
            folder=top,
            version="01.02.19",
            notes=(
                f"{int((~frontal).sum())} of {len(table)} images left out: not {'/'.join(_VIEWS[self.views])}",
                f"{int((frontal & ~labelled).sum())} left out: labelled exclude, or not at all",
                f"{int((~known).sum())} left out: labelled {_UNCHANGED}, and none of the tasks is named",
                "a task is named by its kinds, too, such as atelectasis by laminar atelectasis",
                f"{int(inverted)} images are MONOCHROME1 in the table and taken as they are stored",
                *here.notes,
            ),
            attributes=attributes_of(_attributes(rows), here.rows),
            official=(Official("listed people", table["PatientID"].nunique(), (_PEOPLE,)),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Size and time of the table; numbers and names of the images."""
        top = self.top(roots)
        beside = [top] if next(top.glob("*.png"), None) else []
        images = stamp_images([*beside, *(top / str(number) for number in range(55))], top, self.obtain)
        return f"{stamp_files(top / name for name in _TABLES)}\n{images}"

    def _check(self, path: Path, table: pd.DataFrame) -> None:
        """Raise DataError for lines that the official table cannot hold."""
        names = table["ImageID"]
        wrong = {
            "ImageID that is no file name": names.str.contains("/", regex=False) | (names == ""),
            "ImageID for the second time": names.duplicated(),
            "ImageDir that is no number": ~table["ImageDir"].str.fullmatch("[0-9]+"),
        }
        if self.bits is None:
            fits = table["BitsStored_DICOM"].str.fullmatch(r"(8|9|1[0-6])(\.0)?")
            wrong["BitsStored_DICOM that is not 8 to 16"] = ~fits
            table["BitsStored_DICOM"] = table["BitsStored_DICOM"].str.removesuffix(".0")
        for fault, lines in wrong.items():
            refuse(lines, path.name, f"an {fault}", f"Download the table again. {self.obtain}")

    def _marks(self, labels: frozenset[str]) -> list[float]:
        """1 for each named task, else 0, or NaN if unchanged."""
        other = np.nan if _UNCHANGED in labels else 0.0
        return [other if wanted.isdisjoint(labels) else 1.0 for wanted in self._kinds]

    @staticmethod
    def _paths(top: Path, rows: pd.DataFrame) -> list[Path]:
        apart = any((top / number).is_dir() for number in rows["ImageDir"].unique())
        return [
            top / number / name if apart else top / name
            for number, name in zip(rows["ImageDir"], rows["ImageID"], strict=True)
        ]


def _labels(path: Path, line: object, cell: str) -> frozenset[str]:
    """The labels in a cell such as "['pneumonia', 'normal']"; none if blank."""
    if not cell.strip() or cell.strip().lower() == "nan":
        return frozenset()
    try:
        labels = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        labels = None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels) or _GLUED.search(cell):
        raise DataError(
            f"{path.name}: line {line}: expected a list of labels with commas between them in the column Labels, such "
            f"as ['pneumonia', 'normal'], found something else. Download the table again"
        )
    return frozenset(label.strip().lower() for label in labels) - {""}


def _attributes(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Sex, view and age (study year - birth year), if present."""
    attributes = {"view": list(rows["Projection"])}
    if "PatientSex_DICOM" in rows:
        attributes["sex"] = [word if word in ("F", "M") else "" for word in rows["PatientSex_DICOM"]]
    if {"PatientBirth", "StudyDate_DICOM"} <= set(rows.columns):
        years = rows["StudyDate_DICOM"].str[:4], rows["PatientBirth"].str.removesuffix(".0")
        born = zip(*years, strict=True)
        attributes["age"] = [
            str(int(study) - int(birth)) if (study + birth).isdecimal() and study >= birth else ""
            for study, birth in born
        ]
    return attributes
