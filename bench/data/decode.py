"""Chunks of image files to rows of an array, in processes of their own. Imports no torch, so that those start fast."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import numpy as np
from PIL import Image

from bench.contract.source import DataError
from bench.data.grey_depth import RefusedError
from bench.data.picture import Reading, decode

DIGEST_BYTES = 16


@dataclass(frozen=True)
class Failure:
    """A file that could not be decoded.

    Args:
        row: Its row.
        reason: Why.
        refused: Whether the file is not damaged, and the reason this program's own words, which repeat nothing of it.
    """

    row: int
    reason: str
    refused: bool


@dataclass(frozen=True, eq=False)
class Decoded:
    """What became of one chunk of files.

    Args:
        first: Row of the chunk's first file.
        digests: (chunk, 16) uint8, one digest a row; zeros where decoding failed.
        failures: Each file that could not be decoded.
        notes: What was done to images, with how many of them.
        used: Bits that the largest value needs, where files have more than eight a value; else 0.
    """

    first: int
    digests: np.ndarray
    failures: tuple[Failure, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)
    used: int = 0


def digest(row: np.ndarray) -> np.ndarray:
    """(16,) uint8 that is equal for two rows of one shape and type exactly when their contents are."""
    return np.frombuffer(
        hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=DIGEST_BYTES).digest(), dtype=np.uint8
    )


def resize(image: np.ndarray, size: int) -> np.ndarray:
    """An image (c, h, w) uint8 as (c, size, size) uint8."""
    if image.shape[1:] == (size, size):
        return image
    return np.stack(
        [np.asarray(Image.fromarray(channel).resize((size, size), Image.Resampling.BILINEAR)) for channel in image]
    )


def decode_into(
    target: Path, first: int, paths: Sequence[Path], reading: Reading, bits: Sequence[int] | None = None
) -> Decoded:
    """Decode `paths` into rows first, first + 1, ... of the (n, c, size, size) uint8 .npy file `target`, in place.

    `bits` are those of each file, where they differ; else `reading` says. Safe to run in several processes at once on
    disjoint rows.
    """
    samples = np.lib.format.open_memmap(target, mode="r+")
    digests = np.zeros((len(paths), DIGEST_BYTES), dtype=np.uint8)
    failures = []
    notes: Counter[str] = Counter()
    used = 0
    for row, path in enumerate(paths):
        try:
            picture = decode(path, reading if bits is None else replace(reading, bits=bits[row]))
        except DataError as error:
            failures.append(Failure(first + row, str(error), isinstance(error, RefusedError)))
            continue
        samples[first + row] = picture.pixels
        digests[row] = digest(picture.pixels)
        notes.update(picture.notes)
        used = max(used, picture.used)
    samples.flush()
    return Decoded(first, digests, tuple(failures), notes, used)


def follow_parent() -> None:
    """End this process when the one that started it dies, even by SIGKILL; otherwise a decoder would wait for ever."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_outlive_nobody, args=(parent,), daemon=True).start()


def _outlive_nobody(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
