"""Released rows that another tool wrote, read beside their raw rows.

`bench.data.release_folder` finds them in their folder, and describes it.
"""

from __future__ import annotations

__figures__ = False  # `bench.workbench.inputs.RECORDED` covers it, for releases by other tools alone

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError, safe_open

from bench.contract.recorded import FURTHER, LINKS, Recorded
from bench.contract.source import DataError
from bench.data.array_files import read_array
from bench.data.dicom import FEWEST, MOST, STATING, header_of, is_dicom
from bench.data.picture import Reading, decode
from bench.data.raw_files import is_image, walk
from bench.types import Dataset, NotApplicable, Release, State
from bench.wire.tensor_file import TensorsError, unpack_tensors

ABOUT = Recorded.ABOUT
SAMPLES, TENSORS, ARRAY = "samples", "release.safetensors", "release.npy"
LAYOUT = "`bench check 'imported[path=FOLDER]'` shows the layout."
BRIGHTEST = 2.0
"""Above it, numbers of images that are never negative are none from 0 to 1 with an overshoot."""
_GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"}
_DEEP = {"I", "I;16", "I;16B", "I;16L", "F"}
_OTHERS = (FURTHER, SAMPLES)
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Rows:
    """Released rows of one folder, counted and not yet read.

    Args:
        place: The folder.
        names: Images below `place`, in order; empty for an array.
        count: How many rows.
        shape: Of one row of an array; None for images.
        sides: Of images: how many have that width and height.
        bits: How many bits of a value count in images of more than eight; None as the files state.
        encoded: If only the holder of a key can make such rows of new images.
        notes: For the record.
    """

    place: Path
    names: tuple[str, ...]
    count: int
    shape: tuple[int, ...] | None
    sides: Mapping[tuple[int, int], int]
    bits: int | None
    encoded: bool
    notes: tuple[str, ...]

    @classmethod
    def found(cls, place: Path) -> Rows:
        """The rows in a folder.

        Raises:
            DataError: None, or of several kinds.
        """
        encoded = read_about(place).get("rows") == "encoded"
        arrays = [name for name in (TENSORS, ARRAY) if (place / name).is_file()]
        tree = walk(place)
        names = sorted(
            path.relative_to(place).as_posix()
            for path in tree.files
            if path.relative_to(place).parts[0] not in _OTHERS and is_image(path)
        )
        if len(arrays) + bool(names) != 1:
            held = ", ".join([*arrays, *([f"{len(names)} images"] if names else [])]) or "nothing of these"
            hint = _generator_only(place)
            raise DataError(
                f"imported: expected released rows of one kind, as images, {TENSORS} or {ARRAY}, found {held}. {hint}"
            )
        if not arrays:
            sides, notes = _headers([place / name for name in names])
            return cls(place, tuple(names), len(names), None, sides, _bits(place), encoded, notes)
        count, *shape = _array_shape(place / arrays[0])
        return cls(place, (), count, tuple(shape), {}, None, encoded, ())

    @property
    def side(self) -> int | None:
        """The side of square images, if all are of one size."""
        sizes = list(self.sides)
        if self.shape is not None:
            image = len(self.shape) == 3 and self.shape[0] in (1, 3) and self.shape[1] == self.shape[2]
            return self.shape[1] if image else None
        return sizes[0][0] if len(sizes) == 1 and sizes[0][0] == sizes[0][1] else None

    def samples(self, like: tuple[int, ...]) -> torch.Tensor:
        """The rows (m, ...) float32.

        Images come as raw ones do, of the shape `like` and in [0, 1].

        Raises:
            DataError: Images that cannot be read, or numbers that are not finite or of another range than raw ones.
        """
        if self.shape is None:
            return self._images(like)
        found = _array(self.place)
        if found.dtype == torch.uint8:
            found = found.to(torch.float32) / 255
        if not found.dtype.is_floating_point:
            raise DataError(f"imported: rows must be floating-point numbers or uint8, got {found.dtype}")
        found = found.to(torch.float32).reshape(self.count, *self.shape)
        bad = int((~found.flatten(1).isfinite()).any(dim=1).sum())
        if bad:
            raise DataError(f"imported: {bad} of {self.count} released rows hold numbers that are not finite")
        if not self.encoded and len(like) == 3 and tuple(found.shape[1:]) == like:
            low, high = float(found.min()), float(found.max())
            if low >= 0 and high > BRIGHTEST:
                raise DataError(
                    f"imported: images in {self.array} hold numbers from {low:g} to {high:g}: expected 0 to 1, "
                    f'or uint8. Divide them; or add "rows": "encoded" to {ABOUT} if they are no images'
                )
        return found

    @property
    def array(self) -> str:
        """The name of the array's file."""
        return TENSORS if (self.place / TENSORS).is_file() else ARRAY

    def _images(self, like: tuple[int, ...]) -> torch.Tensor:
        if len(like) != 3:
            raise DataError(
                f"imported: the raw rows have shape {like}, and the released ones are images: give {ARRAY} of numbers, "
                f"or images as --dataset without --features"
            )
        channels, side = like[0], like[-1]
        found = np.empty((self.count, channels, side, side), dtype=np.float32)
        bad: Counter[str] = Counter()
        for row, name in enumerate(self.names):
            try:
                found[row] = decode(self.place / name, Reading(side, channels, self.bits)).pixels
            except DataError as error:
                bad[str(error).replace(STATING, f'"bits": 12 in {ABOUT} does')] += 1
        if bad:
            lines = "".join(f"\n  {count}: {reason}" for reason, count in bad.most_common(_SHOWN))
            raise DataError(f"imported: {bad.total()} of {self.count} released images cannot be read:{lines}")
        return torch.from_numpy(found / 255)


@dataclass(frozen=True, eq=False)
class Linked:
    """A release of a folder, with links to prepared rows.

    Args:
        rows: The m released rows.
        links: (p, 2) int64: row of the prepared data set, released row. None if the folder holds none.
        primary: (p,) bool as in `Release`, or None.
        labels: (m, k) float32 in the findings of the prepared data set; None if there are none.
        from_raw: If the labels are those of the raw rows.
        pool: More rows of the generator that made the release, with labels as above; None if there are none.
        notes: For the record.
    """

    rows: Rows
    links: np.ndarray | None
    primary: np.ndarray | None
    labels: np.ndarray | None
    from_raw: bool
    pool: tuple[Rows, np.ndarray | None] | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RecordedRows:
    """A folder of releases beside their raw data set.

    Args:
        recorded: The folder.
        findings: Of the data set.
        members: (k,) int64, ascending: the rows of the prepared data set that the releases were made of.
        releases: All of them.
        notes: For the record.
    """

    recorded: Recorded
    findings: tuple[str, ...]
    members: np.ndarray
    releases: tuple[Linked, ...]
    notes: tuple[str, ...]

    @property
    def encoded(self) -> bool:
        """If new images cannot be encoded like some released rows."""
        return any(release.rows.encoded for release in self.releases)

    @property
    def linked(self) -> bool:
        """If every release has links."""
        return all(release.links is not None for release in self.releases)

    def release(self, number: int, rows: np.ndarray, private: Dataset) -> Release:
        """A release, cut to rows that were made of `private` alone.

        Args:
            number: From 0.
            rows: (n,) int64, the prepared row of each private one.
            private: They say shape, findings and raw labels.

        Raises:
            NotApplicable: There is no such release, or rows without links would have to be cut.
            DataError: Unusable rows; the text says what is wrong.
        """
        if number >= len(self.releases):
            raise NotApplicable(
                f"the folder holds {len(self.releases)} releases, and {number + 1} are needed: others stand in "
                f"{FURTHER}/NAME"
            )
        made = self.releases[number]
        place = np.full(int(max(self.members.max(), rows.max())) + 1, -1)
        place[rows] = np.arange(len(rows))
        whole = bool((place[self.members] >= 0).all())
        kept, links, primary = np.arange(made.rows.count), None, None
        if made.links is not None:
            kept, links, primary = _cut(made, place, whole=whole)
        elif not whole:
            raise NotApplicable(
                f"the release was made of {len(self.members)} raw rows, and without {LINKS} it is unknown which of "
                f"its rows belong to {len(rows)} of them"
            )
        device = private.samples.device
        samples = made.rows.samples(tuple(private.samples.shape[1:]))[torch.from_numpy(kept)].to(device)
        labels = self._labels(made, kept, links, private)
        return Release(
            samples, None if labels is None else labels.to(device),
            None if links is None else torch.from_numpy(links).to(device),
            None if primary is None else torch.from_numpy(primary).to(device),
        )  # fmt: skip

    def pool(self, number: int, private: Dataset) -> State | None:
        """More rows of a release's generator, with any labels, or None."""
        made = self.releases[number].pool
        if made is None:
            return None
        rows, labels = made
        found = {"samples": rows.samples(tuple(private.samples.shape[1:]))}
        return found if labels is None else {**found, "labels": self._columns(torch.from_numpy(labels), private)}

    def _labels(
        self, made: Linked, kept: np.ndarray, links: np.ndarray | None, private: Dataset
    ) -> torch.Tensor | None:
        if made.labels is not None:
            return self._columns(torch.from_numpy(made.labels[kept]), private)
        if not made.from_raw or private.labels is None or links is None:
            return None
        raw = private.labels.cpu()
        found = torch.full((len(kept), raw.shape[1]), torch.nan)
        found[links[:, 1]] = raw[links[:, 0]]
        return found

    def _columns(self, labels: torch.Tensor, private: Dataset) -> torch.Tensor:
        """The columns of the findings that are scored."""
        return labels[:, [self.findings.index(name) for name in private.findings]].to(torch.float32)


def _cut(made: Linked, place: np.ndarray, *, whole: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Released rows that stay, their links to private rows, and primary marks."""
    assert made.links is not None
    raw = place[made.links[:, 0]]
    linked, foreign = (np.zeros(made.rows.count, dtype=bool) for _ in range(2))
    linked[made.links[:, 1]] = True
    foreign[made.links[raw < 0, 1]] = True
    stays = ~foreign if whole else linked & ~foreign
    if not stays.any():
        raise NotApplicable("no released row was made of these raw rows alone")
    inside = stays[made.links[:, 1]]
    links = np.stack((raw, np.cumsum(stays)[made.links[:, 1]] - 1), axis=1)[inside]
    primary = None if made.primary is None or not made.primary[inside].any() else made.primary[inside]
    return np.flatnonzero(stays), links, primary


def _headers(paths: Sequence[Path]) -> tuple[Mapping[tuple[int, int], int], tuple[str, ...]]:
    """Number of images by size, and notes on how they are stored.

    Broken ones are met when they are read.
    """
    sides: Counter[tuple[int, int]] = Counter()
    deep = colour = 0
    for path in paths:
        try:
            if is_dicom(path):
                width, height, bits = header_of(path)
                sides[width, height] += 1
                deep += bits > 8
                continue
            with Image.open(path) as image:
                sides[image.size] += 1
                deep += image.mode in _DEEP
                colour += image.mode not in _GREY and not _grey_palette(image)
        except Exception:
            continue
    notes = []
    if deep:
        notes.append(f"{deep} of {len(paths)} released images hold more than 8 bits a value, and are read as 8")
    if colour:
        notes.append(f"{colour} of {len(paths)} released images are stored in colour, and read as raw ones are")
    if len(sides) > 1 or any(width != height for width, height in sides):
        notes.append("released images are not squares of one size: each is resized as raw images are")
    return sides, tuple(notes)


def _grey_palette(image: Image.Image) -> bool:
    """If an image's colours are numbers of greys."""
    palette = image.getpalette("RGB") if image.mode == "P" else None
    return palette is not None and palette[0::3] == palette[1::3] == palette[2::3]


def read_about(folder: Path) -> Mapping[str, Any]:
    """The content of release.json; empty without one. Raises DataError."""
    try:
        return Recorded.about(folder)
    except ValueError as error:
        raise DataError(f"imported: {error}") from None


def _bits(place: Path) -> int | None:
    bits = read_about(place).get("bits")
    if bits is not None and (type(bits) is not int or not FEWEST <= bits <= MOST):
        raise DataError(f"imported: bits in {ABOUT} must be {FEWEST} to {MOST}, got {bits!r:.40}")
    return bits


def _generator_only(place: Path) -> str:
    if (place / "generator.safetensors").is_file():
        return "A published generator is not run here: draw rows from it, and put these into the folder."
    return LAYOUT


def _array_shape(path: Path) -> tuple[int, ...]:
    """Shape of an array file: (m, d) or (m, c, h, w).

    Grey images may come as (m, h, w).
    """
    if path.name == TENSORS:
        try:
            with safe_open(str(path), framework="pt") as file:
                shape = tuple(int(side) for side in file.get_slice("samples").get_shape())
        except (SafetensorError, OSError) as error:
            raise DataError(f"imported: {TENSORS} must be whole, with a tensor called samples: {error}") from None
    else:
        shape = tuple(_array(path.parent).shape)
    if len(shape) == 3:
        shape = (shape[0], 1, *shape[1:])
    if len(shape) not in (2, 4) or not math.prod(shape):
        raise DataError(
            f"imported: {path.name} must hold rows as images (m, c, h, w), grey images (m, h, w) or vectors (m, d), "
            f"got shape {shape}"
        )
    return shape


def _array(place: Path) -> torch.Tensor:
    if (place / TENSORS).is_file():
        return read_released(place / TENSORS)["samples"]
    path = place / ARRAY
    try:
        with path.open("rb") as file:
            found = read_array(file, path.stat().st_size)
    except DataError as error:
        raise DataError(f"imported: {ARRAY} holds {error}") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"imported: {ARRAY} cannot be read: {error}") from None
    try:
        return torch.from_numpy(np.ascontiguousarray(found.astype(found.dtype.newbyteorder("="), copy=False)))
    except TypeError:
        raise DataError(
            f"imported: rows must be floating-point numbers of at most 64 bits or uint8, got {found.dtype}"
        ) from None


def read_released(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a release. Raises DataError for a damaged file."""
    try:
        return unpack_tensors(path, path.stat().st_size)
    except (TensorsError, OSError) as error:
        raise DataError(f"imported: {TENSORS} cannot be read: {error}") from None
