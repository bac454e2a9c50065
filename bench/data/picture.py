"""Decode one image file to a square of 8-bit greys or colours.

Resizing is a plain one to (size, size), aspect ratio not kept and nothing cropped, with Pillow's antialiased bilinear
filter (its support grows with the reduction, like torchvision's `antialias=True`). JPEG files far larger than the
target are first reduced by the JPEG decoder itself to no less than four times the target. An alpha channel is dropped,
not blended; an orientation that the camera noted (EXIF) is applied. DICOM files are read as `bench.data.dicom` says.
Imports no torch, so that workers start fast.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from bench.contract.source import DataError
from bench.data.declared_size import check_declared
from bench.data.dicom import RefusedError, eight_bits, how_stored, is_dicom, read_dicom
from bench.disk.file_kind import impostor

PIXELS = 100_000_000  # most pixels of one file unless said otherwise: ten times a large radiograph
_PIXELS = "an image, of one byte a pixel,"
_MODES = {1: "L", 3: "RGB"}
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM", "GIF", "JPEG2000")  # no other decoder sees a file
_DICOM = (".dcm", ".dicom")
_UNMARKED = (
    "DICOM by its ending, without the mark of such files (DICM after 128 bytes): damaged, or saved without its header"
)
_UNKNOWN = f"damaged, or no image of a format that is read ({', '.join(_FORMATS)} or DICOM)"
_ORIENTATION = 0x0112
_SEEN, _TINT = 32, 8  # pixels a side, and steps of 255 between channels from which on an image is no grey one
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, EOFError, MemoryError, struct.error)  # by Pillow, over damage


@dataclass(frozen=True)
class Reading:
    """Options for reading the image files of a data set.

    Args:
        size: Side in pixels that they are resized to.
        channels: 1 grey or 3 colour: what they become.
        bits: How many bits of a value count if files have more than eight; None: as the files state.
        pixels: Most pixels of one file.
    """

    size: int
    channels: int
    bits: int | None = None
    pixels: int = PIXELS


@dataclass(frozen=True, eq=False)
class Picture:
    """A decoded file.

    Args:
        pixels: (channels, size, size) uint8.
        notes: What was done to it that a reader of figures should know.
        used: As `bench.data.dicom.Grey`.
    """

    pixels: np.ndarray
    notes: tuple[str, ...]
    used: int


def decode(path: Path, reading: Reading) -> Picture:
    """The image in a file.

    Raises RefusedError if it cannot be taken as it is, DataError if it is damaged, with the reason but without the
    path.
    """
    try:
        if wrong := impostor(path):
            raise RefusedError(wrong)
        if is_dicom(path):
            grey = read_dicom(path, reading.pixels, reading.bits)
            mode = _MODES[reading.channels]
            square = grey.image.convert(mode).resize((reading.size, reading.size), Image.Resampling.BILINEAR)
            notes = (*grey.notes, *enlarged(grey.image.size, reading.size))
            pixels = np.asarray(square).reshape(reading.size, reading.size, reading.channels).transpose(2, 0, 1)
            return Picture(np.ascontiguousarray(pixels), notes, 0)
        with _opened(path) as image:
            return _read(image, path, reading)
    except FileNotFoundError:
        raise RefusedError("missing") from None
    except PermissionError:
        raise RefusedError("no permission to read it: change its permissions, or those of a folder above it") from None
    except UnidentifiedImageError:
        raise RefusedError(_UNMARKED if path.suffix.lower() in _DICOM else _UNKNOWN) from None
    except _BROKEN as error:
        raise DataError(str(error).replace(repr(str(path)), "the file") or type(error).__name__) from error


def coloured(path: Path) -> bool:
    """True if a file shows colours; False if grey or unreadable."""
    try:
        if is_dicom(path):
            image = read_dicom(path, PIXELS).image
            small = np.asarray(image.convert("RGB").resize((_SEEN, _SEEN), Image.Resampling.BILINEAR), dtype=np.int64)
            return bool((small.max(axis=2) - small.min(axis=2)).mean() > _TINT)
        with _opened(path) as image:
            if image.mode in ("1", "L", "LA") or image.width * image.height > PIXELS:
                return False
            check_declared(image.width * image.height, held=path.stat().st_size, noun=_PIXELS)
            image.draft("RGB", (_SEEN, _SEEN))
            small = np.asarray(image.convert("RGB").resize((_SEEN, _SEEN), Image.Resampling.BILINEAR), dtype=np.int64)
    except (DataError, *_BROKEN):
        return False
    return bool((small.max(axis=2) - small.min(axis=2)).mean() > _TINT)


def _read(image: ImageFile.ImageFile, path: Path, reading: Reading) -> Picture:
    if image.width * image.height > reading.pixels:
        raise RefusedError(f"more than {reading.pixels} pixels: if the image is correct, raise --max-pixels")
    check_declared(image.width * image.height, held=path.stat().st_size, noun=_PIXELS)
    if image.mode == "LAB":
        raise RefusedError("colours as LAB are not read: store RGB")
    notes, whole = list[str](), image.size
    stored = how_stored(image)
    if getattr(image, "n_frames", 1) > 1:
        if image.format != "MPO":
            raise RefusedError("several frames or pages in one file: store one frame in a file")
        notes.append("the first of several frames is read")
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    mode, side = _MODES[reading.channels], reading.size
    drafted = image.draft(mode, (4 * side, 4 * side)) if image.format == "JPEG" else None
    box = drafted[1] if drafted else None  # what the original covers, if it is no multiple of 8 pixels
    grey = eight_bits(image, path, reading.bits, stored)
    notes += [*grey.notes, *_lost(grey.image), *enlarged(whole, side)]
    square = grey.image.convert(mode).resize((side, side), Image.Resampling.BILINEAR, box)
    if turn is not None:
        notes.append("turned as the EXIF orientation says")
        if image.format != "TIFF":  # Pillow turns those itself
            square = square.transpose(turn)
    flat = np.asarray(square)
    pixels = flat[None] if reading.channels == 1 else np.ascontiguousarray(flat.transpose(2, 0, 1))
    return Picture(pixels, tuple(notes), grey.used)


def enlarged(sides: tuple[int, int], side: int) -> tuple[str, ...]:
    """A note if an image has fewer pixels than its resized form."""
    return (f"enlarged to {side} pixels a side from fewer",) if min(sides) < side else ()


def _lost(image: Image.Image) -> list[str]:
    """Notes on colour models and transparency lost by conversion."""
    if image.mode in ("CMYK", "HSV"):
        return [f"colours converted from {image.mode}, without a colour profile"]
    if image.has_transparency_data and np.asarray(image.convert("RGBA").getchannel("A")).min() < 255:
        return ["transparent pixels shown as the colours below them"]
    return []


@contextmanager
def _opened(path: Path) -> Iterator[ImageFile.ImageFile]:
    with _strict(), Image.open(path, formats=_FORMATS) as image:
        if image.format == "TIFF":  # by its name, Pillow 13 maps pixels as they lie in it, by sides turned already
            image.filename = ""
        yield image


@contextmanager
def _strict() -> Iterator[None]:
    """Suspend settings of Pillow that hold for the whole process.

    `Reading.pixels` is the limit of size, without warnings. Truncated images are damaged, whatever another library says
    of them: WeasyPrint, which writes reports, has Pillow fill them up.
    """
    bound, filled = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = None, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = bound, filled
