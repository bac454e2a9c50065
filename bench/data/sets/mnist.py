"""MNIST (LeCun et al. 1998) in torchvision's layout: MNIST/raw/*-ubyte[.gz]."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import DataError, Official, Scan
from bench.data.sets.torchvision_sets import TorchvisionSource
from bench.disk.file_kind import impostor

_PARTS = (("train", 60_000), ("t10k", 10_000))
_LARGEST = 2**30  # bytes of an idx file; the largest official one has 47 million
_MAGIC = {"images-idx3-ubyte": 2051, "labels-idx1-ubyte": 2049}


@dataclass(frozen=True)
class MNIST(TorchvisionSource):
    """Handwritten digits, 28x28, ten exclusive classes; the writers are unknown."""

    name: ClassVar[str] = "mnist"
    title: ClassVar[str] = "MNIST"
    source: ClassVar[str] = "LeCun, Bottou, Bengio, Haffner 1998, Proc. IEEE 86:2278-2324"
    public: ClassVar[str] = "mnist"
    origin: ClassVar[str] = "mnist"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY-SA 3.0"
    obtain: ClassVar[str] = (
        "Run `bench data prepare mnist --download`, or torchvision.datasets.MNIST(ROOT, download=True)."
    )
    default_size: ClassVar[int | None] = None
    folders: ClassVar[tuple[str, ...]] = ("MNIST/raw", "mnist/MNIST/raw", "MNIST", "mnist/raw")
    markers: ClassVar[tuple[str, ...]] = ("train-images-idx3-ubyte", "train-images-idx3-ubyte.gz")
    tables: ClassVar[tuple[str, ...]] = ("*",)
    torchvision: ClassVar[str] = "MNIST"
    below: ClassVar[str] = "mnist"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        raw = self.top(roots)
        images, digits, parts, official = [], [], list[str](), list[Official]()
        for part, expected in _PARTS:
            pixels = self._read(raw, f"{part}-images-idx3-ubyte")
            marks = self._read(raw, f"{part}-labels-idx1-ubyte")
            if len(pixels) != len(marks) or pixels.shape[1:] != (28, 28) or marks.max(initial=0) > 9:
                raise DataError(
                    f"{self.name}: expected as many 28x28 images as labels from 0 to 9 in {part}, found images "
                    f"{pixels.shape} and {len(marks)} labels up to {marks.max(initial=0)} in {raw}. {self.obtain}"
                )
            official.append(Official(f"{part} rows", len(pixels), (expected,)))
            parts += ["train" if part == "train" else "test"] * len(pixels)
            images.append(pixels)
            digits.append(marks)
        return Scan(
            labels=np.eye(10, dtype=np.float32)[np.concatenate(digits)],
            subjects=None,
            findings=tuple("0123456789"),
            exclusive=True,
            samples=np.concatenate(images)[:, None],
            version="train + test",
            notes=("writers are unknown, so one may stand on two sides",),
            parts=parts,
            official=tuple(official),
        )

    def _read(self, raw: Path, name: str) -> np.ndarray:
        """The uint8 array of an idx file."""
        path = next((path for path in (raw / name, raw / f"{name}.gz") if path.exists()), None)
        if path is None:
            raise DataError(f"{self.name}: expected {name} or {name}.gz in {raw}, found neither. {self.obtain}")
        wrong = impostor(path)
        if wrong:
            raise DataError(f"{path}: expected an idx file, found {wrong}. {self.obtain}")
        try:
            content = _unpacked(path) if path.suffix == ".gz" else path.read_bytes()
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: damaged gzip file ({error}). {self.obtain}") from error
        magic = _MAGIC[name.partition("-")[2]]
        dimensions = magic % 256
        if len(content) < 4 + 4 * dimensions or struct.unpack(">i", content[:4])[0] != magic:
            raise DataError(
                f"{path}: expected an idx file that starts with {magic}, got {content[:4].hex()}. {self.obtain}"
            )
        shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
        values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
        if len(values) != math.prod(shape):
            raise DataError(
                f"{path}: truncated: expected {math.prod(shape)} values, found {len(values)}. {self.obtain}"
            )
        return values.reshape(shape)


def _unpacked(path: Path) -> bytes:
    with gzip.open(path) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(f"it unpacks to more than {_LARGEST} bytes")
    return content
