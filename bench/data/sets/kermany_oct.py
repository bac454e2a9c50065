"""Retinal tomography of Kermany et al. 2018, from Kaggle or Mendeley:
OCT2017/{train,test[,val]}/{CNV,DME,DRUSEN,NORMAL}/CNV-1016042-1.jpeg.

People come from the official file names: disease, patient number, number of the image. The number alone stands for the
person, whatever the disease, so that a person listed under two stays on one side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import Official, Scan, Source
from bench.data.raw_files import locate
from bench.data.sets.kermany import ClassFolders

_CLASSES = {
    "CNV": "choroidal neovascularisation",
    "DME": "diabetic macular edema",
    "DRUSEN": "drusen",
    "NORMAL": "normal",
}
_FORM = re.compile(r"(CNV|DME|DRUSEN|NORMAL)-([0-9]+)-[0-9]+")
_ROWS = (109_309, 109_312, 84_484, 84_495)


@dataclass(frozen=True)
class KermanyOCT(Source):
    """B-scans of the retina, four exclusive classes."""

    name: ClassVar[str] = "kermany-oct"
    title: ClassVar[str] = "Kermany retinal tomography"
    source: ClassVar[str] = "Kermany et al. 2018, Cell 172:1122-1131, doi:10.17632/rscbjbr9sj"
    public: ClassVar[str] = "kermany-oct"
    origin: ClassVar[str] = "octmnist"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY 4.0"
    obtain: ClassVar[str] = (
        "Get OCT2017.tar.gz (version 2) or ZhangLabData (version 3) from "
        "https://data.mendeley.com/datasets/rscbjbr9sj and unpack it, keeping its folder OCT2017 or OCT."
    )
    default_size: ClassVar[int | None] = 64

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self._top(roots)
        images = self._folders.listed(top)
        return Scan(
            labels=np.eye(len(_CLASSES), dtype=np.float32)[images.classes],
            subjects=images.people,
            findings=tuple(_CLASSES.values()),
            exclusive=True,
            paths=images.paths,
            folder=top,
            notes=images.notes,
            parts=images.parts,
            official=(Official("rows", len(images.paths), _ROWS),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Numbers, names, sizes and times of the files in each class folder."""
        return self._folders.stamp(self._top(roots))

    @property
    def _folders(self) -> ClassFolders:
        return ClassFolders(self.name, tuple(_CLASSES), "{0}-1016042-1.jpeg", _person, self.obtain)

    def _top(self, roots: Sequence[Path]) -> Path:
        kaggle = ("OCT2017 ", "oct2017/OCT2017 ")  # its archive has a blank at the end of the name
        names = ("OCT2017", "OCT", "OCT2017/OCT2017", "CellData/OCT", "ZhangLabData/CellData/OCT", *kaggle)
        folders = [*names, *(f"{above}/{name}" for above in ("kermany", "kermany2018") for name in names)]
        top = locate(roots, name=self.name, folders=folders, markers=("train/CNV",), obtain=self.obtain)
        self._folders.check(top)
        return top


def _person(kind: str, stem: str) -> str | None:
    match = _FORM.fullmatch(stem)
    return match[2] if match is not None and match[1] == kind else None
