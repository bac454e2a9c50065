"""The array of all samples of a data set, written in place block by block, by several processes if asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench.contract.source import DataError, Scan
from bench.data.decode import DIGEST_BYTES, Decoded, Failure, decode_into, digest, follow_parent, resize
from bench.data.picture import PIXELS, Reading, enlarged

Report = Callable[[int, int], None]
_CHUNK = 128


def fill(
    target: Path, scan: Scan, size: int | None, workers: int, report: Report | None, *, pixels: int = PIXELS
) -> Decoded:
    """Write all rows of `scan` into a new .npy file `target`, never holding more than a block of them.

    Args:
        target: Where to; n rows of (c, size, size) uint8, or of the table as it is.
        scan: What to write.
        size: Side in pixels; None keeps samples as they are.
        workers: Decoding processes; 0 decodes in this process.
        report: Called with (rows done, n).
        pixels: Most pixels of an image file.

    Returns:
        What became of all rows.
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
    one, each = (None, list(scan.bits)) if isinstance(scan.bits, Sequence) else (scan.bits, None)
    reading = Reading(size, scan.channels, one, pixels)
    jobs = [
        (target, first, paths[first : first + _CHUNK], reading, each and each[first : first + _CHUNK])
        for first in range(0, len(paths), _CHUNK)
    ]
    if not workers:
        yield from (decode_into(*job) for job in jobs)
        return
    processes = min(workers, len(jobs))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=follow_parent) as pool:
        futures = [pool.submit(decode_into, *job) for job in jobs]
        try:
            yield from (future.result() for future in as_completed(futures))
        except BrokenProcessPool as error:
            raise DataError("a decoding process died, perhaps for want of memory: try fewer workers") from error
        finally:
            pool.shutdown(cancel_futures=True)


def _copy(target: Path, samples: np.ndarray, size: int | None) -> Iterator[Decoded]:
    side = (size, size) if samples.ndim == 4 and size is not None else samples.shape[2:]
    shape = (*samples.shape[:2], *side)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=samples.dtype, shape=shape)
    said = enlarged(samples.shape[2:4], side[0]) if side else ()
    for first in range(0, len(samples), _CHUNK):
        rows = samples[first : first + _CHUNK]
        block = rows if shape == samples.shape else np.stack([resize(row, side[0]) for row in rows])
        out[first : first + _CHUNK] = block
        yield Decoded(first, np.stack([digest(row) for row in block]), notes=dict.fromkeys(said, len(rows)))
    out.flush()


def drop(target: Path, rows: set[int]) -> None:
    """Rewrite the array at `target` without `rows`, block by block."""
    old = np.load(target, mmap_mode="r")
    kept = np.array([row for row in range(len(old)) if row not in rows])
    shorter = target.with_suffix(".kept")
    new = np.lib.format.open_memmap(shorter, mode="w+", dtype=old.dtype, shape=(len(kept), *old.shape[1:]))
    for first in range(0, len(kept), _CHUNK):
        new[first : first + _CHUNK] = old[kept[first : first + _CHUNK]]
    new.flush()
    shorter.replace(target)
