"""Paediatric chest X-rays of Kermany et al. 2018.

Kaggle and Mendeley (doi 10.17632/rscbjbr9sj) give them as chest_xray/{train,test[,val]}/{NORMAL,PNEUMONIA}/*.jpeg.

People come from the official file names. Pneumonia: person number with bacteria or virus (person309_virus_632 is
person309_virus). Normal: the study number (IM-0001-0001 is IM-0001), an unverified identity. Version 3
names (BACTERIA-1008087-0001) carry a patient number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import PARTS, DataError, Official, Scan, Source
from bench.data.raw_files import listed, locate, stamp_images

_CLASSES = ("NORMAL", "PNEUMONIA")
_FORMS = {
    "NORMAL": (re.compile(r"((?:NORMAL2-)?IM-\d+)-\d+(?:-\d+)?"), re.compile(r"(NORMAL-\d+)-\d+")),
    "PNEUMONIA": (
        re.compile(r"(person\d+_(?:bacteria|virus))_\d+(?:_\d+)?"), re.compile(r"((?:BACTERIA|VIRUS)-\d+)-\d+"),
    ),
}  # fmt: skip
"""Names of the images of each class: a pneumonia among the normal ones would be mislabelled."""
_ROWS = (5856,)


@dataclass(frozen=True)
class Listed:
    """The images of all folders, one after the other.

    Args:
        paths, people, parts: Of each image.
        classes: Of each image, the number of its class.
        notes: How many files of another ending were left out; empty if none was.
    """

    paths: list[Path]
    people: list[str]
    classes: list[int]
    parts: list[str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ClassFolders:
    """The folders of a data set.

    Args:
        name: Of the data set, for messages.
        classes: The folders' names.
        example: An official file name, in which {0} stands for the class.
        person: The person that the stem of a file of a class names; None if the name has no official form.
        obtain: How to get the data.
    """

    name: str
    classes: Sequence[str]
    example: str
    person: Callable[[str, str], str | None]
    obtain: str

    def check(self, top: Path) -> None:
        """Raise DataError unless the classes' folders are in train and in test."""
        missing = [
            f"{part}/{kind}" for part in ("train", "test") for kind in self.classes if not (top / part / kind).is_dir()
        ]
        if missing:
            named = f"{', '.join(self.classes[:-1])} and {self.classes[-1]}"
            raise DataError(
                f"{self.name}: expected the folders train and test, each with {named}, in {top}; "
                f"{', '.join(missing)} not found. {self.obtain}"
            )

    def listed(self, top: Path) -> Listed:
        """List the .jpeg files; DataError for empty folders and unofficial names."""
        result = Listed([], [], [], [], ())
        left = 0
        for folder in self._folders(top):
            there, _ = listed(folder)
            paths = sorted(path for path in there if path.suffix == ".jpeg")
            left += len(there) - len(paths)
            if not paths:
                raise DataError(f"{self.name}: expected *.jpeg files in {folder}, found none. {self.obtain}")
            people = [self.person(folder.name, path.stem) for path in paths]
            odd = [path.name for path, person in zip(paths, people, strict=True) if person is None]
            if odd:
                raise DataError(
                    f"{self.name}: expected official names such as {self.example.format(folder.name)} in {folder}, "
                    f"found {', '.join(odd[:5])} ({len(odd)} such files). Remove them, or use them as folder:PATH. "
                    f"{self.obtain}"
                )
            result.paths.extend(paths)
            result.people.extend(person for person in people if person is not None)
            result.classes.extend([list(self.classes).index(folder.name)] * len(paths))
            result.parts.extend([folder.parent.name] * len(paths))
        notes = (f"{left} files of another ending than .jpeg are left out",) if left else ()
        return Listed(result.paths, result.people, result.classes, result.parts, notes)

    def stamp(self, top: Path) -> str:
        """Numbers, names, sizes and times of the files in each folder."""
        return stamp_images(self._folders(top), top, self.obtain, sizes=True)

    def _folders(self, top: Path) -> list[Path]:
        folders = [top / part / kind for part in PARTS for kind in self.classes]
        return [folder for folder in folders if folder.is_dir()]


def subject(kind: str, stem: str) -> str | None:
    """The person in an official file stem; None for another form.

    >>> subject("PNEUMONIA", "person309_virus_632"), subject("NORMAL", "NORMAL2-IM-0381-0001")
    ('person309_virus', 'NORMAL2-IM-0381')
    >>> subject("NORMAL", "person309_virus_632")
    """
    return next((match[1] for form in _FORMS[kind] if (match := form.fullmatch(stem))), None)


@dataclass(frozen=True)
class KermanyCXR(Source):
    """Chest X-rays of children, normal or with pneumonia."""

    name: ClassVar[str] = "kermany-cxr"
    title: ClassVar[str] = "Kermany paediatric chest X-rays"
    source: ClassVar[str] = "Kermany et al. 2018, Cell 172:1122-1131, doi:10.17632/rscbjbr9sj"
    public: ClassVar[str] = "nih"
    origin: ClassVar[str] = "kermany-cxr"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY 4.0"
    obtain: ClassVar[str] = (
        "Get ChestXRay2017.zip from https://data.mendeley.com/datasets/rscbjbr9sj and unpack it, keeping the folder "
        "chest_xray."
    )
    default_size: ClassVar[int | None] = 64

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self._top(roots)
        images = self._folders.listed(top)
        return Scan(
            labels=np.array(images.classes, dtype=np.float32)[:, None],
            subjects=images.people,
            findings=("Pneumonia",),
            exclusive=False,
            paths=images.paths,
            folder=top,
            version="Mendeley v3" if images.people[0].startswith("NORMAL-") else "Mendeley v2 / Kaggle",
            notes=("people of normal images are study numbers from file names, unverified", *images.notes),
            parts=images.parts,
            official=(Official("rows", len(images.paths), _ROWS),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Numbers, names, sizes and times of the files in each class folder."""
        return self._folders.stamp(self._top(roots))

    @property
    def _folders(self) -> ClassFolders:
        return ClassFolders(
            self.name, _CLASSES, "person309_virus_632.jpeg for PNEUMONIA and IM-0001-0001.jpeg for NORMAL", subject,
            self.obtain,
        )  # fmt: skip

    def _top(self, roots: Sequence[Path]) -> Path:
        folders = (
            "kermany/chest_xray",
            "chest_xray",
            "chest_xray/chest_xray",
            "CellData/chest_xray",
            "kermany",
            "kermany-cxr/chest_xray",
            "ZhangLabData/CellData/chest_xray",
            "ChestXRay2017/chest_xray",
        )
        top = locate(roots, name=self.name, folders=folders, markers=("train/NORMAL",), obtain=self.obtain)
        self._folders.check(top)
        return top
