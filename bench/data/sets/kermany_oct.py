"""Retinal tomography of Kermany et al. 2018 (Cell 172:1122, doi 10.17632/rscbjbr9sj), as Kaggle and Mendeley give it:
OCT2017/{train,test[,val]}/{CNV,DME,DRUSEN,NORMAL}/CNV-1016042-1.jpeg.

People come from the official file names: disease, patient number, number of the image. The number alone stands for the
person, whatever the disease, so that nobody who is listed under two stands on two sides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import PARTS, DataError, Official, Scan, Source
from bench.data.roots import locate, stamp_folder

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
        paths: list[Path] = []
        people: list[str] = []
        classes: list[int] = []
        parts: list[str] = []
        left = 0
        for folder in _folders(top):
            there = [path for path in folder.iterdir() if not path.name.startswith(".")]
            found = sorted(path for path in there if path.suffix == ".jpeg")
            left += len(there) - len(found)
            named = [_FORM.fullmatch(path.stem) for path in found]
            odd = [
                path.name for path, match in zip(found, named, strict=True) if match is None or match[1] != folder.name
            ]
            if odd or not found:
                raise DataError(
                    f"{self.name}: expected official names such as {folder.name}-1016042-1.jpeg in {folder}, found "
                    f"{', '.join(odd[:5]) or 'no .jpeg file'} ({len(odd)} such files). Remove them, or use them as "
                    f"folder:PATH. {self.obtain}"
                )
            paths += found
            people += [match[2] for match in named if match is not None]
            classes += [list(_CLASSES).index(folder.name)] * len(found)
            parts += [folder.parent.name] * len(found)
        return Scan(
            labels=np.eye(len(_CLASSES), dtype=np.float32)[classes],
            subjects=people,
            findings=tuple(_CLASSES.values()),
            exclusive=True,
            paths=paths,
            folder=top,
            notes=(f"{left} files of another ending than .jpeg are left out",) if left else (),
            parts=parts,
            official=(Official("rows", len(paths), _ROWS),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Numbers, names, sizes and times of the files in each class folder."""
        return "\n".join(stamp_folder(folder, sizes=True) for folder in _folders(self._top(roots)))

    def _top(self, roots: Sequence[Path]) -> Path:
        names = ("OCT2017", "OCT", "OCT2017/OCT2017", "CellData/OCT", "ZhangLabData/CellData/OCT")
        folders = [*names, *(f"{above}/{name}" for above in ("kermany", "kermany2018") for name in names)]
        top = locate(roots, name=self.name, folders=folders, markers=("train/CNV",), obtain=self.obtain)
        missing = [
            f"{part}/{kind}" for part in ("train", "test") for kind in _CLASSES if not (top / part / kind).is_dir()
        ]
        if missing:
            raise DataError(
                f"{self.name}: expected the folders train and test, each with {', '.join(_CLASSES)}, in {top}; "
                f"{', '.join(missing)} not found. {self.obtain}"
            )
        return top


def _folders(top: Path) -> list[Path]:
    folders = [top / part / kind for part in PARTS for kind in _CLASSES]
    return [folder for folder in folders if folder.is_dir()]
