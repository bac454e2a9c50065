"""Data-set plug-ins: they find files and read one image at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from bench.randomness import Secret


class DataError(Exception):
    """Unusable data; the text says expected, actual, and a remedy."""


PARTS = ("train", "val", "test")
"""What the official parts of a data set are called here."""


@dataclass(frozen=True)
class Official:
    """A published number or checksum of data, beside the actual one.

    Args:
        what: What is told ("rows", "people", "MD5 of pneumoniamnist.npz").
        found: As found.
        published: As published: any of these is right, because editions differ.
    """

    what: str
    found: int | str
    published: tuple[int | str, ...]

    @property
    def agrees(self) -> bool:
        """If the actual value is the published one."""
        return self.found in self.published

    @property
    def is_checksum(self) -> bool:
        """If it is: a part of a set has its own counts."""
        return isinstance(self.found, str)

    def __str__(self) -> str:
        told = " or ".join(map(str, self.published))
        return f"{self.found} {self.what}" if self.agrees else f"{self.found} {self.what}, the official set has {told}"


@dataclass(frozen=True, eq=False)
class Scan:
    """A data set as found, before decoding.

    Args:
        labels: (n, k) float32: 1 yes, 0 no, NaN unknown.
        subjects: n person identifiers as the data set writes them ("" where unknown), or None where it has none;
            `bench.data.subjects` says which are one. They stay on this machine.
        findings: The k label names.
        exclusive: True when each row has exactly one of the k classes.
        paths: n image files to decode, or None when `samples` is given.
        samples: (n, c, h, w) uint8 images or (n, d) float32 table, for data sets that fit in memory; else None.
        channels: 1 grey or 3 colour: what decoded files become.
        bits: How many bits of a grey value count in files of more than eight (8 to 16), of all files or of each; None:
            as the files state.
        folder: The folder that all paths should lie in, for a note on links; it enters no record. None where there is
            none.
        version: Version or split of the source as found, for the record.
        notes: What a reader should know (rows left out and why), for the record; no raw identifiers, no paths.
        name: How the record calls it, where parameters matter (`medmnist:pneumoniamnist@28`); "": the source's name.
        origin: The collection the images come from, where the parameters decide; "": the source's origin.
        shareable: Whether pixels may leave this machine, where the parameters decide; None: as the source says.
        attributes: By attribute (`sex`, `age`, `view`, `site`, ...), n words as the data set writes them ("" where
            unknown); `bench.data.subjects` makes groups of them.
        parts: The official part of each row, one of `PARTS`, or "" where it is in none; None where there are none.
        official: What is known of the set as published; where it differs, a note says so.
    """

    labels: np.ndarray
    subjects: Sequence[str] | None
    findings: tuple[str, ...]
    exclusive: bool
    paths: Sequence[Path] | None = None
    samples: np.ndarray | None = None
    channels: int = 1
    bits: int | Sequence[int] | None = None
    folder: Path | None = None
    version: str = ""
    notes: tuple[str, ...] = ()
    name: str = ""
    origin: str = ""
    shareable: bool | None = None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Sequence[str] | None = None
    official: tuple[Official, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """The notes, those on differences from the official set among them."""
        return (*(str(each) for each in self.official if not each.agrees), *self.notes)


class Source(ABC):
    """A data-set plug-in: a frozen dataclass whose fields are its parameters.

    `public` names the data set whose rows stand in for public knowledge; its own name means that a part of its own
    subjects is set aside. `origin` names the collection the images come from: two sources of one origin may hold the
    same images and are never used against each other. `default_size` is the side in pixels images are resized to;
    None keeps images as they are found (for sets whose images all have one size, and for tables). `confidential` names
    parameters that never enter a record (paths). `obtainable` says if others can have its images with their labels, by
    an agreement or without: a method can carry them, and look test images up. `secret_people` are parameters, by name,
    with which a generator draws its people under the run secret; empty if it cannot.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    public: ClassVar[str]
    origin: ClassVar[str]
    shareable: ClassVar[bool]
    licence: ClassVar[str]
    obtain: ClassVar[str]
    default_size: ClassVar[int | None]
    confidential: ClassVar[frozenset[str]] = frozenset()
    obtainable: ClassVar[bool] = True
    secret_people: ClassVar[Mapping[str, str]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of a table's columns. Default: none, or rows are images."""
        return ()

    @abstractmethod
    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """Find and check the files under the data roots.

        Raises DataError with expected files, actual files and a remedy.

        `size` is the side in pixels that will be used; generators draw at it, file readers may ignore it.
        """

    @property
    def draws_people(self) -> bool:
        """True if its people are drawn under the run secret."""
        wanted = self.secret_people.items()
        return bool(wanted) and all(getattr(self, name) == value for name, value in wanted)

    def under(self, secret: Secret) -> Self:
        """The source with people drawn under a secret, if `draws_people`."""
        raise TypeError(f"{self.name} cannot draw people under a secret")

    def stamp(self, roots: Sequence[Path]) -> str:
        """A cheap mark of the raw files' state, for the cache's key.

        Generators have no files: "".

        Raises DataError as `scan` does where the files are not there.
        """
        return ""

    def here(self, roots: Sequence[Path]) -> str:
        """The part that is on this machine, in words; "" if none.

        Default: "ready" if `stamp` finds it.
        """
        try:
            self.stamp(roots)
        except DataError:
            return ""
        return "ready"

    def download(self, root: Path) -> None:
        """Download the files into `root`, on explicit request only.

        Default: says how to get them by hand.
        """
        raise DataError(f"{self.name} cannot be downloaded by this program. {self.obtain}")
