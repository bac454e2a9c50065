"""The 2-D sets of MedMNIST v2 (Yang et al. 2023): `medmnist:<flag>[@size]`.

The three official parts of each .npz file are joined. Labels: a two-class set has one finding, its class 1; a set with
several classes (ordinal ones too) exclusive classes; ChestMNIST fourteen findings.

The files name no patients. A list beside the .npz file, `FLAG.subjects.txt` (`FLAG_64.subjects.txt` beside
`FLAG_64.npz`), may: a line for each image, in the order train, val, test. Without it, nearly identical images
(`bench.data.verification`) count as one person's, and every other image as a person of its own.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.contract.source import PARTS, DataError, Official, Scan, Source
from bench.data.array_files import read_member
from bench.data.csv_tables import read_list
from bench.data.raw_files import downloading, locate, stamp_files
from bench.data.verification import near_identical
from bench.disk.file_kind import impostor
from bench.validation import nearest

_SIZES = (28, 64, 128, 224)
_ORIGINS = {
    "pneumoniamnist": "kermany-cxr",
    "chestmnist": "nih-cxr",
    "organamnist": "lits",
    "organcmnist": "lits",
    "organsmnist": "lits",
}


@dataclass(frozen=True)
class MedMNIST(Source):
    """One set of MedMNIST.

    Args:
        flag: Name of the set, and after "@" the side of the images as distributed (28, 64, 128 or 224; default 28).
    """

    flag: str = "pneumoniamnist@28"

    name: ClassVar[str] = "medmnist"
    title: ClassVar[str] = "MedMNIST v2"
    source: ClassVar[str] = "Yang et al. 2023, Scientific Data 10:41, doi:10.1038/s41597-022-01721-8"
    public: ClassVar[str] = "medmnist"
    origin: ClassVar[str] = "medmnist"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY 4.0 (DermaMNIST: CC BY-NC 4.0)"
    obtain: ClassVar[str] = (
        "Run `bench data prepare medmnist:FLAG --download`, or fetch the .npz file from "
        "https://zenodo.org/records/10519652."
    )
    default_size: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        self._parse()

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        flag, side = self._parse()
        info = _catalogue()[flag]
        path = self._path(roots)
        arrays = self._load(path)
        every, columns = ([arrays[f"{part}_{what}"] for part in PARTS] for what in ("images", "labels"))
        lengths = [[len(arrays[f"{part}_{what}"]) for part in PARTS] for what in ("images", "labels")]
        channels = int(info["n_channels"])
        shape = (side, side) if channels == 1 else (side, side, channels)
        kinds = {(array.dtype.name, array.shape[1:]) for array in every}
        if kinds != {("uint8", shape)} or lengths[0] != lengths[1]:
            contents = " and ".join(f"{dtype} of {others}" for dtype, others in sorted(kinds))
            raise DataError(
                f"{path}: expected uint8 images of {shape} with a label each, found {contents}, {lengths[0]} "
                f"images and {lengths[1]} labels. {self.obtain}"
            )
        if any(column.ndim != 2 or column.shape[1] != columns[0].shape[1] for column in columns):
            raise DataError(
                f"{path}: expected labels of as many columns in each part, found the shapes "
                f"{', '.join(str(column.shape) for column in columns)}. {self.obtain}"
            )
        images, marks = np.concatenate(every), np.concatenate(columns)
        findings, labels = self._labels(path, marks, info)
        samples = images[:, None] if channels == 1 else np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        subjects, note = self._subjects(_list_beside(path), samples)
        return Scan(
            labels=labels,
            subjects=subjects,
            findings=findings,
            exclusive=len(findings) > 1 and "multi-label" not in info["task"],
            samples=samples,
            channels=channels,
            version="v2",
            notes=(note,),
            parts=[part for part in PARTS for _ in arrays[f"{part}_images"]],
            official=tuple(_official(path, info, side, {part: len(arrays[f"{part}_images"]) for part in PARTS})),
            name=f"{self.name}:{flag}@{side}",
            origin=_ORIGINS.get(flag, flag),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Size and time of the file and of its list of people."""
        path = self._path(roots)
        return stamp_files([path, _list_beside(path)])

    def here(self, roots: Sequence[Path]) -> str:
        """The sets and sizes on this machine, regardless of the parameter."""
        known = [name for name in _catalogue() if not name.endswith("3d")]
        named = [type(self)(f"{flag}@{side}") for flag in sorted(known) for side in _SIZES]
        ready = [source.flag for source in named if Source.here(source, roots)]
        return f"ready: {', '.join(ready)}" if ready else ""

    def download(self, root: Path) -> None:
        """Fetch through the medmnist package into `root`/medmnist."""
        import medmnist  # only for a download

        flag, side = self._parse()
        folder = root / "medmnist"
        folder.mkdir(parents=True, exist_ok=True)
        collection = getattr(medmnist, _catalogue()[flag]["python_class"])
        with downloading(f"{self.name}:{flag}@{side}", self.obtain):
            collection(split="train", root=str(folder), download=True, size=side)

    def _parse(self) -> tuple[str, int]:
        flag, _, side = self.flag.partition("@")
        known = {name for name in _catalogue() if not name.endswith("3d")}
        if flag not in known:
            names, hint = ", ".join(sorted(known)), nearest(flag, known).strip()
            raise ValueError(f"flag must be one of the 2-D sets {names}; got {flag!r}{hint and f'; {hint}'}")
        if side not in ("", *map(str, _SIZES)):
            raise ValueError(f"size after '@' must be one of {', '.join(map(str, _SIZES))}, got {side!r}")
        return flag, int(side or 28)

    def _path(self, roots: Sequence[Path]) -> Path:
        flag, side = self._parse()
        file = f"{flag}.npz" if side == 28 else f"{flag}_{side}.npz"
        return (
            locate(roots, name=self.name, folders=("MedMNIST", ".medmnist"), markers=(file,), obtain=self.obtain) / file
        )

    def _load(self, path: Path) -> dict[str, np.ndarray]:
        wrong = impostor(path)
        if wrong:
            raise DataError(f"{path}: expected a MedMNIST .npz file, found {wrong}. {self.obtain}")
        try:
            with zipfile.ZipFile(path) as file:
                return {
                    f"{part}_{what}": read_member(file, f"{part}_{what}.npy")
                    for part in PARTS
                    for what in ("images", "labels")
                }
        except DataError as error:
            raise DataError(f"{path}: expected a MedMNIST .npz file, found {error}. {self.obtain}") from None
        except KeyError as error:
            raise DataError(
                f"{path}: expected train, val and test images and labels: {error}. {self.obtain}"
            ) from error
        except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{path}: truncated or not a MedMNIST .npz file ({error}). {self.obtain}") from error

    def _subjects(self, listed: Path, samples: np.ndarray) -> tuple[list[str] | None, str]:
        """The person of each image ("" if unknown), and a note."""
        if listed.exists():
            names = read_list(listed, self.obtain)
            if len(names) != len(samples):
                raise DataError(
                    f"{listed}: expected {len(samples)} lines, one for each image ('?' for unknown), found "
                    f"{len(names)} that are not blank"
                )
            return names, "patients as a list beside the file names them"
        groups = near_identical(samples)
        joined = int((groups >= 0).sum())
        note = "patients are not named, so images of one patient may stand on two sides"
        if not joined:
            return None, note
        many = len(np.unique(groups[groups >= 0]))
        return (
            ["" if group < 0 else f"alike {group}" for group in groups],
            f"{note}; {joined} images that are nearly identical to others count as {many} people",
        )

    def _labels(self, path: Path, marks: np.ndarray, info: Mapping[str, Any]) -> tuple[tuple[str, ...], np.ndarray]:
        """Findings and labels (n, k) float32, one-hot for exclusive classes."""
        names = tuple(str(info["label"][str(number)]) for number in range(len(info["label"])))
        several = "multi-label" in info["task"]
        columns, top = (len(names), 1) if several else (1, len(names) - 1)
        low = marks.min(initial=0) if marks.dtype.kind in "ui" else -1
        if marks.ndim != 2 or marks.shape[1] != columns or low < 0 or marks.max(initial=0) > top:
            raise DataError(
                f"{path}: expected labels of {columns} columns of whole numbers from 0 to {top}, found {marks.dtype} "
                f"of shape {marks.shape} up to {marks.max(initial=0)}. {self.obtain}"
            )
        if several:
            return names, marks.astype(np.float32)
        if len(names) == 2:
            return names[1:], marks.astype(np.float32)
        return names, np.eye(len(names), dtype=np.float32)[marks[:, 0]]


def _list_beside(path: Path) -> Path:
    return path.with_suffix(".subjects.txt")


@cache
def _catalogue() -> Mapping[str, Mapping[str, Any]]:
    """The package's own list, read without its slow `__init__`."""
    package = find_spec("medmnist")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("medmnist needs the package of that name", name="medmnist")
    spec = spec_from_file_location("medmnist_info", Path(package.origin).with_name("info.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    catalogue: Mapping[str, Mapping[str, Any]] = module.INFO
    return catalogue


def _official(path: Path, info: Mapping[str, Any], side: int, rows: Mapping[str, int]) -> Iterator[Official]:
    """The file's checksum and counts beside the official ones."""
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    yield Official("as MD5 of the file", checksum, (str(info["MD5" if side == 28 else f"MD5_{side}"]),))
    for part, count in rows.items():
        yield Official(f"{part} rows", count, (int(info["n_samples"][part]),))
