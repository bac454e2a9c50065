"""Artefacts by the hash of everything they depend on: written atomically, checked on reading, made once.

A folder proves that it is what its name says: its manifest carries a digest over every byte of it, the kind and the
inputs that the folder is named after, and the hash of the tensors beside it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from filelock import FileLock
from pydantic import JsonValue
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.results import attested, cache_tag
from bench.results.atomic_file import make_folder, sync, write_atomically
from bench.results.attested import AlteredError
from bench.results.content_key import Inputs, content_key

__all__ = ["Artefact", "CorruptArtefactWarning", "Inputs", "Store"]

KIND = "artefact"
MANIFEST, DATA = "manifest.json", "data.safetensors"


@dataclass(frozen=True, eq=False)
class Artefact:
    """Tensors by name, with JSON notes about how they came about (seconds, precision, ...)."""

    tensors: Mapping[str, Tensor]
    notes: Mapping[str, JsonValue]


class CorruptArtefactWarning(UserWarning):
    """A stored artefact is not what was written under its key; it is made again."""


@dataclass(frozen=True)
class Store:
    """A folder of artefacts, `root/<kind>/<key>/`. It may hold private data, so only its owner can enter it."""

    root: Path

    def ensure(self, kind: str, inputs: Inputs, make: Callable[[], Artefact]) -> Artefact:
        """The artefact for `inputs`, from the store if it is there and intact, otherwise from `make`.

        A lock a key keeps two processes from making the same thing; a killed process releases it.
        """
        key = content_key(inputs)
        make_folder(self.root, mode=0o700)
        folder = self.root / kind / key
        make_folder(folder.parent)
        cache_tag.tag(folder.parent)
        with FileLock(folder.with_suffix(".lock")):
            found = _read(folder)
            if found is None:
                found = make()
                _write(folder, found, inputs)
        return found

    def has(self, kind: str, inputs: Inputs) -> bool:
        """Whether the artefact is there (whether it is intact shows when it is read)."""
        return (self.root / kind / content_key(inputs) / MANIFEST).is_file()

    def drop(self, kind: str, inputs: Inputs) -> None:
        """Remove an artefact that is no longer needed, and what a process left that was killed while it made it."""
        folder = self.root / kind / content_key(inputs)
        if folder.exists() or _unfinished(folder):
            with FileLock(folder.with_suffix(".lock")):
                _remove(folder)


def _write(folder: Path, artefact: Artefact, inputs: Inputs) -> None:
    _remove(folder)
    temporary = _temporary(folder)
    try:
        data = temporary / DATA
        # Views and expanded tensors share memory, which safetensors refuses: every tensor gets its own.
        owned = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in artefact.tensors.items()}
        save_file(owned, data)
        sync(data)
        manifest: dict[str, JsonValue] = {
            "kind": folder.parent.name,
            "inputs": dict(inputs),
            "notes": dict(artefact.notes),
            "sha256": _checksum(data),
        }
        write_atomically(temporary / MANIFEST, attested.written(attested.attest(manifest, KIND)))
        temporary.replace(folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _remove(folder: Path) -> None:
    """Remove an artefact and what is unfinished of it; its lock is held. A kill leaves no half of it under its name."""
    if folder.exists():
        folder.replace(_temporary(folder))
    for left in _unfinished(folder):
        shutil.rmtree(left, ignore_errors=True)


def _temporary(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".new-{folder.name}-"))


def _unfinished(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f".new-{folder.name}-*"))


def problem(folder: Path) -> str | None:
    """What keeps the folder of an artefact from being what its name says, in words; None where nothing does."""
    try:
        _manifest(folder)
    except (OSError, AlteredError) as error:
        return str(error)
    return None


def _read(folder: Path) -> Artefact | None:
    if not folder.exists():
        return None
    try:
        manifest = _manifest(folder)
        return Artefact(load_file(folder / DATA), cast("Mapping[str, JsonValue]", manifest["notes"]))
    except (OSError, AlteredError) as error:
        reason = str(error)
    warnings.warn(
        f"artefact {folder.name} is corrupt ({reason}) and is made again", CorruptArtefactWarning, stacklevel=3
    )
    _remove(folder)
    return None


def _manifest(folder: Path) -> Mapping[str, JsonValue]:
    """The manifest, once it and the tensors beside it have been checked. Raises AlteredError or OSError."""
    manifest = attested.read((folder / MANIFEST).read_bytes(), KIND)
    inputs = manifest.get("inputs")
    if not isinstance(inputs, dict) or not isinstance(manifest.get("notes"), dict):
        raise AlteredError("its manifest must hold inputs and notes")
    if (key := content_key(inputs)) != folder.name or manifest.get("kind") != folder.parent.name:
        raise AlteredError(f"it is {manifest.get('kind')}/{key}, put in the place of another")
    if manifest.get("sha256") != _checksum(folder / DATA):
        raise AlteredError("its checksum does not match: the tensors were altered")
    return manifest


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
