"""A bundle: records with what belongs to them, in one file to hand in.

A zip file of plain JSON, text, PNG and safetensors (`bench.results.archive`):
- `manifest.json`: every other file with its hash, under one digest and, where its author signed, one signature.
- `cells/...`: records, pictures and evidence, as in a results folder.
- `environment.json`: the machine and its versions; `requirements.lock`: every package at the version that was there.
- `run-secret`: what the keys of the records were derived from, where its author discloses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from bench.randomness import SECRET_BYTES, Secret
from bench.results import attested
from bench.results.archive import ArchiveError, read_archive, write_archive
from bench.results.attested import AlteredError
from bench.results.part import Part
from bench.results.results import Results
from bench.results.run_secret import of_hex
from bench.results.signing_key import SigningKey
from bench.wire.text import line, plain

KIND = "bundle"
MANIFEST, ENVIRONMENT, LOCK, SECRET = "manifest.json", "environment.json", "requirements.lock", "run-secret"
PARTS = frozenset({ENVIRONMENT, LOCK, SECRET})
MOST_BYTES = 1 << 30
ENDING = ".bundle.zip"


class BundleError(Exception):
    """A file that is no bundle, or not as it was packed; the text names it and says why."""


class Manifest(Part):
    """What a bundle holds.

    Args:
        made_by: The program and its version.
        files: SHA-256 of every other file, by name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    made_by: str
    files: dict[str, str]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle that is what was packed, file by file.

    Args:
        path: Where it lies.
        sha256: Of the whole file.
        signer: The public key that signed its manifest; None where nobody did.
        files: All but the manifest, by name.
    """

    path: Path
    sha256: str
    signer: str | None
    files: Mapping[str, bytes]

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Read a bundle whole; nothing of it is written anywhere.

        Raises:
            BundleError: It is none that is safe to read, or not as it was packed.
        """
        if path.is_dir():
            raise BundleError(f"{path}: expected a bundle, got a folder; `bench verify --results` reads one of results")
        if not path.is_file():
            raise BundleError(f"{path}: expected a bundle, and there is no such file; `bench submit` packs one")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise BundleError(f"{path}: expected a bundle of at most {MOST_BYTES} bytes, got {size}")
        content = path.read_bytes()
        try:
            files = read_archive(content)
            manifest, signer = _manifest(files)
        except (ArchiveError, AlteredError) as error:
            raise BundleError(f"{path}: {plain(str(error))}") from error
        held = {name: each for name, each in files.items() if name != MANIFEST}
        if apart := sorted(held.keys() ^ manifest.files.keys()):
            raise BundleError(
                f"{path}: its manifest and its files differ in {', '.join(line(name, 80) for name in apart[:3])}"
            )
        for name, each in held.items():
            if hashlib.sha256(each).hexdigest() != manifest.files[name]:
                raise BundleError(f"{path}: {name} was altered since it was packed")
            if not name.startswith("cells/") and name not in PARTS:
                raise BundleError(f"{path}: {name} is nothing that belongs into a bundle")
        return cls(path, hashlib.sha256(content).hexdigest(), signer, held)

    @property
    def results(self) -> Results:
        """Its records, pictures and evidence, to be read as those of a results folder are."""
        return Results(Path(self.path.name), _Inside(self.files))

    @property
    def secret(self) -> Secret | None:
        """The run secret that its author disclosed. Raises BundleError where the file holds none."""
        if (text := self.files.get(SECRET)) is None:
            return None
        content = of_hex(text)
        if len(content) != SECRET_BYTES:
            raise BundleError(f"{self.path}: {SECRET} must hold {2 * SECRET_BYTES} hex digits")
        return Secret(content)


def _manifest(files: Mapping[str, bytes]) -> tuple[Manifest, str | None]:
    if MANIFEST not in files:
        raise AlteredError(f"it has no {MANIFEST}: it is no bundle")
    signature = attested.parsed(files[MANIFEST]).get(attested.SIGNATURE)
    try:
        found = Manifest.model_validate(attested.read(files[MANIFEST], KIND))
    except ValidationError as error:
        raise AlteredError(f"{MANIFEST}: {error.errors()[0]['msg']}") from error
    return found, str(signature["public_key"]) if isinstance(signature, dict) else None


def pack(path: Path, files: Mapping[str, bytes], made_by: str, signer: SigningKey | None) -> None:
    """Write a bundle: the same bytes for the same files and signer.

    Args:
        path: Of the new file.
        files: By name, `PARTS` and what lies below `cells/`.
        made_by: The program and its version.
        signer: Signs the manifest, and with it every file.
    """
    manifest = Manifest(made_by=made_by, files={name: hashlib.sha256(each).hexdigest() for name, each in files.items()})
    content: dict[str, JsonValue] = attested.attest(manifest.model_dump(mode="json", by_alias=True), KIND, signer)
    write_archive(path, {**files, MANIFEST: attested.written(content)})


@dataclass(frozen=True)
class _Inside:
    """The shelf of a bundle: it is read, and never written."""

    files: Mapping[str, bytes]

    def read(self, name: str) -> bytes:
        """As in `Shelf`."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def write(self, name: str, content: bytes, still: Callable[[], bool] = lambda: True) -> bool:
        """A bundle stays as it was packed."""
        raise BundleError(f"{name} cannot be written: a bundle stays as it was packed")

    def write_once(self, name: str, content: bytes) -> bool:
        """A bundle stays as it was packed."""
        raise BundleError(f"{name} cannot be written: a bundle stays as it was packed")

    def holds(self, name: str) -> bool:
        """As in `Shelf`."""
        return name in self.files

    def remove(self, name: str) -> None:
        """A bundle stays as it was packed."""
        raise BundleError(f"{name} cannot be removed: a bundle stays as it was packed")

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Shelf`."""
        depth = pattern.count("/")
        for name in sorted(self.files):
            if name.count("/") == depth and PurePosixPath(name).match(pattern):
                yield name
