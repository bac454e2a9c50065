"""Grey values of more than eight bits, reduced to eight.

A container of 16 bits often holds 10, 12 or 14. Taking its upper eight would then leave a few greys, so the number of
bits must be stated: by the user, or by the file if its format says what the values mean (a TIFF of 12 bits, the
maximum of a PGM, the precision of a JPEG 2000, PNG's `sBIT`). Of the bits that count the upper eight are kept. Nothing
is guessed from brightness, for one mapping has to hold for all images of a set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile

from bench.contract.source import DataError

FEWEST, MOST = 8, 16
_SIZES, _PRECISION = b"\xff\x4f\xff\x51", 42  # a JPEG 2000's first markers; bits less one stand so far behind
_BITS_PER_SAMPLE, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0
UNSTATED = (
    "more than 8 bits a value, and the file does not say how many count: state them, as folder:PATH[bits=12] does"
)
CONTRARY = "the file says another number of bits than was stated: leave `bits` out, or mend it"
BEYOND = "a value needs more bits than were stated: raise `bits`"
NEGATIVE = "negative grey values, whose range is not known: store 8 or 16 bits from 0"
FLOATING = "floating-point pixels, whose range is not known: store 8 or 16 bits"
COLOUR = "colours of 16 bits a channel are taken only if all 16 count: store 8, or state bits=16 if they do"


class RefusedError(DataError):
    """A refused, undamaged image; the text repeats nothing of it."""


@dataclass(frozen=True, eq=False)
class Grey:
    """An image of eight bits a channel.

    Args:
        image: The image.
        notes: What was done, for the record.
        used: Bits that the largest value needs, if there were more than eight a value; else 0.
    """

    image: Image.Image
    notes: tuple[str, ...] = ()
    used: int = 0


def eight_bits(image: ImageFile.ImageFile, path: Path, bits: int | None, stored: str) -> Grey:
    """An open image as one of eight bits a channel.

    Args:
        image: As Pillow opened it.
        path: Its file.
        bits: How many bits of a value count if the file has more than eight; None if not stated.
        stored: How the file stores values, as `how_stored` says.

    Raises:
        RefusedError: The values cannot be mapped.
    """
    if image.mode == "F":
        raise RefusedError(FLOATING)
    if not image.mode.startswith("I"):
        if ";16" not in stored:
            return Grey(image)
        if bits != MOST:
            raise RefusedError(COLOUR)
        return Grey(image, ("colours of 16 bits a channel become 8 bits",))
    scaled = stored.startswith("ppm ")  # Pillow stretches a PGM by its maximum
    stated, white = (MOST, False) if scaled else _stated(image)
    values = np.asarray(image)
    if image.format == "JPEG2000" and (precision := _precision(path)) is not None:
        stated, values = precision, values >> (MOST - precision)  # Pillow stretches what has fewer bits
    if values.min() < 0:
        raise RefusedError(NEGATIVE)
    if stated is None:
        stated = _significant(path, values) if bits is None and image.format == "PNG" else bits
    elif bits not in (None, stated) and not scaled:
        raise RefusedError(CONTRARY)
    if stated is None:
        raise RefusedError(UNSTATED)
    used = int(values.max()).bit_length()
    if used > stated:
        raise RefusedError(BEYOND)
    grey = (values >> (stated - FEWEST)).astype(np.uint8)
    notes = [f"grey values of {stated} bits become 8 bits: 0 is black, {2**stated - 1} white"]
    if white:
        grey = 255 - grey
        notes = [f"grey values of {stated} bits become 8 bits: 0 was white and is black now"]
    return Grey(Image.fromarray(grey), tuple(notes), 0 if scaled else used)


def how_stored(image: ImageFile.ImageFile) -> str:
    """Pillow's codec and arguments, which Pillow drops on loading."""
    return " ".join(f"{tile.codec_name} {tile.args}" for tile in image.tile[:1])


def _stated(image: ImageFile.ImageFile) -> tuple[int | None, bool]:
    """Bits stated by a TIFF, or None; True if 0 is white."""
    if image.format != "TIFF":
        return None, False
    tags = image.tag_v2  # type: ignore[attr-defined]
    bits = int(max(tags.get(_BITS_PER_SAMPLE, (1,))))
    return bits if bits % 8 else None, tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO


def _significant(path: Path, values: np.ndarray) -> int | None:
    """Significant bits by a PNG's sBIT chunk; None if missing or ambiguous.

    The standard wants values stretched to the container (so that all 16 bits count), but many writers leave them as
    they are. Values beyond sBIT bits are stretched; those within, if their lower bits are used, are not.
    """
    bits = _sbit(path)
    if bits is None or bits >= MOST:
        return bits
    if int(values.max()) >= 2**bits or not values.any():
        return MOST
    return max(bits, FEWEST) if (values & (2 ** (MOST - bits) - 1)).any() else None


def _precision(path: Path) -> int | None:
    """Bits stated by a JPEG 2000 (T.800, A.5.1); None for 16."""
    content = path.read_bytes()
    bits = content[content.find(_SIZES) + _PRECISION] % 128 + 1
    return bits if FEWEST < bits < MOST else None


def _sbit(path: Path) -> int | None:
    with path.open("rb") as file:
        file.seek(8)
        while len(head := file.read(8)) == 8 and head[4:] != b"IDAT":
            length = int.from_bytes(head[:4])
            if head[4:] == b"sBIT":
                return max(file.read(length), default=None)
            file.seek(length + 4, 1)
    return None
