"""A data set's sample array, decoded and written block by block.

Several processes may decode. This module imports no torch, so that they start fast.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import numpy as np
from PIL import Image

from bench.contract.source import DataError, Scan
from bench.data.dicom import RefusedError
from bench.data.picture import PIXELS, Reading, decode, enlarged
from bench.shadowing import without_script

DIGEST_BYTES = 16
Report = Callable[[int, int], None]
_CHUNK = 128


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
    """The outcome of decoding one chunk of files.

    Args:
        first: Row of the chunk's first file.
        digests: (chunk, 16) uint8, one digest a row; zeros if decoding failed.
        failures: Each file that could not be decoded.
        notes: What was done to images, with how many of them.
        used: Bits that the largest value needs, if files have more than eight a value; else 0.
    """

    first: int
    digests: np.ndarray
    failures: tuple[Failure, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)
    used: int = 0


def digest(row: np.ndarray) -> np.ndarray:
    """(16,) uint8 digest of a row's content."""
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
    """Decode `paths` into rows from `first` on of the .npy file `target`.

    `bits` are those of each file if they differ; else `reading` states them. Safe in several processes on disjoint
    rows.
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
    """End this process when its parent dies, even by SIGKILL."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def fill(
    target: Path, scan: Scan, size: int | None, workers: int, report: Report | None, *, pixels: int = PIXELS
) -> Decoded:
    """Write the rows of `scan` into a new .npy file, in blocks.

    Rows are (c, size, size) uint8 (as they are if `size` is None), or of the table. 0 `workers` decode in this
    process.
    """
    n = len(scan.labels)
    digests = np.zeros((n, DIGEST_BYTES), dtype=np.uint8)
    failures: list[Failure] = []
    notes: Counter[str] = Counter()
    used = 0
    done = 0
    for part in _parts(target, scan, size, workers, pixels):
        digests[part.first : part.first + len(part.digests)] = part.digests
        failures += part.failures
        notes.update(part.notes)
        used = max(used, part.used)
        done += len(part.digests)
        if report is not None:
            report(done, n)
    failures.sort(key=lambda failure: failure.row)
    return Decoded(0, digests, tuple(failures), notes, used)


def _parts(target: Path, scan: Scan, size: int | None, workers: int, pixels: int) -> Iterator[Decoded]:
    if scan.samples is not None:
        yield from _copy(target, scan.samples, size)
        return
    if size is None:
        raise ValueError("image files need a size")
    paths = list(scan.paths or ())
    shape = (len(paths), scan.channels, size, size)
    np.lib.format.open_memmap(target, mode="w+", dtype=np.uint8, shape=shape).flush()
    one, by_file = (None, list(scan.bits)) if isinstance(scan.bits, Sequence) else (scan.bits, None)
    reading = Reading(size, scan.channels, one, pixels)
    jobs = [
        (target, first, paths[first : first + _CHUNK], reading, by_file and by_file[first : first + _CHUNK])
        for first in range(0, len(paths), _CHUNK)
    ]
    if not workers:
        yield from (decode_into(*job) for job in jobs)
        return
    processes = min(workers, len(jobs))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=follow_parent) as pool:
        with without_script():
            futures = [pool.submit(decode_into, *job) for job in jobs]
        try:
            yield from (future.result() for future in as_completed(futures))
        except BrokenProcessPool as error:
            raise DataError(
                "a decoding process was killed, perhaps because memory ran out: use fewer workers"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _copy(target: Path, samples: np.ndarray, size: int | None) -> Iterator[Decoded]:
    side = (size, size) if samples.ndim == 4 and size is not None else samples.shape[2:]
    shape = (*samples.shape[:2], *side)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=samples.dtype, shape=shape)
    notes = enlarged(samples.shape[2:4], side[0]) if side else ()
    for first in range(0, len(samples), _CHUNK):
        rows = samples[first : first + _CHUNK]
        block = rows if shape == samples.shape else np.stack([resize(row, side[0]) for row in rows])
        out[first : first + _CHUNK] = block
        yield Decoded(first, np.stack([digest(row) for row in block]), notes=dict.fromkeys(notes, len(rows)))
    out.flush()


def drop(target: Path, rows: set[int]) -> None:
    """Rewrite the array at `target` without `rows`, block by block."""
    old = np.load(target, mmap_mode="r")
    remaining = np.array([row for row in range(len(old)) if row not in rows])
    shorter = target.with_suffix(".kept")
    new = np.lib.format.open_memmap(shorter, mode="w+", dtype=old.dtype, shape=(len(remaining), *old.shape[1:]))
    for first in range(0, len(remaining), _CHUNK):
        new[first : first + _CHUNK] = old[remaining[first : first + _CHUNK]]
    new.flush()
    shorter.replace(target)
