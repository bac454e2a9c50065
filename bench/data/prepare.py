"""Preparation: decode and resize a data set once into a memory-mapped array that later runs open at once.

A prepared data set is the folder `<cache>/<name>-<key>`. The key is a hash of everything the content depends on: the
source's name, parameters and code, the size, and the source's stamp of the raw files (their resolved place, and sizes,
times or numbers of files as each source says in its `stamp`). The folder appears in one step, complete, or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import psutil

from bench.contract.source import DataError, Scan, Source
from bench.data.prepared import SCHEMA, DamagedError, Prepared, codes, connect, load, save, verify
from bench.data.sample_array import Report, drop, fill
from bench.plugins.source_hash import source_hash
from bench.results import cache_tag
from bench.validation import at_least

__all__ = ["Prepared", "Report", "prepare", "verify"]

_LISTED = 20


def prepare(
    source: Source,
    *,
    roots: Sequence[Path],
    cache: Path,
    size: int | None = None,
    workers: int = 0,
    skip_corrupt: bool = False,
    report: Report | None = None,
) -> Prepared:
    """The data set of `source`, from the cache or freshly prepared.

    Args:
        source: A data-set plug-in.
        roots: Data roots, as `bench.data.roots.resolve` gives them.
        cache: Folder of prepared data sets; made if need be.
        size: Side in pixels that images are resized to; None stands for the source's own default.
        workers: Decoding processes; 0 decodes in this process.
        skip_corrupt: Leave out images that cannot be decoded, and count them, instead of refusing.
        report: Called with (rows done, rows in all) as decoding goes on.

    Raises:
        DataError: If the data are missing or wrong, or images are corrupt; see the text.
        ValueError: If size or workers is out of range, or the plug-in's scan contradicts itself.
    """
    size = source.default_size if size is None else size
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1 pixel, got {size}")
    at_least(0, workers=workers)
    folder = cache / f"{source.name}-{_key(source, roots, size)}"
    found = _cached(folder)
    if found is not None:
        if found.skipped and not skip_corrupt:
            raise DataError(
                f"{found.name} was prepared without {found.skipped} corrupt images. Go on without them with "
                f"--skip-corrupt, or mend the files ({folder.name}-corrupt.txt in {cache} lists them)."
            )
        return found
    scan = source.scan(roots, size)
    _check(source, scan, size)
    shareable = source.shareable if scan.shareable is None else scan.shareable
    with _building(folder, private=not shareable) as building:
        digests, failures = fill(building / "samples.npy", scan, size, workers, report)
        if failures:
            listing = folder.with_name(f"{folder.name}-corrupt.txt")
            _list_corrupt(scan, failures, listing)
            if not skip_corrupt or len(failures) == len(scan.labels):
                raise DataError(_corrupt_text(source.name, scan, failures, listing, shareable=shareable))
            drop(building / "samples.npy", set(failures))
        kept = np.array([row for row in range(len(scan.labels)) if row not in failures], dtype=np.int64)
        subjects = None if scan.subjects is None else codes([scan.subjects[row] for row in kept])
        pixels = np.load(building / "samples.npy", mmap_mode="r")
        save(
            building,
            meta={
                "name": scan.name or source.name,
                "origin": scan.origin or source.origin,
                "findings": list(scan.findings),
                "exclusive": scan.exclusive,
                "shareable": shareable,
                "size": int(pixels.shape[-1]) if pixels.ndim == 4 else None,
                "skipped": len(failures),
                "version": scan.version,
                "notes": list(scan.notes),
                "parameters": _parameters(source),
            },
            labels=scan.labels[kept],
            subjects=subjects,
            groups=connect(subjects, digests[kept]),
            digests=digests[kept],
        )
    return load(folder)


def _parameters(source: Source) -> dict[str, object]:
    if not is_dataclass(source):
        raise TypeError(f"a data set must be a dataclass, got {type(source).__name__}")
    return {field.name: getattr(source, field.name) for field in fields(source) if field.init}


def _key(source: Source, roots: Sequence[Path], size: int | None) -> str:
    """16 hex digits over everything that the prepared content depends on."""
    text = json.dumps(
        [SCHEMA, source.name, _parameters(source), size, source_hash(type(source)), source.stamp(roots)], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cached(folder: Path) -> Prepared | None:
    """What `folder` holds, None if it is not there; a damaged one is removed with a warning."""
    if not folder.exists():
        return None
    try:
        return load(folder)
    except DamagedError as error:
        warnings.warn(f"{error}: preparing again", stacklevel=3)
        shutil.rmtree(folder)
        return None


def _check(source: Source, scan: Scan, size: int | None) -> None:
    """Raise ValueError where a plug-in's scan contradicts itself, DataError where it is empty."""
    n, k = scan.labels.shape
    if not n:
        raise DataError(f"{source.name}: no row was found. {source.obtain}")
    parts = {"labels": scan.labels, "subjects": scan.subjects, "paths": scan.paths, "samples": scan.samples}
    rows = {part: len(values) for part, values in parts.items() if values is not None}
    if len(set(rows.values())) != 1 or (scan.paths is None) == (scan.samples is None):
        raise ValueError(f"{source.name}: expected {n} paths or samples (one of them) and subjects, got rows {rows}")
    if scan.labels.dtype != np.float32 or k != len(scan.findings):
        raise ValueError(
            f"{source.name}: labels must be float32 with {len(scan.findings)} columns, got {k} of {scan.labels.dtype}"
        )
    if not (np.isnan(scan.labels) | (scan.labels == 0) | (scan.labels == 1)).all():
        raise ValueError(f"{source.name}: labels must be 0, 1 or NaN")
    if scan.exclusive and not (scan.labels.sum(axis=1) == 1).all():
        raise ValueError(f"{source.name}: exclusive labels must have exactly one 1 in each row")
    if scan.paths is not None and (size is None or scan.channels not in (1, 3)):
        raise ValueError(f"{source.name}: image files need a size and 1 or 3 channels, got {size} and {scan.channels}")
    if scan.samples is not None and f"{scan.samples.ndim} {scan.samples.dtype}" not in ("4 uint8", "2 float32"):
        raise ValueError(
            f"{source.name}: samples must be (n, c, h, w) uint8 or (n, d) float32, got "
            f"{scan.samples.shape} {scan.samples.dtype}"
        )


@contextmanager
def _building(folder: Path, *, private: bool) -> Iterator[Path]:
    """A fresh folder that becomes `folder` if the block ends well and vanishes if it does not."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    cache_tag.tag(folder.parent)
    _sweep(folder)
    building = Path(tempfile.mkdtemp(prefix=_prefix(folder, os.getpid()), dir=folder.parent))  # mode 0700
    try:
        yield building
        if not private:
            shared = folder.parent.stat().st_mode & 0o777
            building.chmod(shared)
        try:
            building.replace(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster with the same content
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _prefix(folder: Path, pid: int) -> str:
    return f".building-{folder.name}-{socket.gethostname()}-{pid}-"


def _sweep(folder: Path) -> None:
    """Remove what killed preparations of the same data on this machine left behind."""
    start = f".building-{folder.name}-{socket.gethostname()}-"
    for left in folder.parent.iterdir():
        pid = left.name.removeprefix(start).partition("-")[0]
        if left.name.startswith(start) and pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _corrupt_text(name: str, scan: Scan, failures: Mapping[int, str], listing: Path, *, shareable: bool) -> str:
    """The message about corrupt images; file names only of shareable data, since messages may enter records."""
    n = len(scan.labels)
    shown = list(failures.items())[:_LISTED] if shareable else []
    lines = "".join(f"\n  {scan.paths[row] if scan.paths else row}: {reason}" for row, reason in shown)
    more = f"\n  and {len(failures) - len(shown)} more" if shown and len(failures) > len(shown) else ""
    return (
        f"{name}: {len(failures)} of {n} images cannot be decoded{':' if shown else '.'}{lines}{more}\n"
        f"{listing} lists them all. Fetch them again, or leave them out with --skip-corrupt "
        f"(the record will count them)."
    )


def _list_corrupt(scan: Scan, failures: Mapping[int, str], listing: Path) -> None:
    lines = [f"{scan.paths[row] if scan.paths else row}\t{reason}\n" for row, reason in failures.items()]
    listing.touch(mode=0o600)
    listing.write_text("".join(lines), encoding="utf-8")
