"""Artefacts by the hash of everything they depend on: written atomically, checked on reading, made once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from pydantic import JsonValue
from safetensors.torch import load_file, save_file
from torch import Tensor

Inputs = Mapping[str, JsonValue]


@dataclass(frozen=True, eq=False)
class Artefact:
    """Tensors by name, with JSON notes about how they came about (seconds, precision, ...)."""

    tensors: Mapping[str, Tensor]
    notes: Mapping[str, JsonValue]


class CorruptArtefactWarning(UserWarning):
    """A stored artefact does not match its checksum; it is made again."""


def content_key(inputs: Inputs) -> str:
    """32 hex digits for a set of inputs, independent of their order.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path` so that a reader, or a crash, sees either the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class Store:
    """A folder of artefacts, `root/<kind>/<key>/`. It may hold private data, so only its owner can enter it."""

    root: Path

    def ensure(self, kind: str, inputs: Inputs, make: Callable[[], Artefact]) -> Artefact:
        """The artefact for `inputs`, from the store if it is there and intact, otherwise from `make`.

        A lock a key keeps two processes from making the same thing; a killed process releases it.
        """
        key = content_key(inputs)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = self.root / kind / key
        folder.parent.mkdir(exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            found = _read(folder)
            if found is None:
                found = make()
                _write(folder, found, inputs)
        return found

    def has(self, kind: str, inputs: Inputs) -> bool:
        """Whether the artefact is there (its checksum is looked at when it is read)."""
        return (self.root / kind / content_key(inputs) / "manifest.json").is_file()

    def drop(self, kind: str, inputs: Inputs) -> None:
        """Remove an artefact that is no longer needed."""
        folder = self.root / kind / content_key(inputs)
        if folder.exists():
            with FileLock(folder.with_suffix(".lock")):
                shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, artefact: Artefact, inputs: Inputs) -> None:
    prefix = f".new-{folder.name}-"
    for left in folder.parent.glob(f"{prefix}*"):  # of a process that was killed here: we hold its lock
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))
    try:
        data = temporary / "data.safetensors"
        # Views and expanded tensors share memory, which safetensors refuses: every tensor gets its own.
        owned = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in artefact.tensors.items()}
        save_file(owned, data)
        manifest = {"inputs": dict(inputs), "notes": dict(artefact.notes), "sha256": _checksum(data)}
        (temporary / "manifest.json").write_text(json.dumps(manifest, sort_keys=True, indent=2), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        temporary.replace(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _read(folder: Path) -> Artefact | None:
    if not folder.exists():
        return None
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        if manifest["sha256"] == _checksum(folder / "data.safetensors"):
            return Artefact(load_file(folder / "data.safetensors"), manifest["notes"])
        reason = "its checksum does not match"
    except (OSError, ValueError, KeyError) as error:
        reason = str(error)
    warnings.warn(
        f"artefact {folder.name} is corrupt ({reason}) and is made again", CorruptArtefactWarning, stacklevel=3
    )
    shutil.rmtree(folder, ignore_errors=True)
    return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
