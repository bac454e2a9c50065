"""Preparation: decode a data set once into a memory-mapped array.

A prepared data set is the folder `<cache>/<name>-<key>`. The key is a hash of everything the content depends on: the
source's name, parameters and code, the code that decodes, the size, and the source's stamp of the raw files (their
resolved place, and sizes, times or numbers of files as each source says in its `stamp`). The folder appears in one
step, complete, or not at all; it is made again if corrupt images that it was made without have changed since.
"""

from __future__ import annotations

__figures__ = False

import hashlib
import json
import os
import re
import shutil
import socket
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import psutil

from bench.contract.source import PARTS, DataError, Scan, Source
from bench.data.dicom import FEWEST, MOST
from bench.data.picture import PIXELS
from bench.data.prepared import (
    SCHEMA,
    DamagedError,
    Prepared,
    connect,
    load,
    part_codes,
    save,
    save_states,
    states,
    verify,
)
from bench.data.raw_files import links_note
from bench.data.sample_array import Decoded, Failure, Report, drop, fill
from bench.data.subjects import people, read_groups, spelling
from bench.disk.disk_errors import FULL, unwritable
from bench.plugins.code_digest import code_digest
from bench.results.build_folder import tag_cache
from bench.validation import at_least, within

_LONGEST = 200
ATTRIBUTE = re.compile(r"[a-z][a-z0-9 -]{0,39}")
"""What an attribute may be called."""
__all__ = ["Prepared", "Report", "prepare", "verify"]
SIDE = 8192  # most pixels that images are resized to, a side
_LISTED = 20
_LEFT = "left out"
"""In meta.json: the state of each corrupt image that a data set was prepared without."""


def check_scan(source: Source, scan: Scan, size: int | None) -> None:
    """Raise ValueError for a contradictory scan, DataError for an empty one."""
    n, k = scan.labels.shape
    if not n:
        raise DataError(f"{source.name}: no row was found. {source.obtain}")
    parts: dict[str, Sized | None] = {
        "labels": scan.labels, "subjects": scan.subjects, "paths": scan.paths, "samples": scan.samples,
        "parts": scan.parts, "bits": scan.bits if isinstance(scan.bits, Sequence) else None,
    }  # fmt: skip
    parts |= {f"attribute {name}": words for name, words in scan.attributes.items()}
    rows = {part: len(values) for part, values in parts.items() if values is not None}
    if len(set(rows.values())) != 1 or (scan.paths is None) == (scan.samples is None):
        raise ValueError(f"{source.name}: expected {n} paths or samples (one of them) and subjects, got rows {rows}")
    if scan.subjects is not None and not all(isinstance(subject, str) for subject in scan.subjects):
        raise ValueError(f"{source.name}: subjects must be text, as the data set writes them, and None for no people")
    for bits in set(scan.bits) if isinstance(scan.bits, Sequence) else {scan.bits}:
        within(FEWEST, MOST, bits=bits)
    if odd_parts := set(scan.parts or ()) - {*PARTS, ""}:
        raise ValueError(f"{source.name}: parts must be among {', '.join(PARTS)} or blank, got {min(odd_parts)!r}")
    if odd := [name for name in scan.attributes if ATTRIBUTE.fullmatch(name) is None]:
        raise DataError(
            f"{source.name}: an attribute must be called by at most 40 of a-z, 0-9, blanks and hyphens, got {odd[0]!r}"
        )
    _check_findings(source, scan.findings)
    _check_words(source, scan)
    if scan.labels.dtype != np.float32 or k != len(scan.findings):
        raise ValueError(
            f"{source.name}: labels must be float32 with {len(scan.findings)} columns, got {k} of {scan.labels.dtype}"
        )
    if not (np.isnan(scan.labels) | (scan.labels == 0) | (scan.labels == 1)).all():
        raise ValueError(f"{source.name}: labels must be 0, 1 or NaN")
    if scan.exclusive and not (scan.labels.sum(axis=1) == 1).all():
        raise ValueError(f"{source.name}: exclusive labels must have exactly one 1 in each row")
    if scan.exclusive and k < 2:
        raise DataError(f"{source.name}: expected at least two classes, found {k}. {source.obtain}")
    if scan.paths is not None and (size is None or scan.channels not in (1, 3)):
        raise ValueError(f"{source.name}: image files need a size and 1 or 3 channels, got {size} and {scan.channels}")
    if scan.samples is not None and f"{scan.samples.ndim} {scan.samples.dtype}" not in ("4 uint8", "2 float32"):
        raise ValueError(
            f"{source.name}: samples must be (n, c, h, w) uint8 or (n, d) float32, got "
            f"{scan.samples.shape} {scan.samples.dtype}"
        )


def _check_words(source: Source, scan: Scan) -> None:
    """Raise DataError for unreadable people or attributes, before hours of decoding."""
    try:
        people(scan.subjects)
        read_groups(scan.attributes)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def _check_findings(source: Source, findings: Sequence[str]) -> None:
    """Raise DataError for blank, long, unreadable or repeated names of findings."""
    for finding in findings:
        if not finding.strip() or len(finding) > _LONGEST:
            raise DataError(
                f"{source.name}: a finding or class must have a name of 1 to {_LONGEST} letters, got {finding[:20]!r}"
            )
    try:
        counts = Counter(spelling(finding) for finding in findings)
    except DataError as error:
        raise DataError(f"{source.name}: the name of a finding or class: {error}: rename it") from None
    if again := [name for name, count in counts.items() if count > 1]:
        raise DataError(f"{source.name}: two findings or classes are called {again[0]!r}, ignoring case: rename one")


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
        roots: Data roots, as `bench.data.raw_files.resolve` gives them.
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
    folder = _folder(source, roots, cache, size, pixels)
    cached = _cached(folder)
    if cached is not None:
        if cached.skipped and not skip_corrupt:
            raise DataError(
                f"{cached.name} was prepared without {cached.skipped} corrupt images. Go on without them with "
                f"--skip-corrupt, or repair the files ({folder.name}-corrupt.txt in {cache} lists them)."
            )
        return cached
    scan = source.scan(roots, size)
    check_scan(source, scan, size)
    shareable = source.shareable if scan.shareable is None else scan.shareable
    with _building(folder, private=not shareable or source.draws_people) as building:
        save_states(building, scan.paths or ())  # first: what changes while it is decoded has changed since
        filled = fill(building / "samples.npy", scan, size, workers, report, pixels=pixels)
        failures = {failure.row: failure for failure in filled.failures}
        if failures:
            listing = folder.with_name(f"{folder.name}-corrupt.txt")
            _list_corrupt(scan, failures, listing)
            if not skip_corrupt or len(failures) == len(scan.labels):
                raise DataError(_corrupt_text(source.name, scan, failures, listing, shareable=shareable))
            drop(building / "samples.npy", set(failures))
        rows = np.array([row for row in range(len(scan.labels)) if row not in failures], dtype=np.int64)
        known = people(None if scan.subjects is None else [scan.subjects[row] for row in rows], source.name)
        attributes = read_groups({name: [words[row] for row in rows] for name, words in scan.attributes.items()})
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
                "notes": [*scan.told, *known.notes, *_read_notes(scan, filled, len(rows))],
                "parameters": _parameters(source),
                _LEFT: _states([str(scan.paths[row]) for row in sorted(failures)] if scan.paths else []),
            },
            labels=scan.labels[rows],
            subjects=known.numbers,
            marks=known.marks,
            groups=connect(known.numbers, filled.digests[rows]),
            digests=filled.digests[rows],
            attributes=attributes,
            parts=None if scan.parts is None else part_codes([scan.parts[row] for row in rows]),
        )
    return load(folder)


def prepared_fingerprint(
    source: Source, *, roots: Sequence[Path], cache: Path, size: int | None, skip_corrupt: bool, max_pixels: int | None
) -> str | None:
    """The fingerprint of the cached data set; None if `prepare` would decode."""
    size = source.default_size if size is None else size
    folder = _folder(source, roots, cache, size, PIXELS if max_pixels is None else max_pixels)
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        left = meta[_LEFT]
        whole = meta["schema"] == SCHEMA and (skip_corrupt or not meta["skipped"])
        return str(meta["fingerprint"]) if whole and left == _states([path for path, *_ in left]) else None
    except (OSError, ValueError, KeyError):
        return None


def left_out(prepared: Prepared) -> frozenset[str]:
    """The corrupt images that a data set was prepared without."""
    meta = json.loads((prepared.folder / "meta.json").read_text(encoding="utf-8"))
    return frozenset(str(path) for path, *_ in meta[_LEFT])


def _folder(source: Source, roots: Sequence[Path], cache: Path, size: int | None, pixels: int) -> Path:
    return cache / f"{source.name}-{_key(source, roots, size, pixels)}"


def _parameters(source: Source) -> dict[str, object]:
    if not is_dataclass(source):
        raise TypeError(f"a data set must be a dataclass, got {type(source).__name__}")
    return {field.name: getattr(source, field.name) for field in fields(source) if field.init}


def _key(source: Source, roots: Sequence[Path], size: int | None, pixels: int) -> str:
    """16 hex digits over everything that the prepared content depends on."""
    code = [code_digest(type(source)), code_digest(prepare)]
    content = [SCHEMA, source.name, _parameters(source), size, pixels, code, source.stamp(roots)]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cached(folder: Path) -> Prepared | None:
    """The data set in `folder`; if damaged or outdated, removed and None."""
    if not folder.exists():
        return None
    try:
        prepared = load(folder)
        left = json.loads((folder / "meta.json").read_text(encoding="utf-8"))[_LEFT]
    except (DamagedError, KeyError) as error:
        warnings.warn(f"{error}: preparing again", stacklevel=3)
    else:
        if left == _states([path for path, *_ in left]):
            return prepared
    shutil.rmtree(folder)
    return None


def _states(paths: Sequence[str]) -> list[list[str | int]]:
    return [[path, *state] for path, state in zip(paths, states(paths).tolist(), strict=True)]


def _read_notes(scan: Scan, filled: Decoded, n: int) -> Iterator[str]:
    """Notes on changes made to image files by reading, with counts."""
    for note, count in sorted(filled.notes.items()):
        yield f"{count} of {n} images: {note}"
    if isinstance(scan.bits, int) and 0 < filled.used < scan.bits:
        yield f"no value needs more than {filled.used} of the {scan.bits} bits that were stated"
    if scan.paths is not None:
        yield from links_note(scan.paths, scan.folder)


@contextmanager
def _building(folder: Path, *, private: bool) -> Iterator[Path]:
    """A new folder, renamed to `folder` on success and removed otherwise."""
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
    """Remove folders of killed preparations of the same data on this machine."""
    start = f".building-{folder.name}-{socket.gethostname()}-"
    for left in folder.parent.iterdir():
        pid = left.name.removeprefix(start).partition("-")[0]
        if left.name.startswith(start) and pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _corrupt_text(name: str, scan: Scan, failures: Mapping[int, Failure], listing: Path, *, shareable: bool) -> str:
    """The error message on corrupt images; file names if shareable only."""
    n = len(scan.labels)
    if shareable:
        shown = [f"{scan.paths[row] if scan.paths else row}: {failure.reason}" for row, failure in failures.items()]
    else:
        counts = Counter(failure.reason if failure.refused else "damaged" for failure in failures.values())
        shown = [f"{count}: {reason}" for reason, count in counts.most_common()]
    lines = "".join(f"\n  {line}" for line in shown[:_LISTED])
    more = f"\n  and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return (
        f"{name}: {len(failures)} of {n} images cannot be decoded:{lines}{more}\n"
        f"{listing} lists them all. Mend them or fetch them again, or leave them out with --skip-corrupt "
        f"(the record will count them)."
    )


def _list_corrupt(scan: Scan, failures: Mapping[int, Failure], listing: Path) -> None:
    lines = [f"{scan.paths[row] if scan.paths else row}\t{failure.reason}\n" for row, failure in failures.items()]
    listing.touch(mode=0o600)
    listing.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
