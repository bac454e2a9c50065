"""Paediatric chest X-rays of Kermany et al. 2018 (Cell 172:1122, doi 10.17632/rscbjbr9sj), as Kaggle and Mendeley give
them: chest_xray/{train,test[,val]}/{NORMAL,PNEUMONIA}/*.jpeg.

People come from the official file names. Pneumonia: person number with bacteria or virus (person309_virus_632 is
person309_virus). Normal: the study number (IM-0001-0001 is IM-0001), whose identity nobody has verified. Version 3
names (BACTERIA-1008087-0001) carry a patient number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import DataError, Official, Scan, Source
from bench.data.roots import locate, stamp_folder

_FORMS = (
    re.compile(r"(person\d+_(?:bacteria|virus))_\d+(?:_\d+)?"),
    re.compile(r"((?:NORMAL2-)?IM-\d+)-\d+(?:-\d+)?"),
    re.compile(r"((?:BACTERIA|VIRUS|NORMAL)-\d+)-\d+"),
)
_CLASSES = ("NORMAL", "PNEUMONIA")
_ROWS = (5856,)


def subject(stem: str) -> str | None:
    """The person in an official file name (without its suffix); None where the name has no official form.

    >>> subject("person309_virus_632"), subject("IM-0001-0001"), subject("NORMAL2-IM-0381-0001")
    ('person309_virus', 'IM-0001', 'NORMAL2-IM-0381')
    """
    return next((match[1] for form in _FORMS if (match := form.fullmatch(stem))), None)


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
        paths: list[Path] = []
        labels: list[int] = []
        people: list[str] = []
        parts: list[str] = []
        left = 0
        for folder in _folders(top):
            there = [path for path in folder.iterdir() if not path.name.startswith(".")]
            found = sorted(path for path in there if path.suffix == ".jpeg")
            left += len(there) - len(found)
            if not found:
                raise DataError(f"{self.name}: expected *.jpeg files in {folder}, found none. {self.obtain}")
            named = [subject(path.stem) for path in found]
            odd = [path.name for path, person in zip(found, named, strict=True) if person is None]
            if odd:
                raise DataError(
                    f"{self.name}: expected official names such as person309_virus_632.jpeg or IM-0001-0001.jpeg in "
                    f"{folder}, found {', '.join(odd[:5])} ({len(odd)} such files). Remove them, or use them as "
                    f"folder:PATH. {self.obtain}"
                )
            paths += found
            labels += [_CLASSES.index(folder.name)] * len(found)
            parts += [folder.parent.name] * len(found)
            people += [person for person in named if person is not None]
        return Scan(
            labels=np.array(labels, dtype=np.float32)[:, None],
            subjects=people,
            findings=("Pneumonia",),
            exclusive=False,
            paths=paths,
            folder=top,
            version="Mendeley v3" if people[0].startswith("NORMAL-") else "Mendeley v2 / Kaggle",
            notes=(
                "people of normal images are study numbers from file names, unverified",
                *([f"{left} files of another ending than .jpeg are left out"] if left else []),
            ),
            parts=parts,
            official=(Official("rows", len(paths), _ROWS),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Numbers, names, sizes and times of the files in each class folder."""
        return "\n".join(stamp_folder(folder, sizes=True) for folder in _folders(self._top(roots)))

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
        missing = [
            f"{part}/{kind}" for part in ("train", "test") for kind in _CLASSES if not (top / part / kind).is_dir()
        ]
        if missing:
            raise DataError(
                f"{self.name}: expected the folders train and test, each with NORMAL and PNEUMONIA, in {top}; "
                f"{', '.join(missing)} not found. {self.obtain}"
            )
        return top


def _folders(top: Path) -> list[Path]:
    folders = [top / part / kind for part in ("train", "val", "test") for kind in _CLASSES]
    return [folder for folder in folders if folder.is_dir()]
