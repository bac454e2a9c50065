"""RSNA Pneumonia Detection Challenge 2018 (Shih et al. 2019) in Kaggle's layout.

It reads stage_2_train_labels.csv, stage_2_detailed_class_info.csv and stage_2_train_images/*.dcm. (The test images of
the challenge have no labels.)

`patientId` names an image, not a person: the radiographs are some of ChestX-ray14, and many of its patients have
several. The published list of pairs, pneumonia-challenge-dataset-mappings_2018.json beside the tables, gives NIH's
image names and with them the patients; without it the people are unknown. Files are read as `bench.data.dicom` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import read_table, refuse
from bench.data.raw_files import FileSource, of_row, present
from bench.data.subjects import UNKNOWN
from bench.disk.file_kind import impostor
from bench.validation import one_of

_BOXES, _CLASSES = "stage_2_train_labels.csv", "stage_2_detailed_class_info.csv"
_PAIRS = "pneumonia-challenge-dataset-mappings_2018.json"
_IMAGES = "stage_2_train_images"
_ROWS = {"Normal": 8_851, "No Lung Opacity / Not Normal": 11_821, "Lung Opacity": 6_012}
_NAMES = tuple(_ROWS)
_NIH = re.compile(r"([0-9]{8})_[0-9]{3}\.png")


@dataclass(frozen=True)
class RSNA(FileSource):
    """Chest X-rays with lung opacities marked by radiologists.

    Args:
        task: "opacity": one finding, some opacity is marked. "classes": normal, no opacity but not normal, opacity.
    """

    task: Literal["opacity", "classes"] = "opacity"

    name: ClassVar[str] = "rsna"
    title: ClassVar[str] = "RSNA Pneumonia Detection Challenge"
    source: ClassVar[str] = (
        "Shih et al. 2019, Radiology: Artificial Intelligence 1:e180041, doi:10.1148/ryai.2019180041"
    )
    public: ClassVar[str] = "kermany-cxr"
    origin: ClassVar[str] = "nih-cxr"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "competition rules of RSNA: academic research and education"
    obtain: ClassVar[str] = (
        "Accept the rules at https://www.kaggle.com/c/rsna-pneumonia-detection-challenge, fetch the archive there and "
        f"unpack it; {_PAIRS} is at https://www.rsna.org/rsnai/ai-image-challenge/rsna-pneumonia-detection-challenge-2018."
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("rsna-pneumonia-detection-challenge", "RSNA", "RSNA_Pneumonia")
    markers: ClassVar[tuple[str, ...]] = (_BOXES,)
    required: ClassVar[tuple[str, ...]] = (_CLASSES, _IMAGES)
    tables: ClassVar[tuple[str, ...]] = (_BOXES, _CLASSES, _PAIRS)
    images: ClassVar[tuple[str, ...]] = (_IMAGES,)

    def __post_init__(self) -> None:
        one_of(("opacity", "classes"), task=self.task)

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        boxes = read_table(top / _BOXES, ("patientId", "Target"), obtain=self.obtain)
        details = read_table(top / _CLASSES, ("patientId", "class"), obtain=self.obtain)
        for table, name, column, allowed in (
            (boxes, _BOXES, "Target", ("0", "1")),
            (details, _CLASSES, "class", _NAMES),
        ):
            odd = ~table["patientId"].str.fullmatch("[0-9a-f-]{8,64}")
            refuse(odd, top / name, "expected a patientId of 8 to 64 of 0-9, a-f and -", self.obtain)
            odd = ~table[column].isin(allowed)
            refuse(odd, top / name, f"expected {column} among {', '.join(allowed)}", self.obtain)
        target = boxes.groupby("patientId", sort=False)["Target"].agg(set)
        kind = details.groupby("patientId", sort=False)["class"].agg(set)
        torn = [name for name, marks in target.items() if kind.get(name) != _kinds(marks, kind.get(name))]
        if torn or len(target) != len(kind):
            raise DataError(
                f"{self.name}: {_BOXES} and {_CLASSES} in {top} must agree on {len(target)} images: {len(torn)} are of "
                f"another class, or of several, and {abs(len(target) - len(kind))} are in only one of the tables. "
                f"{self.obtain}"
            )
        names = list(target.index)
        paths = [top / _IMAGES / f"{name}.dcm" for name in names]
        here = present(paths, name=self.name, where=f"{top / _IMAGES}/*.dcm", obtain=self.obtain)
        listed = np.array([_NAMES.index(next(iter(kind[name]))) for name in names])
        classes = listed[here.rows]
        whole = self.task == "classes"
        people = self._people(top, names)
        return Scan(
            labels=np.eye(3, dtype=np.float32)[classes] if whole else (classes == 2).astype(np.float32)[:, None],
            subjects=None if people is None else of_row(people, here.rows),
            findings=_NAMES if whole else (_NAMES[2],),
            exclusive=whole,
            paths=here.paths,
            folder=top,
            version="stage 2",
            notes=(
                f"{UNKNOWN} ({_PAIRS} would tell)" if people is None else f"people are NIH's patients, by {_PAIRS}",
                *here.notes,
            ),
            name=f"{self.name}:classes" if whole else "",
            official=(
                Official("listed images", len(names), (sum(_ROWS.values()),)),
                *(
                    Official(f"of them {name}", int((listed == number).sum()), (rows,))
                    for number, (name, rows) in enumerate(_ROWS.items())
                ),
            ),
        )

    def _people(self, top: Path, names: Sequence[str]) -> list[str] | None:
        """NIH's patient of each image, "" if unlisted; None without the list."""
        path = top / _PAIRS
        if not path.exists():
            return None
        if wrong := impostor(path):
            raise DataError(f"{path}: expected the list of pairs, found {wrong}. {self.obtain}")
        try:
            listed = [(str(pair["subset_img_id"]), str(pair["img_id"])) for pair in json.loads(path.read_bytes())]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path}: expected pairs of subset_img_id and img_id ({error!r:.80}). {self.obtain}"
            ) from error
        pairs = dict(listed)
        if not set(names) & set(pairs) or len(set(listed)) != len(pairs):
            raise DataError(
                f"{path}: expected one NIH image for each of {len(names)} images, found {len(set(listed))} pairs of "
                f"{len(pairs)} images, {len(set(names) & set(pairs))} of them listed here. {self.obtain}"
            )
        matches = {name: _NIH.fullmatch(image) for name, image in pairs.items()}
        if odd := sum(match is None for match in matches.values()):
            raise DataError(f"{path}: {odd} pairs have no NIH image such as 00000001_000.png. {self.obtain}")
        return ["" if (match := matches.get(name)) is None else match[1] for name in names]


def _kinds(targets: set[str], kinds: set[str] | None) -> set[str] | None:
    """The one kind that agrees with the marks; else None."""
    return kinds if kinds is not None and len(kinds) == 1 and targets == {str(int(_NAMES[2] in kinds))} else None
