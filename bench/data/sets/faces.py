"""Labeled Faces in the Wild and the Olivetti faces; people are known.

`lfw` reads the official folders, lfw_funneled/NAME/NAME_0001.jpg (also lfw-deepfunneled and lfw), as
`sklearn.datasets.fetch_lfw_people` leaves them below scikit_learn_data/lfw_home. `olivetti` reads olivettifaces.mat, or
the olivetti_faces.npy that `bench data prepare olivetti --download` writes; the cache of scikit-learn itself
(olivetti_py3.pkz) is a pickle, which could run code, and is not read. Neither set has findings, so that figures that
need labels do not apply.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy

from bench.contract.source import DataError, Official, Scan, Source
from bench.data.array_files import read_array
from bench.data.raw_files import downloading, listed, locate, stamp_files, stamp_images, walk
from bench.disk.file_kind import impostor

_FOLDERS = ("lfw_funneled", "lfw-deepfunneled", "lfw")
_MAT, _NPY = "olivettifaces.mat", "olivetti_faces.npy"
_SHA256 = "b612fb967f2dc77c9c62d3e1266e0c73d5fca46a4b8906c18e454d41af987794"
"""Of the official file: a few other bytes end SciPy's reader, and the process with it."""


@dataclass(frozen=True)
class LFW(Source):
    """Photographs of faces from the news, 5,749 people."""

    name: ClassVar[str] = "lfw"
    title: ClassVar[str] = "Labeled Faces in the Wild"
    source: ClassVar[str] = "Huang, Ramesh, Berg, Learned-Miller 2007, University of Massachusetts, Amherst, TR 07-49"
    public: ClassVar[str] = "lfw"
    origin: ClassVar[str] = "lfw"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "for research; photographs of news agencies"
    obtain: ClassVar[str] = (
        "Run `bench data prepare lfw --download`, or unpack lfw-funneled.tgz of http://vis-www.cs.umass.edu/lfw/, "
        "keeping its folder lfw_funneled."
    )
    default_size: ClassVar[int | None] = 64

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self._top(roots)
        try:
            there = walk(top).files
        except DataError as error:
            raise DataError(f"{self.name}: {top}: {error}") from None
        paths = [path for path in there if path.suffix == ".jpg" and path.parent.parent == top]
        left = len(there) - len(paths)
        odd = [path.name for path in paths if path.stem.rpartition("_")[0] != path.parent.name]
        if odd or not paths:
            raise DataError(
                f"{self.name}: expected files such as NAME/NAME_0001.jpg in {top}, found {len(paths)}; "
                f"{len(odd)} have another name than their folder. {self.obtain}"
            )
        people = [path.parent.name for path in paths]
        return Scan(
            labels=np.zeros((len(paths), 0), dtype=np.float32),
            subjects=people,
            findings=(),
            exclusive=False,
            paths=paths,
            channels=3,
            folder=top,
            version=top.name,
            notes=(f"{left} files that are not NAME/*.jpg are left out",) if left else (),
            official=(Official("images", len(paths), (13_233,)), Official("people", len(set(people)), (5_749,))),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Numbers, names, sizes and times of the images in each person's folder."""
        top = self._top(roots)
        folders = [folder for folder in listed(top)[0] if folder.is_dir()]
        return stamp_images(folders, top, self.obtain, sizes=True)

    def download(self, root: Path) -> None:
        """Fetch through scikit-learn, which checks the checksums, into `root`/lfw_home."""
        from sklearn.datasets import fetch_lfw_people  # only for a download

        with downloading(self.name, self.obtain):
            fetch_lfw_people(data_home=str(root), min_faces_per_person=100)

    def _top(self, roots: Sequence[Path]) -> Path:
        above = locate(
            roots, name=self.name, folders=("lfw_home", "scikit_learn_data/lfw_home"), markers=_FOLDERS,
            obtain=self.obtain,
        )  # fmt: skip
        folder = next(above / name for name in _FOLDERS if (above / name).exists())
        inner = (folder / name for name in _FOLDERS if (folder / name).is_dir())  # `lfw` may be a folder above
        return next(inner, folder)


@dataclass(frozen=True)
class Olivetti(Source):
    """400 grey photographs of 40 faces, 64x64 pixels, ten a person."""

    name: ClassVar[str] = "olivetti"
    title: ClassVar[str] = "Olivetti faces"
    source: ClassVar[str] = "Samaria and Harter 1994, WACV, doi:10.1109/ACV.1994.341300; AT&T Laboratories Cambridge"
    public: ClassVar[str] = "olivetti"
    origin: ClassVar[str] = "olivetti"
    shareable: ClassVar[bool] = False
    licence: ClassVar[str] = "free use with credit to AT&T Laboratories Cambridge"
    obtain: ClassVar[str] = (
        f"Run `bench data prepare olivetti --download`, or fetch {_MAT} from https://cs.nyu.edu/~roweis/data/."
    )
    default_size: ClassVar[int | None] = None

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        path = self._path(roots)
        faces = self._read(path)
        return Scan(
            labels=np.zeros((len(faces), 0), dtype=np.float32),
            subjects=[f"person {row // 10}" for row in range(len(faces))],
            findings=(),
            exclusive=False,
            samples=faces,
            version=path.name,
            official=(Official("images", len(faces), (400,)),),
        )

    def stamp(self, roots: Sequence[Path]) -> str:
        """Size and time of the file."""
        return stamp_files([self._path(roots)])

    def download(self, root: Path) -> None:
        """Fetch through scikit-learn, which checks the checksum, into `root`/olivetti."""
        from sklearn.datasets import fetch_olivetti_faces  # only for a download

        with downloading(self.name, self.obtain), tempfile.TemporaryDirectory() as folder:
            faces = fetch_olivetti_faces(data_home=folder).images
        (root / "olivetti").mkdir(parents=True, exist_ok=True)
        np.save(root / "olivetti" / _NPY, np.rint(faces * 255).astype(np.uint8))

    def _path(self, roots: Sequence[Path]) -> Path:
        names = (_MAT, _NPY)
        folders = ("scikit_learn_data",)
        top = locate(roots, name=self.name, folders=folders, markers=names, obtain=self.obtain)
        return next(top / name for name in names if (top / name).exists())

    def _read(self, path: Path) -> np.ndarray:
        """(n, 1, 64, 64) uint8."""
        try:
            if wrong := impostor(path):
                raise ValueError(wrong)
            if path.name == _MAT:
                with path.open("rb") as file:
                    checksum = hashlib.file_digest(file, "sha256").hexdigest()
                if checksum != _SHA256:
                    raise ValueError("another checksum than the official file's")
                columns = scipy.io.loadmat(path)["faces"]  # a column an image, each image column by column
                faces = columns.T.reshape(-1, 64, 64).transpose(0, 2, 1)
            else:
                with path.open("rb") as file:
                    faces = read_array(file, path.stat().st_size)
        except (DataError, OSError, ValueError, EOFError) as error:
            raise DataError(
                f"{path}: expected the Olivetti faces, found another file ({error!r:.120}). {self.obtain}"
            ) from error
        if (
            faces.ndim != 3
            or faces.shape[1:] != (64, 64)
            or faces.dtype != np.uint8
            or len(faces) % 10
            or not len(faces)
        ):
            raise DataError(
                f"{path}: expected ten uint8 images of 64 x 64 pixels a person, found {faces.dtype} of shape "
                f"{faces.shape}. {self.obtain}"
            )
        return np.ascontiguousarray(faces[:, None])
