"""Photographs in torchvision's layout: `dtd`, `oxford-pets`, `fgvc-aircraft`.

torchvision's downloads check checksums, but for the aircraft, whose archive has none. The official parts are joined.
All are in colour and have exclusive classes, numbered as torchvision numbers them; who
took which photograph is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.contract.source import PARTS, DataError, Official, Scan, Source
from bench.data.csv_tables import read_list
from bench.data.raw_files import FileSource, downloading, walk

NOTE = "photographers are unknown"


class TorchvisionSource(FileSource):
    """A data set that `torchvision.datasets` downloads, into a folder `below` the root."""

    torchvision: ClassVar[str]
    below: ClassVar[str] = ""

    def download(self, root: Path) -> None:
        """Fetch through torchvision, which checks checksums if it knows them."""
        from torchvision import datasets  # only for a download: it takes a second

        with downloading(self.name, self.obtain):
            getattr(datasets, self.torchvision)(str(root / self.below), download=True)


@dataclass(frozen=True)
class DTD(TorchvisionSource):
    """Textures as people describe them, 47 classes of 120 photographs."""

    name: ClassVar[str] = "dtd"
    title: ClassVar[str] = "Describable Textures Dataset"
    source: ClassVar[str] = "Cimpoi et al. 2014, CVPR, doi:10.1109/CVPR.2014.461"
    public: ClassVar[str] = "dtd"
    origin: ClassVar[str] = "dtd"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "for research"
    obtain: ClassVar[str] = (
        "Run `bench data prepare dtd --download`, or unpack "
        "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz."
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("dtd", "dtd/dtd", "dtd/dtd/dtd")
    markers: ClassVar[tuple[str, ...]] = ("labels/train1.txt",)
    tables: ClassVar[tuple[str, ...]] = ("labels/*1.txt",)
    images: ClassVar[tuple[str, ...]] = ("images/*",)
    sizes: ClassVar[bool] = True
    torchvision: ClassVar[str] = "DTD"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        rows = [(part, line) for part in PARTS for line in read_list(top / f"labels/{part}1.txt", self.obtain)]
        parts, listed = [part for part, _ in rows], [line for _, line in rows]
        classes = [line.partition("/")[0] for line in listed]
        return _scan(self, top / "images", listed, classes, sorted(set(classes)), 5640, parts)


@dataclass(frozen=True)
class OxfordPets(TorchvisionSource):
    """Cats and dogs of 37 breeds, about 200 photographs each."""

    name: ClassVar[str] = "oxford-pets"
    title: ClassVar[str] = "Oxford-IIIT Pets"
    source: ClassVar[str] = "Parkhi et al. 2012, CVPR, doi:10.1109/CVPR.2012.6248092"
    public: ClassVar[str] = "oxford-pets"
    origin: ClassVar[str] = "oxford-pets"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "CC BY-SA 4.0"
    obtain: ClassVar[str] = (
        "Run `bench data prepare oxford-pets --download`, or unpack images.tar.gz and annotations.tar.gz of "
        "https://www.robots.ox.ac.uk/~vgg/data/pets into one folder."
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("oxford-iiit-pet", "oxford-pets/oxford-iiit-pet")
    markers: ClassVar[tuple[str, ...]] = ("annotations/trainval.txt",)
    tables: ClassVar[tuple[str, ...]] = ("annotations/*.txt",)
    images: ClassVar[tuple[str, ...]] = ("images",)
    sizes: ClassVar[bool] = True
    torchvision: ClassVar[str] = "OxfordIIITPet"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        rows, parts = list[tuple[str, int]](), list[str]()
        for part in ("trainval", "test"):
            path = top / f"annotations/{part}.txt"
            for number, line in enumerate(read_list(path, self.obtain), start=1):
                cells = line.split()
                if len(cells) != 4 or not re.fullmatch("[0-9]+", cells[1]) or "_" not in cells[0]:
                    raise DataError(
                        f"{path}: line {number}: expected a name such as Abyssinian_100 and three numbers, got "
                        f"{line!r}. {self.obtain}"
                    )
                rows.append((cells[0], int(cells[1])))
                parts.append("test" if part == "test" else "train")
        named = {(number, name.rpartition("_")[0].replace("_", " ")) for name, number in rows}
        names = dict(named)
        if not len(named) == len(names) == len(set(names.values())):
            raise DataError(f"{self.name}: expected one number a breed in {top / 'annotations'}. {self.obtain}")
        classes = [names[number] for _, number in rows]
        order = [names[number] for number in sorted(names)]
        return _scan(self, top / "images", [f"{name}.jpg" for name, _ in rows], classes, order, 7349, parts)


@dataclass(frozen=True)
class FGVCAircraft(TorchvisionSource):
    """Aircraft of 100 variants, 100 photographs each."""

    name: ClassVar[str] = "fgvc-aircraft"
    title: ClassVar[str] = "FGVC-Aircraft"
    source: ClassVar[str] = "Maji et al. 2013, arXiv:1306.5151"
    public: ClassVar[str] = "fgvc-aircraft"
    origin: ClassVar[str] = "fgvc-aircraft"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "for non-commercial research"
    obtain: ClassVar[str] = (
        "Run `bench data prepare fgvc-aircraft --download`, or unpack "
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz."
    )
    default_size: ClassVar[int | None] = 64
    folders: ClassVar[tuple[str, ...]] = ("fgvc-aircraft-2013b/data", "data", "fgvc-aircraft/fgvc-aircraft-2013b/data")
    markers: ClassVar[tuple[str, ...]] = ("variants.txt",)
    tables: ClassVar[tuple[str, ...]] = ("*.txt",)
    images: ClassVar[tuple[str, ...]] = ("images",)
    sizes: ClassVar[bool] = True
    torchvision: ClassVar[str] = "FGVCAircraft"

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """See `Source.scan`."""
        top = self.top(roots)
        rows = [(part, line) for part in PARTS for line in read_list(top / f"images_variant_{part}.txt", self.obtain)]
        parts, listed = [part for part, _ in rows], [line.partition(" ") for _, line in rows]
        order = read_list(top / "variants.txt", self.obtain)
        files = [f"{name}.jpg" for name, _, _ in listed]
        return _scan(self, top / "images", files, [variant for _, _, variant in listed], order, 10_000, parts)


def _scan(
    source: Source, images: Path, listed: Sequence[str], classes: Sequence[str], order: Sequence[str], official: int,
    parts: Sequence[str],
) -> Scan:  # fmt: skip
    """The scan of `listed` files below `images`; `order` numbers their `classes`."""
    unknown = [name for name in classes if name not in order]
    again = len(listed) - len(set(listed))
    if unknown or again or len(order) < 2:
        raise DataError(
            f"{source.name}: expected each image once, of one of two or more known classes; found {again} listed "
            f"again, {len(unknown)} of unknown classes ({', '.join(sorted(set(unknown))[:5]) or 'none'}), {len(order)} "
            f"known classes. {source.obtain}"
        )
    try:
        here = {path.relative_to(images).as_posix() for path in walk(images).files if path.suffix == ".jpg"}
    except DataError as error:
        raise DataError(f"{source.name}: {images}: {error}") from None
    missing = [name for name in listed if name not in here]
    if missing:
        raise DataError(
            f"{source.name}: {len(missing)} of {len(listed)} listed images were not found in {images}, first "
            f"{missing[0]}. {source.obtain}"
        )
    numbers = {name: number for number, name in enumerate(order)}
    return Scan(
        labels=np.eye(len(order), dtype=np.float32)[[numbers[name] for name in classes]],
        subjects=None,
        findings=tuple(order),
        exclusive=True,
        paths=[images / name for name in listed],
        channels=3,
        folder=images,
        version="all parts",
        notes=(NOTE,),
        parts=parts,
        official=(Official("rows", len(listed), (official,)),),
    )
