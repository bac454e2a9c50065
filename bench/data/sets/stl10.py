"""STL-10 (Coates et al. 2011) in torchvision's layout: stl10_binary/{train,test}_{X,y}.bin and class_names.txt.

The official parts are joined; the ten folds and the 100,000 unlabelled images are not
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import DataError, Official, Scan
from bench.data.csv_tables import read_list
from bench.data.sets.torchvision_sets import NOTE, TorchvisionSource
from bench.disk.file_kind import impostor


@dataclass(frozen=True)
class STL10(TorchvisionSource):
    """Photographs of animals and vehicles, 96x96, ten exclusive classes."""

    name: ClassVar[str] = "stl10"
    title: ClassVar[str] = "STL-10"
    source: ClassVar[str] = "Coates, Lee, Ng 2011, AISTATS; images from ImageNet"
    public: ClassVar[str] = "stl10"
    origin: ClassVar[str] = "stl10"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "for research, as ImageNet, from which the images are"
    obtain: ClassVar[str] = (
        "Run `bench data prepare stl10 --download`, or unpack http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz."
    )
    default_size: ClassVar[int | None] = None
    folders: ClassVar[tuple[str, ...]] = ("stl10_binary", "stl10/stl10_binary")
    markers: ClassVar[tuple[str, ...]] = ("train_X.bin",)
    tables: ClassVar[tuple[str, ...]] = ("*",)
    torchvision: ClassVar[str] = "STL10"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        images, marks, parts, official = [], [], list[str](), list[Official]()
        for part, expected in (("train", 5_000), ("test", 8_000)):
            pixels, classes = self._bytes(top / f"{part}_X.bin"), self._bytes(top / f"{part}_y.bin")
            if len(pixels) != len(classes) * 3 * 96 * 96 or classes.min(initial=1) < 1 or classes.max(initial=0) > 10:
                raise DataError(
                    f"{self.name}: expected 27648 bytes an image and a class from 1 to 10 each in {part}, found "
                    f"{len(pixels)} bytes and {len(classes)} classes up to {classes.max(initial=0)} in {top}. "
                    f"{self.obtain}"
                )
            official.append(Official(f"{part} rows", len(classes), (expected,)))
            parts += [part] * len(classes)
            images.append(pixels.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2))  # stored column by column
            marks.append(classes)
        names = read_list(top / "class_names.txt", self.obtain)
        if len(names) != 10:
            raise DataError(f"{top / 'class_names.txt'}: expected 10 names, found {len(names)}. {self.obtain}")
        return Scan(
            labels=np.eye(10, dtype=np.float32)[np.concatenate(marks) - 1],
            subjects=None,
            findings=tuple(names),
            exclusive=True,
            samples=np.concatenate(images),
            channels=3,
            version="train + test",
            notes=(NOTE,),
            parts=parts,
            official=tuple(official),
        )

    def _bytes(self, path: Path) -> np.ndarray:
        if not path.is_file():
            raise DataError(f"{self.name}: expected {path}, found none. {self.obtain}")
        wrong = impostor(path)
        if wrong:
            raise DataError(f"{path}: expected a binary file of STL-10, found {wrong}. {self.obtain}")
        return np.fromfile(path, dtype=np.uint8)
