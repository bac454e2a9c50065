"""An artefact in a results folder, read without trusting the folder, and put into another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from safetensors import SafetensorError, safe_open

from bench.results import signed_json, store
from bench.results.build_folder import BEATS
from bench.results.content_key import Inputs
from bench.results.regenerable import only
from bench.results.results import Results
from bench.results.signed_json import AlteredError
from bench.results.store import DATA, MANIFEST, Artefact, Store
from bench.transfer.content_name import KINDS, MOST_RECORD, MOST_TENSORS


@dataclass(frozen=True)
class ArtefactFolder:
    """Where an artefact lies: `root/KIND/KEY`."""

    root: Path
    kind: str
    key: str

    @property
    def path(self) -> Path:
        """The folder."""
        return self.root / self.kind / self.key

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"artefacts/{self.kind}/{self.key}"

    def fault(self) -> str:
        """Why it is no artefact that was written here, in words; empty where it is one."""
        if any(each.is_symlink() for each in (self.root, self.path.parent, self.path)):
            return "it is a link, or lies behind one"
        if not self.path.is_dir() or only(self.path, {MANIFEST, DATA, BEATS}) is None:
            return f"it holds other things than {MANIFEST} and {DATA}"
        try:
            if (self.path / MANIFEST).stat().st_size > MOST_RECORD or (self.path / DATA).stat().st_size > MOST_TENSORS:
                return "it is larger than any artefact"
            if (told := store.problem(self.path)) is not None:
                return told
            with safe_open(self.path / DATA, framework="pt"):
                return ""
        except (SafetensorError, OSError) as error:
            return f"its tensors cannot be read as safetensors, and nothing else is read: {type(error).__name__}"

    def manifest(self) -> bytes:
        """Its manifest, as it was written."""
        return (self.path / MANIFEST).read_bytes()

    def put_into(self, results: Results) -> bool:
        """Bring it into a results folder; False where it was there, intact. `fault` found none."""
        inputs = inputs_of(self.manifest())
        if results.store.has(self.kind, inputs) and store.problem(results.store.root / self.kind / self.key) is None:
            return False
        results.store.ensure(self.kind, inputs, lambda: self._read(inputs))
        return True

    def _read(self, inputs: Inputs) -> Artefact:
        return Store(self.root).ensure(self.kind, inputs, self._gone)

    def _gone(self) -> NoReturn:
        raise OSError(f"{self.name} changed while it was read")


def inputs_of(manifest: bytes) -> Inputs:
    """What an artefact was made from. Raises AlteredError where it is no manifest."""
    inputs = signed_json.read(manifest, store.KIND).get("inputs")
    if not isinstance(inputs, dict):
        raise AlteredError("its manifest must hold inputs")
    return inputs


def tensors_of(manifest: bytes) -> str:
    """The SHA-256 of an artefact's tensors. Raises AlteredError where it is no manifest."""
    sha256 = signed_json.read(manifest, store.KIND).get("sha256")
    if not isinstance(sha256, str) or len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise AlteredError("its manifest must hold the hash of its tensors")
    return sha256


def artefacts(root: Path) -> Iterator[ArtefactFolder]:
    """Every artefact below the folder of a store that is of a kind that is carried."""
    for kind in KINDS:
        place = root / kind
        if place.is_dir():
            for path in sorted(place.iterdir()):
                if len(path.name) == 32 and set(path.name) <= set("0123456789abcdef"):
                    yield ArtefactFolder(root, kind, path.name)
