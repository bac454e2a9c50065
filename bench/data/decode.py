"""Image files to arrays: decode, turn grey or colour, resize to a square. Imports no torch, so that workers start fast.

Resizing is a plain one to (size, size), aspect ratio not kept and nothing cropped, with Pillow's antialiased bilinear
filter (its support grows with the reduction, like torchvision's `antialias=True`). JPEG files far larger than the
target are first reduced by the JPEG decoder itself to no less than four times the target. 16-bit greys keep their
upper eight bits; an alpha channel is dropped, not blended.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import numpy as np
from PIL import Image

from bench.contract.source import DataError

DIGEST_BYTES = 16
_MODES = {1: "L", 3: "RGB"}


@dataclass(frozen=True, eq=False)
class Decoded:
    """What became of one chunk of files.

    Args:
        first: Row of the chunk's first file.
        digests: (chunk, 16) uint8, one digest a row; zeros where decoding failed.
        failures: Row and reason of each file that could not be decoded.
    """

    first: int
    digests: np.ndarray
    failures: tuple[tuple[int, str], ...]


def digest(row: np.ndarray) -> np.ndarray:
    """(16,) uint8 that is equal for two rows of one shape and type exactly when their contents are."""
    return np.frombuffer(
        hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=DIGEST_BYTES).digest(), dtype=np.uint8
    )


def impostor(path: Path) -> str | None:
    """What a file is instead of data ("an HTML page, ..."), judged by its first bytes; None if it may be data."""
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        return "an empty file"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) or b"<html" in start:
        return "an HTML page, the trace of a failed download or a login page"
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself (run `git lfs pull`)"
    return None


def resize(image: np.ndarray, size: int) -> np.ndarray:
    """An image (c, h, w) uint8 as (c, size, size) uint8."""
    if image.shape[1:] == (size, size):
        return image
    return np.stack([np.asarray(_square(Image.fromarray(channel), size)) for channel in image])


def decode(path: Path, *, size: int, channels: int) -> np.ndarray:
    """The image file as (channels, size, size) uint8.

    Raises:
        DataError: If the file is missing, truncated or not an image; the text is the reason, without the path.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                drafted = image.draft(_MODES[channels], (4 * size, 4 * size)) if image.format == "JPEG" else None
                box = drafted[1] if drafted else None  # what the original covers, where it is no multiple of 8 pixels
                flat = np.asarray(_square(_eight_bits(image).convert(_MODES[channels]), size, box))
    except FileNotFoundError:
        raise DataError("missing") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = (impostor(path) if path.is_file() else None) or str(error).replace(repr(str(path)), "the file")
        raise DataError(reason) from error
    return flat[None] if channels == 1 else np.ascontiguousarray(flat.transpose(2, 0, 1))


def decode_into(target: Path, first: int, paths: Sequence[Path], channels: int) -> Decoded:
    """Decode `paths` into rows first, first + 1, ... of the (n, c, size, size) uint8 .npy file `target`, in place.

    Safe to run in several processes at once on disjoint rows.
    """
    samples = np.lib.format.open_memmap(target, mode="r+")
    size = int(samples.shape[-1])
    digests = np.zeros((len(paths), DIGEST_BYTES), dtype=np.uint8)
    failures = []
    for row, path in enumerate(paths):
        try:
            image = decode(path, size=size, channels=channels)
        except DataError as error:
            failures.append((first + row, str(error)))
            continue
        samples[first + row] = image
        digests[row] = digest(image)
    samples.flush()
    return Decoded(first, digests, tuple(failures))


def follow_parent() -> None:
    """End this process when the one that started it dies, even by SIGKILL; otherwise a decoder would wait for ever."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_outlive_nobody, args=(parent,), daemon=True).start()


def _outlive_nobody(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _square(image: Image.Image, size: int, box: tuple[float, float, float, float] | None = None) -> Image.Image:
    return image.resize((size, size), Image.Resampling.BILINEAR, box)


def _eight_bits(image: Image.Image) -> Image.Image:
    """16-bit greys as 8-bit ones; Pillow's own conversion would clip them to white."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError(f"grey values from {values.min()} to {values.max()}, expected 8 or 16 bits")
        return Image.fromarray((values >> 8).astype(np.uint8))
    if image.mode == "F":
        raise ValueError("floating-point pixels, whose range is not known: store 8 or 16 bits")
    return image
