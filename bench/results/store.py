"""Artefacts by the hash of their inputs, written atomically, checked on reading.

A folder proves that it is what its name says: its manifest carries a digest over every byte of it, the kind and the
inputs that the folder is named after, and the hash of the tensors beside it.

If the disk has no room for the tensors, the manifest stands alone. A process that needs the tensors makes them again,
and they must have the hash in the manifest. Once there is room, the next process makes and keeps them.

This needs no lock to be correct, on one machine or on many: each process makes an artefact in a folder of its own, and
the first process to give its folder the final name wins. The copies of the others are equal, and are removed. Locks
save double work if the file system has them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from filelock import FileLock, Timeout
from pydantic import JsonValue

from bench.contract.seal import ContractError
from bench.disk.atomic_file import make_folder, sync, write_new
from bench.disk.disk_errors import FULL
from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.progress import AGAIN, report
from bench.results import signed_json
from bench.results.build_folder import (
    UNFINISHED,
    begun,
    is_being_made,
    is_cache,
    is_unfinished_and_left,
    locked,
    sweep,
    tag_cache,
    temporary,
    unfinished,
)
from bench.results.signed_json import AlteredError, Inputs, content_key
from bench.wire.tensor_file import checksum_of, read_tensors, stored_as, write_tensors


@dataclass(frozen=True)
class Unstored:
    """Tensors that found no room: their `checksum_of` and `size_of`."""

    sha256: str
    size: int

    def check(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Report the repetition. Raises ContractError if the tensors came out different."""
        report(AGAIN, 1, 1)
        if (came := checksum_of(tensors)) != self.sha256:
            raise ContractError(
                "what finds no room on the disk is made again for each job, and must come out the same to the bit: its "
                f"checksum was {self.sha256[:12]}..., and is now {came[:12]}... (with another number of threads, or on "
                "another processor, sums are rounded in other ways); make room on the disk to have it kept"
            )


def has_room(folder: Path, size: int, copies: int | None) -> bool:
    """True if copies take at most half the free space (or None)."""
    return copies is None or copies * size <= shutil.disk_usage(folder).free // 2


def size_of(tensors: Mapping[str, torch.Tensor]) -> int:
    """The bytes of tensors as they are stored."""
    return sum(kind.itemsize * math.prod(shape) for kind, shape in map(stored_as, tensors.values()))


__all__ = ["Artefact", "CorruptArtefactWarning", "Inputs", "Store"]

KIND = "artefact"
TRAINING = ".training"
MANIFEST, DATA = "manifest.json", "data.safetensors"
STORED, SIZE = "stored", "bytes"
_TRIES = 3


@dataclass(frozen=True, eq=False)
class Artefact:
    """Tensors by name, with JSON notes on their making (seconds, precision, ...)."""

    tensors: Mapping[str, torch.Tensor]
    notes: Mapping[str, JsonValue]


class CorruptArtefactWarning(UserWarning):
    """A stored artefact was altered; it is made again."""


@dataclass(frozen=True)
class Store:
    """A folder of artefacts, `root/<kind>/<key>/`, which only its owner can enter.

    Args:
        root: The folder.
        budget: Memory; larger tensors come back as `Rows`, read from the artefact on demand. None reads all.
    """

    root: Path
    budget: Budget | None = None

    def ensure(self, kind: str, inputs: Inputs, make: Callable[[], Artefact], *, copies: int | None = None) -> Artefact:
        """The artefact for `inputs`, from the store if intact, else from `make`.

        Two processes that make the same thing at once get the one that was there first. If so many `copies` of this
        size would take more than half of the free space, the tensors are not stored but made again on each use, until
        there is room; None always stores them.

        Raises:
            ContractError: Tensors that were made again differ.
        """
        key = content_key(inputs)
        make_folder(self.root, mode=0o700)
        folder = self.root / kind / key
        make_folder(folder.parent)
        tag_cache(folder.parent)
        with locked(folder.with_suffix(".lock"), lambda: is_being_made(folder)):
            found = _read(folder, self.budget)
            if isinstance(found, Unstored) and has_room(folder.parent, found.size, copies):
                _remove(folder)
                found = None
            if found is None:
                with begun(folder) as building:
                    found = make()
                    found = _write(building, folder, found, inputs, self.budget, copies)
                shutil.rmtree(_training(folder), ignore_errors=True)
        if not isinstance(found, Unstored):
            return found
        again = make()
        found.check(again.tensors)
        return again

    def training(self, kind: str, inputs: Inputs) -> Path:
        """The folder for progress of an artefact's training, until it is made."""
        return _training(self.root / kind / content_key(inputs))

    def has(self, kind: str, inputs: Inputs) -> bool:
        """True if the artefact is there; reading shows if it is intact."""
        return (self.root / kind / content_key(inputs) / MANIFEST).is_file()

    def drop(self, kind: str, inputs: Inputs) -> None:
        """Remove an unneeded artefact, and leftovers of a process killed making it."""
        folder = self.root / kind / content_key(inputs)
        if folder.exists() or next(unfinished(folder), None):
            with locked(folder.with_suffix(".lock"), lambda: is_being_made(folder)):
                _remove(folder)
                sweep(folder)
        shutil.rmtree(_training(folder), ignore_errors=True)


def _write(
    building: Path, folder: Path, artefact: Artefact, inputs: Inputs, budget: Budget | None, copies: int | None
) -> Artefact | Unstored:
    """Name the artefact; return it, or the one that came first."""
    size = size_of(artefact.tensors)
    stored = has_room(folder.parent, size, copies)
    for last in (False, True):
        try:
            sha256 = _written(building / DATA, artefact, needed=copies is None) if stored else None
            stored = sha256 is not None
            manifest: dict[str, JsonValue] = {
                "kind": folder.parent.name,
                "inputs": dict(inputs),
                "notes": dict(artefact.notes),
                STORED: stored,
                SIZE: size,
                "sha256": sha256 or checksum_of(artefact.tensors),
            }
            write_new(building / MANIFEST, signed_json.written(signed_json.attest(manifest, KIND)), mode=0o600)
            return _named(building, folder, artefact, budget, stored=stored)
        except FileNotFoundError:  # who is stopped for long is taken for dead, and finds its folder gone
            if last:
                raise
            building.mkdir(mode=0o700, exist_ok=True)
    raise AssertionError("the second try returns or raises")


def _written(data: Path, artefact: Artefact, *, needed: bool) -> str | None:
    """Checksum of the artefact's tensor file, once it is on the disk.

    None if it is not needed, and other jobs, or a quota, have left less room than there was said to be.
    """
    try:
        with data.open("wb") as file:
            write_tensors(file, artefact.tensors)
        sync(data)
    except OSError as error:
        if needed or error.errno not in FULL:
            raise
        data.unlink()
        return None
    return _checksum(data)


def _named(
    building: Path, folder: Path, artefact: Artefact, budget: Budget | None, *, stored: bool
) -> Artefact | Unstored:
    for _ in range(_TRIES):
        try:
            building.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            if (found := _read(folder, budget)) is not None:
                return found  # another maker was faster
        else:
            sync(folder.parent)
            if stored and any(isinstance(tensor, Rows) for tensor in artefact.tensors.values()):
                with contextlib.suppress(OSError):  # somebody may have removed it by now
                    return Artefact(read_tensors(folder / DATA, budget), artefact.notes)
            break
    return artefact


def _remove(folder: Path) -> None:
    """Remove an artefact. A kill leaves no half under its name."""
    gone = temporary(folder)
    with contextlib.suppress(FileNotFoundError):  # somebody else was faster
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _remove_corrupt(folder: Path) -> None:
    """As `_remove`, but a good artefact that just replaced it stays."""
    gone = temporary(folder)
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    if problem(gone, folder.name) is None:
        with contextlib.suppress(OSError):  # there is a third one by now
            gone.rename(folder)
    shutil.rmtree(gone, ignore_errors=True)


def _training(folder: Path) -> Path:
    return folder.with_suffix(TRAINING)


def problem(folder: Path, key: str | None = None) -> str | None:
    """Why an artefact's folder is not its name's, in words, or None.

    `key` is the name that it ought to have, if that is another than it has now.
    """
    try:
        _manifest(folder, key or folder.name)
    except (OSError, AlteredError) as error:
        return str(error)
    return None


def _read(folder: Path, budget: Budget | None) -> Artefact | Unstored | None:
    if not folder.exists():
        return None
    try:
        manifest = _manifest(folder, folder.name)
        if not manifest.get(STORED, True):
            return Unstored(cast(str, manifest["sha256"]), cast(int, manifest[SIZE]))
        return Artefact(read_tensors(folder / DATA, budget), cast("Mapping[str, JsonValue]", manifest["notes"]))
    except (OSError, AlteredError) as error:
        if not folder.exists():  # it went while it was read
            return None
        reason = str(error)
    warnings.warn(
        f"artefact {folder.name} is corrupt ({reason}) and is made again", CorruptArtefactWarning, stacklevel=3
    )
    _remove_corrupt(folder)
    return None


def _manifest(folder: Path, name: str) -> Mapping[str, JsonValue]:
    """The manifest, checked with its tensors. Raises AlteredError or OSError."""
    manifest = signed_json.read((folder / MANIFEST).read_bytes(), KIND)
    inputs = manifest.get("inputs")
    if not isinstance(inputs, dict) or not isinstance(manifest.get("notes"), dict):
        raise AlteredError("its manifest must hold inputs and notes")
    if (key := content_key(inputs)) != name or manifest.get("kind") != folder.parent.name:
        raise AlteredError(f"it is {manifest.get('kind')}/{key}, put in the place of another")
    if manifest.get(STORED, True) and manifest.get("sha256") != _checksum(folder / DATA):
        raise AlteredError("its checksum does not match: the tensors were altered")
    return manifest


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


ARTEFACT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Regenerable:
    """A folder or file that may go, unless its `lock` is held."""

    path: Path
    size: int
    lock: Path | None = None

    def remove(self) -> bool:
        """Remove it; False if somebody is making or reading it."""
        if self.lock is None:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink(missing_ok=True)
            return True
        try:
            with FileLock(self.lock, timeout=0):
                shutil.rmtree(self.path)
        except Timeout:
            return False
        return True


def of_store(root: Path) -> Iterator[Regenerable]:
    """The artefacts of a `bench.results.store.Store`, of every kind that carries our mark."""
    for kind in _folders(root):
        if is_cache(kind):
            for path in _folders(kind):
                if path.suffix == TRAINING and ARTEFACT.fullmatch(path.stem):
                    if found := only(path, {each.name for each in path.glob("training-*")}):
                        yield Regenerable(path, found.size, path.with_suffix(".lock"))
                    continue
                if not (ARTEFACT.fullmatch(path.name) or is_unfinished_and_left(path)):
                    continue
                if found := only(path, {MANIFEST, DATA}):
                    made = UNFINISHED.fullmatch(path.name)
                    yield Regenerable(path, found.size, kind / f"{made['key'] if made else path.name}.lock")


def only(path: Path, names: set[str]) -> Regenerable | None:
    """The folder, if it holds plain files of `names` only, or None."""
    files = list(path.iterdir())
    if any(each.is_symlink() or not each.is_file() or each.name not in names for each in files):
        return None
    return Regenerable(path, sum(each.stat().st_size for each in files))


def _folders(root: Path) -> list[Path]:
    if root.is_symlink() or not root.is_dir():
        return []
    return sorted(each for each in root.iterdir() if each.is_dir() and not each.is_symlink())
