"""Sets of MedIMeta (Woerner et al. 2025): `medimeta:skinl_derm`, `medimeta:organs_axial`, ...

A set is the folder of its name with info.yaml, annotations.csv, task_labels/<task>.npy and images/000000.tiff onwards,
224x224 pixels; or images.hdf5, which holds the same images and is read if there is no folder images. info.yaml names
tasks, classes and channels.
Labels: a task of two classes has one finding, its class 1; one of several (ordinal ones too) exclusive classes; a
multi-label task its labels. Official parts are those of the folder splits (train.txt, val.txt, test.txt).

People are the column `patient_id` of the annotations. If there is none and several images were cut from one original
file (the organs of one CT volume), that file stands for the person; otherwise people are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from bench.contract.source import PARTS, DataError, Scan, Source
from bench.data.array_files import Stored, hdf5_images, read_array
from bench.data.csv_tables import read_list, read_table, refuse
from bench.data.raw_files import locate, stamp_files, stamp_images
from bench.data.subjects import UNKNOWN
from bench.data.yaml_text import read_yaml
from bench.disk.file_kind import impostor

_TASKS = {"skinl_derm": "Diagnosis grouped", "organs_axial": "organ label"}  # those of the CVAE paper
_ORIGINS = {
    "bus": "breastmnist",
    "crc": "pathmnist",
    "cxr": "nih-cxr",
    "derm": "dermamnist",
    "dr_regular": "retinamnist",
    "dr_uwf": "retinamnist",
    "mammo_calc": "cbis-ddsm",
    "mammo_mass": "cbis-ddsm",
    "oct": "octmnist",
    "organs_axial": "lits",
    "organs_coronal": "lits",
    "organs_sagittal": "lits",
    "pbc": "bloodmnist",
    "pneumonia": "kermany-cxr",
    "skinl_derm": "derm7pt",
    "skinl_photo": "derm7pt",
}
_NAME = re.compile(r"[a-z0-9_]+")
_FOLDERS = ("MedIMeta", "MIMeta")
_STORED = "images.hdf5"
_EXCLUSIVE = ("MULTICLASS_CLASSIFICATION", "ORDINAL_REGRESSION")
_SHAPES = {"BINARY_CLASSIFICATION": 1, "MULTILABEL_CLASSIFICATION": 2, **dict.fromkeys(_EXCLUSIVE, 1)}
_DIGITS = 12  # to which numbers in names are filled up, so that 10 comes after 9


@dataclass(frozen=True)
class MedIMeta(Source):
    """One task of one set of MedIMeta.

    Args:
        part: Name of the set, as its folder.
        task: Name of the task, as in info.yaml; None takes the CVAE paper's task, or the set's first.
    """

    part: str = "skinl_derm"
    task: str | None = None

    name: ClassVar[str] = "medimeta"
    title: ClassVar[str] = "MedIMeta"
    source: ClassVar[str] = "Woerner et al. 2025, Scientific Data 12, doi:10.1038/s41597-025-04866-4"
    public: ClassVar[str] = "medimeta"
    origin: ClassVar[str] = "medimeta"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY-SA 4.0 or CC BY-NC-SA 4.0, as the set's LICENSE says"
    obtain: ClassVar[str] = (
        "Get the set's archive, such as https://zenodo.org/records/7884735/files/skinl_derm.zip, and unpack it into a "
        "folder MedIMeta, keeping the set's own folder."
    )
    default_size: ClassVar[int | None] = 64

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.part):
            raise ValueError(f"part must be the name of a set such as skinl_derm or organs_axial, got {self.part!r}")

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self._top(roots)
        info = self._info(top)
        table = read_table(top / "annotations.csv", ("filepath",), rest=True, obtain=self.obtain)
        task = self._task(top, info)
        findings, labels = self._labels(top, task)
        count = info["total_num_samples"]
        if not len(table) == len(labels) == count:
            raise DataError(
                f"{top}: expected {count} rows, as info.yaml says, found {len(table)} in annotations.csv and "
                f"{len(labels)} labels. {self.obtain}"
            )
        order = table["filepath"].str.replace(r"[0-9]+", lambda match: match[0].zfill(_DIGITS), regex=True)
        fault = "out of order: labels belong to images by place, so lines must be sorted by filepath"
        refuse(order < order.shift(fill_value=""), top / "annotations.csv", fault, self.obtain)
        again = table["filepath"].duplicated()
        refuse(again, top / "annotations.csv", "an image listed a second time", self.obtain)
        channels = int(info["input_size"][0])
        stored = None if (top / "images").is_dir() else self._stored(top, len(table), channels, size)
        subjects, known = _people(table)
        return Scan(
            labels=labels,
            subjects=subjects,
            findings=findings,
            exclusive=task["task_target"] in _EXCLUSIVE,
            paths=self._paths(top, table) if stored is None else None,
            samples=None if stored is None else stored.images,
            channels=channels,
            folder=top if stored is None else None,
            notes=(known, f"licence: {info.get('license', 'not stated')}", *(() if stored is None else stored.notes)),
            parts=self._parts(top, list(table["filepath"])),
            name=f"{self.name}:{self.part}[task={task['task_name']}]",
            origin=_ORIGINS.get(self.part, f"medimeta-{self.part}"),
        )

    def here(self, roots: Sequence[Path]) -> str:
        """The sets on this machine, regardless of the parameter."""
        places = [root / folder for root in roots for folder in ("", self.name, *_FOLDERS)]
        names = {path.parent.name for place in places for path in place.glob("*/info.yaml")}
        ready = [name for name in sorted(names) if _NAME.fullmatch(name) and Source.here(type(self)(name), roots)]
        return f"ready: {', '.join(ready)}" if ready else ""

    def stamp(self, roots: Sequence[Path]) -> str:
        """Sizes and times of tables, labels and images."""
        top = self._top(roots)
        tables = stamp_files([top / "info.yaml", top / "annotations.csv", *(top / "task_labels").glob("*.npy")])
        lists = stamp_files([top / _STORED, *(top / "splits").glob("*.txt")])
        stored, images = (top / _STORED).is_file(), top / "images"
        folder = "" if stored and not images.is_dir() else stamp_images([images], images, self.obtain, sizes=True)
        return f"{tables}\n{lists}\n{folder}"

    def _top(self, roots: Sequence[Path]) -> Path:
        marker = f"{self.part}/info.yaml"
        top = locate(roots, name=self.name, folders=_FOLDERS, markers=(marker,), obtain=self.obtain) / self.part
        missing = [part for part in ("annotations.csv", "task_labels") if not (top / part).exists()]
        if not (top / "images").is_dir() and not (top / _STORED).is_file():
            missing.append(f"images (or {_STORED})")
        if missing:
            raise DataError(
                f"{self.name}: expected annotations.csv, task_labels and images in {top}; {', '.join(missing)} not "
                f"found. {self.obtain}"
            )
        return top

    def _paths(self, top: Path, table: pd.DataFrame) -> list[Path]:
        here = set((top / "images").glob("*.tiff"))
        paths = [top / name for name in table["filepath"]]
        missing = [path.name for path in paths if path not in here]
        if missing:
            raise DataError(
                f"{self.name}: {len(missing)} of {len(table)} images were not found in {top / 'images'}, first "
                f"{missing[0]}. {self.obtain}"
            )
        return paths

    def _stored(self, top: Path, n: int, channels: int, size: int | None) -> Stored:
        try:
            return hdf5_images(top / _STORED, n=n, channels=channels, size=size)
        except DataError as error:
            raise DataError(f"{top / _STORED}: {error}. {self.obtain}") from None

    def _parts(self, top: Path, listed: Sequence[str]) -> list[str] | None:
        """The official part of each image; None without lists."""
        present = [part for part in PARTS if (top / "splits" / f"{part}.txt").is_file()]
        names = [(part, name) for part in present for name in read_list(top / "splits" / f"{part}.txt", self.obtain)]
        of = {Path(name).name: part for part, name in names}
        others = len(set(of) - {Path(name).name for name in listed})
        if len(of) != len(names) or others:
            raise DataError(
                f"{top / 'splits'}: expected the images of annotations.csv, each in one list, found that "
                f"{len(names) - len(of)} images are in several lists and {others} are others. {self.obtain}"
            )
        return [of.get(Path(name).name, "") for name in listed] if present else None

    def _info(self, top: Path) -> Mapping[str, Any]:
        """Read info.yaml: id, tasks, channels and number of rows."""
        path = top / "info.yaml"
        wrong = impostor(path)
        if wrong:
            raise DataError(f"{path}: expected the set's description, found {wrong}. {self.obtain}")
        try:
            info = cast(Mapping[str, Any], read_yaml(path))
            identifier, channels = info["id"], info["input_size"][0]
            tasks = [(task["task_name"], task["task_target"], task["labels"]) for task in info["tasks"]]
            if any("/" in str(name) or "\\" in str(name) for name, _, _ in tasks):
                raise ValueError("a task's name is a path")
            count = info["total_num_samples"]
            if type(count) is not int or count < 1:
                raise ValueError(f"total_num_samples must be a whole number of at least 1, got {count!r}")
            if identifier != self.part or channels not in (1, 3) or not tasks:
                raise ValueError(f"id {identifier!r}, expected {self.part!r}; {channels} channels; {len(tasks)} tasks")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise DataError(f"{path}: not the description of a MedIMeta set ({error}). {self.obtain}") from error
        return info

    def _task(self, top: Path, info: Mapping[str, Any]) -> Mapping[str, Any]:
        tasks = {str(task["task_name"]): task for task in info["tasks"]}
        name = self.task or _TASKS.get(self.part, next(iter(tasks)))
        if name not in tasks:
            raise DataError(
                f"{self.name}: {self.part} has no task {name!r}; write medimeta:{self.part}[task=NAME] with one of "
                f"{', '.join(tasks)}"
            )
        target, labels = tasks[name]["task_target"], tasks[name]["labels"]
        if (
            target not in _SHAPES
            or not isinstance(labels, Mapping)
            or list(labels) != list(range(len(labels)))
            or len(labels) < 2
        ):
            raise DataError(
                f"{self.name}: the task {name!r} of {self.part} is {target} with the labels {labels}; expected "
                f"{', '.join(_SHAPES)} with two or more labels numbered from 0"
            )
        if odd := [label for label in labels.values() if type(label) not in (str, int)]:
            raise DataError(
                f"{self.name}: the task {name!r} of {self.part} has a label that YAML reads as {odd[0]!r}, which is no "
                f"text (yes, no, on, off and null are none there): put it in quotes"
            )
        choice: Mapping[str, Any] = tasks[name]
        return choice

    def _labels(self, top: Path, task: Mapping[str, Any]) -> tuple[tuple[str, ...], np.ndarray]:
        """Findings and labels (n, k) float32, one-hot for exclusive classes."""
        path = top / "task_labels" / f"{task['task_name']}.npy"
        if not path.is_file():
            raise DataError(f"{self.name}: expected {path}, found none. {self.obtain}")
        wrong = impostor(path)
        if wrong:
            raise DataError(f"{path}: expected an array of labels, found {wrong}. {self.obtain}")
        try:
            with path.open("rb") as file:
                marks = read_array(file, path.stat().st_size)
        except DataError as error:
            raise DataError(f"{path}: expected an array of labels, found {error}. {self.obtain}") from None
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: truncated or not an array of labels ({error}). {self.obtain}") from error
        names = tuple(map(str, task["labels"].values()))
        several = task["task_target"] == "MULTILABEL_CLASSIFICATION"
        most = 1 if several else len(names) - 1
        fits = marks.ndim == _SHAPES[task["task_target"]] and marks.dtype.kind in "iub"
        if (
            not fits
            or (several and marks.shape[1] != len(names))
            or marks.min(initial=0) < 0
            or marks.max(initial=0) > most
        ):
            spread = f" from {marks.min()} to {marks.max()}" if marks.size and marks.dtype.kind in "iub" else ""
            raise DataError(
                f"{path}: expected {'n x ' + str(len(names)) if several else 'n'} whole numbers from 0 to {most}, "
                f"found {marks.dtype} of shape {marks.shape}{spread}. {self.obtain}"
            )
        marks = marks.astype(np.int64)  # True and False would choose rows of what they index
        if several:
            return names, marks.astype(np.float32)
        if task["task_target"] == "BINARY_CLASSIFICATION":
            return (f"{task['task_name']}: {names[1]}",), marks[:, None].astype(np.float32)
        return names, np.eye(len(names), dtype=np.float32)[marks]


def _people(table: pd.DataFrame) -> tuple[list[str] | None, str]:
    """The person of each row, and a note on the source."""
    if "patient_id" in table.columns:
        return list(table["patient_id"]), "people are the set's patients"
    if "original_filepath" in table.columns and table["original_filepath"].duplicated().any():
        return list(table["original_filepath"]), "images cut from one original file count as one person's"
    return None, UNKNOWN
