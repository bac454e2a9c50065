"""A prepared data set: memory-mapped samples, labels, people, groups and fingerprint."""

from __future__ import annotations

__figures__ = False

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import torch

from bench.contract.attributes import Attributes
from bench.contract.source import PARTS, DataError
from bench.data.sample_array import digest
from bench.data.subjects import codes
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.types import Dataset

STATES = "files"
"""The name of the array in the folder of a prepared data set."""
SCHEMA = 5
FLOAT_BYTES = 4
ARRAYS = ("samples", "labels", "subjects", "marks", "groups", "digests", "attributes", "parts")
FILES = {"meta.json", *(f"{name}.npy" for name in (*ARRAYS, STATES))}
"""What the folder of a prepared data set holds."""


def states(paths: Sequence[Path | str]) -> np.ndarray:
    """(n, 2) int64: bytes and change time (ns) of files, or 0."""
    table = np.zeros((len(paths), 2), dtype=np.int64)
    for row, path in enumerate(paths):
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:  # missing, or a link to nowhere or in circles
            continue
        table[row] = status.st_size, status.st_ctime_ns
    return table


def save_states(folder: Path, paths: Sequence[Path]) -> None:
    """Save the states of a scan's files in the prepared folder."""
    np.save(folder / f"{STATES}.npy", states(paths))


def changed(folder: Path, paths: Sequence[Path]) -> int:
    """Number of files changed, added or removed since `save_states`."""
    before, now = np.load(folder / f"{STATES}.npy"), states(paths)
    both = min(len(before), len(now))
    return int((now[:both] != before[:both]).any(axis=1).sum()) + abs(len(now) - len(before))


class DamagedError(DataError):
    """A prepared data set that is incomplete or of another schema."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows ready for use; samples stay on disk until `dataset` reads some.

    Args:
        name: What the record calls the data set.
        samples: (n, c, h, w) uint8 or (n, d) float32, memory-mapped and read-only.
        labels: (n, k) float32: 1 yes, 0 no, NaN unknown.
        subjects: (n,) int64, one number a person, in order of appearance (a row of an unknown person has its own
            number); None if the data set knows no people.
        groups: (n,) int64, connected components over "same person or identical content": what a split keeps together.
        digests: (n, 16) uint8, equal exactly for rows of identical content.
        findings, exclusive, shareable: As in `bench.types.Dataset`.
        attributes: Groups that rows belong to; None if the data say nothing.
        parts: (n,) int8, the official part of each row as its place in `bench.contract.source.PARTS`, -1 for none; None
            if the data set has no official parts. No part of the fingerprint, for most splits are made anew.
        fingerprint: SHA-256 over the arrays and what they mean, 64 hex digits; no path and no identifier goes in.
        size: Side of the images in pixels; None for tables.
        skipped: How many corrupt images were left out on request.
        version, notes, origin: As in `bench.contract.source.Scan`.
        folder: Its place; for messages on this machine, never for a record.
        marks: As in `bench.data.subjects.People`; None if the data set knows no people. No part of the fingerprint.
    """

    name: str
    samples: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray | None
    groups: np.ndarray
    digests: np.ndarray
    findings: tuple[str, ...]
    exclusive: bool
    shareable: bool
    attributes: Attributes | None
    parts: np.ndarray | None
    fingerprint: str
    size: int | None
    skipped: int
    version: str
    notes: tuple[str, ...]
    origin: str
    folder: Path
    marks: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.samples)

    def dataset(self, rows: np.ndarray, *, seen: bool = True, budget: Budget | None = None) -> Dataset:
        """Rows by index: images as float32 in [0, 1], tables unchanged.

        Rows that exceed the budget (None: no limit) are read on use. With `seen=False`, zeros that take no
        memory stand for them.
        """
        index = torch.from_numpy(rows.astype(np.int64))  # NumPy gives no rows a stride of 0, which cannot be hashed
        taken = self._taken(rows, budget) if seen else torch.zeros(1).expand(len(rows), *self.samples.shape[1:])
        return Dataset(
            name=self.name,
            samples=taken,
            labels=torch.from_numpy(self.labels)[index],
            subjects=None if self.subjects is None else torch.from_numpy(self.subjects)[index],
            findings=self.findings,
            exclusive=self.exclusive,
            shareable=self.shareable,
        )

    def _taken(self, rows: np.ndarray, budget: Budget | None) -> torch.Tensor:
        bytes_ = len(rows) * math.prod(self.samples.shape[1:]) * FLOAT_BYTES
        if budget is not None and bytes_ > budget.plain:
            divisor = 255.0 if self.samples.dtype == np.uint8 else None
            return Rows.of(self.samples, budget, divisor=divisor, index=torch.from_numpy(rows.astype(np.int64)))
        order = np.argsort(rows, kind="stable")
        taken = np.empty((len(rows), *self.samples.shape[1:]), dtype=np.float32)
        taken[order] = self.samples[rows[order]]
        if self.samples.dtype == np.uint8:
            taken /= 255
        return torch.from_numpy(taken)


def connect(subjects: np.ndarray | None, digests: np.ndarray) -> np.ndarray:
    """(n,) int64 group numbers: rows of one person or content share one."""
    n = len(digests)
    contents = codes([row.tobytes() for row in digests])
    links = [contents] if subjects is None else [contents, np.unique(subjects, return_inverse=True)[1]]
    nodes, offset = [], n
    for link in links:
        nodes.append(link + offset)
        offset += int(link.max(initial=-1)) + 1
    rows = np.tile(np.arange(n), len(links))
    graph = scipy.sparse.coo_array(
        (np.ones(len(rows), dtype=np.int8), (rows, np.concatenate(nodes))), shape=(offset, offset)
    )
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return codes(component[:n].tolist())


def part_codes(parts: Sequence[str]) -> np.ndarray:
    """(n,) int8: index of each official part in `PARTS`, -1 for none."""
    return np.array([PARTS.index(part) if part else -1 for part in parts], dtype=np.int8)


def fingerprint(
    digests: np.ndarray,
    labels: np.ndarray,
    subjects: np.ndarray | None,
    groups: np.ndarray,
    attributes: Attributes | None,
    meaning: dict[str, object],
) -> str:
    """SHA-256 (hex) over digests, labels, people, groups, attributes and `meaning` (sorted JSON)."""
    group_codes, named = _told(attributes)
    whole = {**meaning, **({"attributes": named} if named else {})}
    seen = hashlib.sha256(json.dumps(whole, sort_keys=True).encode())
    more = () if group_codes is None else (group_codes,)
    for array in (digests, labels, np.zeros(0, np.int64) if subjects is None else subjects, groups, *more):
        seen.update(f"{array.dtype.str}{array.shape}".encode())
        seen.update(np.ascontiguousarray(array).data)
    return seen.hexdigest()


def save(
    folder: Path,
    *,
    meta: dict[str, object],
    labels: np.ndarray,
    subjects: np.ndarray | None,
    marks: np.ndarray | None,
    groups: np.ndarray,
    digests: np.ndarray,
    attributes: Attributes | None,
    parts: np.ndarray | None,
) -> None:
    """Write all files except samples.npy, which `folder` already holds."""
    samples = np.load(folder / "samples.npy", mmap_mode="r")
    group_codes, named = _told(attributes)
    arrays = {
        "labels": labels, "subjects": subjects, "marks": marks, "groups": groups, "digests": digests,
        "attributes": group_codes, "parts": parts,
    }  # fmt: skip
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)
    if marks is not None:
        (folder / "marks.npy").chmod(0o600)
    seen = fingerprint(digests, labels, subjects, groups, attributes, _meaning(meta, samples))
    there = {"people": subjects is not None, "parts": parts is not None}
    whole = {**meta, **there, "attributes": named, "schema": SCHEMA, "fingerprint": seen}
    (folder / "meta.json").write_text(json.dumps(whole, indent=1, sort_keys=True), encoding="utf-8")


def load(folder: Path) -> Prepared:
    """Load the data set of `folder`; DamagedError if incomplete or outdated."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if meta["schema"] != SCHEMA:
            raise ValueError(f"schema {meta['schema']}, expected {SCHEMA}")
        samples = np.load(folder / "samples.npy", mmap_mode="r")
        labels, groups, digests = (np.load(folder / f"{name}.npy") for name in ("labels", "groups", "digests"))
        subjects = np.load(folder / "subjects.npy") if meta["people"] else None
        marks = _marks(folder) if meta["people"] else None
        if np.load(folder / f"{STATES}.npy", mmap_mode="r").ndim != 2:
            raise ValueError(f"{STATES}.npy is no table")
        attributes = _attributes(meta["attributes"], folder)
        parts = np.load(folder / "parts.npy") if meta["parts"] else None
        arrays = (samples, labels, groups, digests, subjects, marks, attributes, parts)
        lengths = {len(array) for array in arrays if array is not None}
        if len(lengths) != 1:
            raise ValueError(f"arrays of different lengths: {sorted(lengths)}")
        return Prepared(
            samples=samples,
            labels=labels,
            subjects=subjects,
            marks=marks,
            groups=groups,
            digests=digests,
            attributes=attributes,
            parts=parts,
            folder=folder,
            findings=tuple(meta["findings"]),
            notes=tuple(meta["notes"]),
            **{key: meta[key] for key in ("name", "exclusive", "shareable", "size", "skipped", "version", "origin")},
            fingerprint=meta["fingerprint"],
        )
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DamagedError(f"the prepared data in {folder} are damaged ({error})") from error


def _marks(folder: Path) -> np.ndarray | None:
    """The marks; None if they belong to another user of this machine."""
    try:
        marks: np.ndarray = np.load(folder / "marks.npy")
    except PermissionError:
        return None
    return marks


def verify(prepared: Prepared) -> None:
    """Read every row and compare with the fingerprint; DataError if anything changed."""
    fresh = np.stack([digest(row) for row in prepared.samples])
    changed = np.flatnonzero((fresh != prepared.digests).any(axis=1))
    meaning = _meaning(vars(prepared), prepared.samples)
    actual = fingerprint(fresh, prepared.labels, prepared.subjects, prepared.groups, prepared.attributes, meaning)
    if actual == prepared.fingerprint:
        return
    what = f"{len(changed)} rows changed, first row {changed[0]}" if len(changed) else "labels, people or meta changed"
    raise DataError(
        f"{prepared.name}: expected fingerprint {prepared.fingerprint[:16]}, got {actual[:16]}: {what} since the "
        f"preparation. Delete {prepared.folder} and prepare again."
    )


def _told(attributes: Attributes | None) -> tuple[np.ndarray | None, list[list[object]]]:
    """Codes of attributes, and each one's name with its groups."""
    if attributes is None:
        return None, []
    named = zip(attributes.names, attributes.groups, strict=True)
    return attributes.codes.numpy(), [[name, list(groups)] for name, groups in named]


def _attributes(named: Sequence[tuple[str, Sequence[str]]], folder: Path) -> Attributes | None:
    """The attributes with those names and groups; None if there are none."""
    if not named:
        return None
    codes = torch.from_numpy(np.load(folder / "attributes.npy"))
    return Attributes(tuple(name for name, _ in named), tuple(tuple(groups) for _, groups in named), codes)


def _meaning(meta: Mapping[str, object], samples: np.ndarray) -> dict[str, object]:
    """The entries that the fingerprint covers besides the arrays."""
    entries = {key: meta[key] for key in ("name", "findings", "exclusive", "shareable")}
    return {**entries, "shape": samples.shape, "dtype": samples.dtype.str}
