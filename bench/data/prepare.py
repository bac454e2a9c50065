"""Preparation: decode and resize a data set once into a memory-mapped array that later runs open at once.

A prepared data set is the folder `<cache>/<name>-<key>`. The key is a hash of everything the content depends on: the
source's name, parameters and code, the code that decodes, the size, and the source's stamp of the raw files (their
resolved place, and sizes, times or numbers of files as each source says in its `stamp`). The folder appears in one
step, complete, or not at all; it is made again where corrupt images that it was made without have changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import psutil

from bench.contract.source import DataError, Scan, Source
from bench.data.decode import Decoded, Failure
from bench.data.file_states import save_states, states
from bench.data.groups import read_groups
from bench.data.people import people
from bench.data.picture import PIXELS
from bench.data.prepared import SCHEMA, DamagedError, Prepared, connect, load, part_codes, save, verify
from bench.data.sample_array import Report, drop, fill
from bench.data.scan_check import check_scan
from bench.data.tree import links_note
from bench.plugins.source_hash import modules_hash, source_hash
from bench.results.build_folder import tag_cache
from bench.results.disk_errors import FULL, unwritable
from bench.validation import at_least, within

__all__ = ["Prepared", "Report", "prepare", "verify"]

CODE = Path(__file__)
"""By what it imports, all that makes rows of raw files."""
SIDE = 8192  # most pixels that images are resized to, a side
_LISTED = 20
_LEFT = "left out"
"""In meta.json: the state of each corrupt image that a data set was prepared without."""


def prepare(
    source: Source,
    *,
    roots: Sequence[Path],
    cache: Path,
    size: int | None = None,
    workers: int = 0,
    skip_corrupt: bool = False,
    max_pixels: int | None = None,
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
        max_pixels: Most pixels of an image file; None stands for 100 million.
        report: Called with (rows done, rows in all) as decoding goes on.

    Raises:
        DataError: If the data are missing or wrong, or images are corrupt; see the text.
        ValueError: If size or workers is out of range, or the plug-in's scan contradicts itself.
    """
    size = source.default_size if size is None else size
    if size is not None:
        within(1, SIDE, size=size)
    at_least(0, workers=workers)
    at_least(1, max_pixels=max_pixels)
    pixels = PIXELS if max_pixels is None else max_pixels
    folder = cache / f"{source.name}-{_key(source, roots, size, pixels)}"
    found = _cached(folder)
    if found is not None:
        if found.skipped and not skip_corrupt:
            raise DataError(
                f"{found.name} was prepared without {found.skipped} corrupt images. Go on without them with "
                f"--skip-corrupt, or mend the files ({folder.name}-corrupt.txt in {cache} lists them)."
            )
        return found
    scan = source.scan(roots, size)
    check_scan(source, scan, size)
    shareable = source.shareable if scan.shareable is None else scan.shareable
    with _building(folder, private=not shareable) as building:
        save_states(building, scan.paths or ())  # first: what changes while it is decoded has changed since
        filled = fill(building / "samples.npy", scan, size, workers, report, pixels=pixels)
        failures = {failure.row: failure for failure in filled.failures}
        if failures:
            listing = folder.with_name(f"{folder.name}-corrupt.txt")
            _list_corrupt(scan, failures, listing)
            if not skip_corrupt or len(failures) == len(scan.labels):
                raise DataError(_corrupt_text(source.name, scan, failures, listing, shareable=shareable))
            drop(building / "samples.npy", set(failures))
        kept = np.array([row for row in range(len(scan.labels)) if row not in failures], dtype=np.int64)
        known = people(None if scan.subjects is None else [scan.subjects[row] for row in kept], source.name)
        told = read_groups({name: [words[row] for row in kept] for name, words in scan.attributes.items()})
        samples = np.load(building / "samples.npy", mmap_mode="r")
        save(
            building,
            meta={
                "name": scan.name or source.name,
                "origin": scan.origin or source.origin,
                "findings": list(scan.findings),
                "exclusive": scan.exclusive,
                "shareable": shareable,
                "size": int(samples.shape[-1]) if samples.ndim == 4 else None,
                "skipped": len(failures),
                "version": scan.version,
                "notes": [*scan.told, *known.notes, *_read_notes(scan, filled, len(kept))],
                "parameters": _parameters(source),
                _LEFT: _states([str(scan.paths[row]) for row in sorted(failures)] if scan.paths else []),
            },
            labels=scan.labels[kept],
            subjects=known.numbers,
            marks=known.marks,
            groups=connect(known.numbers, filled.digests[kept]),
            digests=filled.digests[kept],
            attributes=told,
            parts=None if scan.parts is None else part_codes([scan.parts[row] for row in kept]),
        )
    return load(folder)


def _parameters(source: Source) -> dict[str, object]:
    if not is_dataclass(source):
        raise TypeError(f"a data set must be a dataclass, got {type(source).__name__}")
    return {field.name: getattr(source, field.name) for field in fields(source) if field.init}


def _key(source: Source, roots: Sequence[Path], size: int | None, pixels: int) -> str:
    """16 hex digits over everything that the prepared content depends on."""
    code = [source_hash(type(source)), modules_hash(CODE)]
    content = [SCHEMA, source.name, _parameters(source), size, pixels, code, source.stamp(roots)]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cached(folder: Path) -> Prepared | None:
    """What `folder` holds, None if it is not there.

    A damaged one is removed with a warning; so is one whose corrupt images have changed since, without.
    """
    if not folder.exists():
        return None
    try:
        found = load(folder)
        left = json.loads((folder / "meta.json").read_text(encoding="utf-8"))[_LEFT]
    except (DamagedError, KeyError) as error:
        warnings.warn(f"{error}: preparing again", stacklevel=3)
    else:
        if left == _states([path for path, *_ in left]):
            return found
    shutil.rmtree(folder)
    return None


def _states(paths: Sequence[str]) -> list[list[str | int]]:
    return [[path, *state] for path, state in zip(paths, states(paths).tolist(), strict=True)]


def _read_notes(scan: Scan, filled: Decoded, n: int) -> Iterator[str]:
    """What was done to image files on reading, and how often."""
    for note, count in sorted(filled.notes.items()):
        yield f"{count} of {n} images: {note}"
    if isinstance(scan.bits, int) and 0 < filled.used < scan.bits:
        yield f"no value needs more than {filled.used} of the {scan.bits} bits that were stated"
    if scan.paths is not None:
        yield from links_note(scan.paths, scan.folder)


@contextmanager
def _building(folder: Path, *, private: bool) -> Iterator[Path]:
    """A fresh folder that becomes `folder` if the block ends well and vanishes if it does not."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in FULL:
            raise
        raise DataError(f"{unwritable(folder.parent, error)} with XDG_CACHE_HOME") from error
    tag_cache(folder.parent)
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


def _corrupt_text(name: str, scan: Scan, failures: Mapping[int, Failure], listing: Path, *, shareable: bool) -> str:
    """The message about corrupt images; file names only of shareable data, since messages may enter records."""
    n = len(scan.labels)
    if shareable:
        shown = [f"{scan.paths[row] if scan.paths else row}: {each.reason}" for row, each in failures.items()]
    else:
        counts = Counter(each.reason if each.refused else "damaged" for each in failures.values())
        shown = [f"{count}: {reason}" for reason, count in counts.most_common()]
    lines = "".join(f"\n  {line}" for line in shown[:_LISTED])
    more = f"\n  and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return (
        f"{name}: {len(failures)} of {n} images cannot be decoded:{lines}{more}\n"
        f"{listing} lists them all. Mend them or fetch them again, or leave them out with --skip-corrupt "
        f"(the record will count them)."
    )


def _list_corrupt(scan: Scan, failures: Mapping[int, Failure], listing: Path) -> None:
    lines = [f"{scan.paths[row] if scan.paths else row}\t{each.reason}\n" for row, each in failures.items()]
    listing.touch(mode=0o600)
    listing.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
