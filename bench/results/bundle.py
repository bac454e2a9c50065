"""A bundle: records and their files, in one file to submit.

A zip file of plain JSON, text, PNG and safetensors, read without unpacking it: no name in it chooses a place to write.
- `manifest.json`: every other file with its hash, under one digest and, if its author signed, one signature.
- `cells/...`: records, pictures and evidence, as in a results folder.
- `environment.json`: the machine and its versions; `requirements.lock`: every package with its version.
- `cell-secrets.json`: the secret of each cell, if its author discloses them. Bundles of earlier versions hold the run
  secret of all of them, `run-secret`.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from bench.disk.atomic_file import write_atomically
from bench.randomness import SECRET_BYTES, Secret
from bench.results import cell_secrets, signed_json
from bench.results.record_parts import Part
from bench.results.results import Results
from bench.results.run_secret import of_hex
from bench.results.signed_json import AlteredError
from bench.results.signing_key import SigningKey
from bench.wire.text import line, plain

PART = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}"
NAME = re.compile(rf"{PART}(/{PART}){{0,3}}")
"""Allowed names of files within: none leads out of a folder, none is hidden."""
MOST_FILES = 20_000
MOST_FILE = 64 * 2**20
MOST_TOTAL = 1 << 30
END, MOST_COMMENT = struct.Struct("<4s4H2LH"), 0xFFFF
LONGER, LONGER_SIZE = b"PK\x06\x07", 20
"""Stands before the end if a longer list (ZIP64) is elsewhere."""
MOST_ENTRY = 46 + 4 * 201
"""Bytes of one entry in the list of files, with its name."""
LEVEL = 6
WRITTEN = (1980, 1, 1, 0, 0, 0)  # the earliest time that the format knows


class ArchiveError(Exception):
    """An archive is unsafe to read; the text names no local path."""


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a zip file in one step. Raises ValueError."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name in sorted(files):
            if NAME.fullmatch(name) is None or len(files[name]) > MOST_FILE:
                raise ValueError(
                    f"{name!r:.80} cannot be packed: its name or its {len(files[name])} bytes are too much"
                )
            info = zipfile.ZipInfo(name, WRITTEN)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, files[name], compresslevel=LEVEL)
    write_atomically(path, packed.getvalue())


def read_archive(content: bytes) -> dict[str, bytes]:
    """The files in a zip file, by name.

    Raises:
        ArchiveError: It is no zip file; or it holds a link, a folder, an encrypted file, a name twice or one that leads
            elsewhere, more files or bytes than a bundle has, or other bytes than it says.
    """
    _check_end(content)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            infos = archive.infolist()
            _check(infos)
            _check_places(content, infos, archive.start_dir)
            return {info.filename: _read(archive, info) for info in infos}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise ArchiveError(f"it is no zip file that can be read: {type(error).__name__}") from error


def _check_end(content: bytes) -> None:
    """Check a zip file's end first: readers load its whole list."""
    start = content.rfind(b"PK\x05\x06", max(0, len(content) - END.size - MOST_COMMENT))
    if start < 0 or len(content) - start < END.size:
        raise ArchiveError("it is no zip file")
    count, size, offset, comment = END.unpack_from(content, start)[4:8]
    # 65,535 stands for a longer number elsewhere, and readers go by the bytes of the list, not by the count.
    if count > MOST_FILES or size > MOST_FILES * MOST_ENTRY or LONGER in content[max(0, start - LONGER_SIZE) : start]:
        raise ArchiveError(f"it holds more than {MOST_FILES} files")
    if offset + size != start or comment or start + END.size != len(content):
        raise ArchiveError("it holds bytes before or after its files")


def _check(infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MOST_FILES:
        raise ArchiveError(f"it holds more than {MOST_FILES} files")
    seen: set[str] = set()
    for info in infos:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        if NAME.fullmatch(name) is None or name != info.orig_filename:
            raise ArchiveError(f"it holds a name that no bundle has: {info.orig_filename[:80]!a}")
        if kind not in (0, stat.S_IFREG):
            raise ArchiveError(f"{name} is a link, a folder or a device")
        if info.flag_bits & 1:
            raise ArchiveError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{name} is packed in a way that no bundle is")
        if name.lower() in seen:
            raise ArchiveError(f"{name} is there twice")
        seen.add(name.lower())
        if info.file_size > MOST_FILE:
            raise ArchiveError(f"{name} says that it takes {info.file_size} bytes, and at most {MOST_FILE} may be")
    if (total := sum(info.file_size for info in infos)) > MOST_TOTAL:
        raise ArchiveError(f"its files say that they take {total} bytes, and at most {MOST_TOTAL} may be")


def _check_places(content: bytes, infos: list[zipfile.ZipInfo], end: int) -> None:
    """Check that the files lie one after another, and nothing beside them."""
    place = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset != place or content[place : place + 4] != b"PK\x03\x04":
            raise ArchiveError("it holds bytes between its files")
        if info.flag_bits & 8 or info.extra or info.comment:
            raise ArchiveError(f"{info.filename} carries more than a bundle writes")
        name, extra = struct.unpack_from("<2H", content, place + 26)
        if extra:
            raise ArchiveError(f"{info.filename} carries more than a bundle writes")
        place += 30 + name + info.compress_size
    if place != end:
        raise ArchiveError("it holds bytes between its files")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        content = file.read(info.file_size + 1)  # never more, whatever unfolds
    if len(content) != info.file_size:
        raise ArchiveError(f"{info.filename} takes other than the {info.file_size} bytes that it says")
    return content


KIND = "bundle"
MANIFEST, ENVIRONMENT, LOCK, SECRET = "manifest.json", "environment.json", "requirements.lock", "run-secret"
SECRETS, DRAW = "cell-secrets.json", "draw.json"
PARTS = frozenset({ENVIRONMENT, LOCK, SECRET, SECRETS, DRAW})
MOST_BYTES = 1 << 30
ENDING = ".bundle.zip"


class BundleError(Exception):
    """A file is no bundle, or was altered; the text says why."""


class Manifest(Part):
    """A bundle's program, and the SHA-256 of every other file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    made_by: str
    files: dict[str, str]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle, checked file by file to be as it was packed.

    `sha256` is that of the whole file; `signer` the public key that signed its manifest, None if unsigned; `files` are
    all but the manifest.
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
            raise BundleError(
                f"{path}: expected a bundle, got a folder; `bench leaderboard verify --results` reads one of results"
            )
        if not path.is_file():
            raise BundleError(
                f"{path}: expected a bundle, and there is no such file; `bench leaderboard submit` packs one"
            )
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
        """Its records, pictures and evidence, read as a results folder."""
        return Results(Path(self.path.name), _Inside(self.files))

    @property
    def secrets(self) -> dict[str, Secret]:
        """The secrets of cells that its author disclosed, by cell. Raises BundleError."""
        if (content := self.files.get(SECRETS)) is None:
            return {}
        try:
            return cell_secrets.loads(content)
        except AlteredError as error:
            raise BundleError(f"{self.path}: {SECRETS}: {error}") from error

    @property
    def secret(self) -> Secret | None:
        """The run secret in a bundle of earlier versions. Raises BundleError."""
        if (text := self.files.get(SECRET)) is None:
            return None
        content = of_hex(text)
        if len(content) != SECRET_BYTES:
            raise BundleError(f"{self.path}: {SECRET} must hold {2 * SECRET_BYTES} hex digits")
        return Secret(content)


def _manifest(files: Mapping[str, bytes]) -> tuple[Manifest, str | None]:
    if MANIFEST not in files:
        raise AlteredError(f"it has no {MANIFEST}: it is no bundle")
    try:
        found = Manifest.model_validate(signed_json.read(files[MANIFEST], KIND))
    except ValidationError as error:
        raise AlteredError(f"{MANIFEST}: {error.errors()[0]['msg']}") from error
    return found, signed_json.signer(files[MANIFEST])


def pack(path: Path, files: Mapping[str, bytes], made_by: str, signer: SigningKey | None) -> None:
    """Write a bundle: the same bytes for the same files and signer."""
    manifest = Manifest(made_by=made_by, files={name: hashlib.sha256(each).hexdigest() for name, each in files.items()})
    content: dict[str, JsonValue] = signed_json.attest(manifest.model_dump(mode="json", by_alias=True), KIND, signer)
    write_archive(path, {**files, MANIFEST: signed_json.written(content)})


@dataclass(frozen=True)
class _Inside:
    """The storage of a bundle: it is read, and never written."""

    files: Mapping[str, bytes]

    def read(self, name: str) -> bytes:
        """As in `Storage`."""
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
        """As in `Storage`."""
        return name in self.files

    def remove(self, name: str) -> None:
        """A bundle stays as it was packed."""
        raise BundleError(f"{name} cannot be removed: a bundle stays as it was packed")

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Storage`."""
        depth = pattern.count("/")
        for name in sorted(self.files):
            if name.count("/") == depth and PurePosixPath(name).match(pattern):
                yield name
