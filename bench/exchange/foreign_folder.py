"""Records and artefacts of a stranger's results folder, checked while read."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import truediv
from pathlib import Path
from typing import NoReturn

import safetensors.torch
from safetensors import SafetensorError, safe_open

from bench.disk.atomic_file import Folder
from bench.results import signed_json, store
from bench.results.bundle import PART
from bench.results.records import Record, RecordError
from bench.results.results import RECORDS, Results, cell_and_evaluator, evidence_name, picture_name
from bench.results.signed_json import AlteredError, Inputs
from bench.results.store import DATA, MANIFEST, Artefact, Store, only

KINDS = ("schemes", "detectors", "releases")
"""Kinds of artefacts that are exported and merged."""
MOST_RECORD = 16 << 20
MOST_BESIDE = 64 << 20
MOST_TENSORS = 64 << 30
"""Largest record or manifest, picture or evidence, and tensors of an artefact, in bytes."""
MOST_HEADER = 16 << 20
PNG = b"\x89PNG\r\n\x1a\n"
CELL, NAME, KEY = re.compile(rf"{PART}/{PART}"), re.compile(PART), re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Content:
    """A record with its pictures by name and its evidence, if present."""

    record: Record
    pictures: dict[str, bytes] = field(default_factory=dict)
    evidence: bytes | None = None


@dataclass(frozen=True)
class RecordFile:
    """The file `cells/DATA SET/CELL/EVALUATOR.json` of a results folder."""

    results: Results
    name: str

    def read(self) -> Content:
        """Read the record and the files that it names.

        Raises RecordError for a link, for a file of another kind or beyond its bound, and as `Results.record` does.
        """
        self._check_plain(self.name, MOST_RECORD)
        cell, evaluator = cell_and_evaluator(self.name)
        try:
            record = self.results.record(cell, evaluator)
            check_names(record)
            pictures = {name: self._picture(record, name) for name in record.pictures}
            evidence = None
            if record.evidence is not None and (self.results.root / evidence_name(record)).exists():
                self._check_plain(evidence_name(record), MOST_BESIDE)
                evidence = self.results.evidence(record) or b""
                _check_safetensors(evidence)
        except OSError as error:
            raise RecordError(f"{self.name}: {error}") from error
        except RecordError as error:
            raise RecordError(self.results.bare(self.name, error)) from error
        return Content(record, pictures, evidence)

    def _picture(self, record: Record, name: str) -> bytes:
        self._check_plain(picture_name(record, name), MOST_BESIDE)
        png = self.results.picture(record, name)
        if png is None or not png.startswith(PNG):
            raise RecordError(f"its picture {name} is gone, or is no PNG")
        return png

    def _check_plain(self, name: str, most: int) -> None:
        """Check that a file is plain, no link, and within its bound."""
        _, *paths = accumulate(Path(name).parts, truediv, initial=self.results.root)
        if any(path.is_symlink() for path in paths):
            raise RecordError(f"{name} is a link, or lies behind one")
        try:
            status = paths[-1].lstat()
        except FileNotFoundError as error:
            raise RecordError(f"{name} is gone") from error
        if not stat.S_ISREG(status.st_mode):
            raise RecordError(f"{name} is no file")
        if status.st_size > most:
            raise RecordError(f"{name} takes {status.st_size} bytes, and at most {most} may be")


@dataclass(frozen=True)
class ArtefactFolder:
    """The folder `root/KIND/KEY` of an artefact."""

    root: Path
    kind: str
    key: str

    @property
    def path(self) -> Path:
        """The folder."""
        return self.root / self.kind / self.key

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"artefacts/{self.kind}/{self.key}"

    def check(self) -> None:
        """Raise AlteredError unless it is an artefact of the store."""
        if any(folder.is_symlink() for folder in (self.root, self.path.parent, self.path)):
            raise AlteredError("it is a link, or lies behind one")
        if not self.path.is_dir() or only(self.path, {MANIFEST, DATA}) is None:
            raise AlteredError(f"it holds other things than {MANIFEST} and {DATA}")
        try:
            if (self.path / MANIFEST).stat().st_size > MOST_RECORD or (self.path / DATA).stat().st_size > MOST_TENSORS:
                raise AlteredError("it is larger than any artefact")
            if (reason := store.problem(self.path)) is not None:
                raise AlteredError(reason)
            with safe_open(self.path / DATA, framework="pt"):
                return
        except (SafetensorError, OSError) as error:
            raise AlteredError(f"its tensors cannot be read as safetensors ({type(error).__name__})") from error

    @property
    def inputs(self) -> Inputs:
        """The inputs that its manifest names. Raises AlteredError."""
        inputs = signed_json.read((self.path / MANIFEST).read_bytes(), store.KIND).get("inputs")
        if not isinstance(inputs, dict):
            raise AlteredError("its manifest must hold inputs")
        return inputs

    @property
    def text(self) -> str:
        """All text in it: its manifest, and the header of its tensors."""
        with (self.path / DATA).open("rb") as file:
            head = file.read(8 + MOST_HEADER)
        return (self.path / MANIFEST).read_text(encoding="utf-8", errors="replace") + header(head)

    def copy_into(self, results: Results) -> bool:
        """Copy it into a results folder; False if it is there, intact."""
        inputs = self.inputs
        if results.store.has(self.kind, inputs) and store.problem(results.store.root / self.kind / self.key) is None:
            return False
        results.store.ensure(self.kind, inputs, lambda: self._read(inputs))
        return True

    def _read(self, inputs: Inputs) -> Artefact:
        return Store(self.root).ensure(self.kind, inputs, self._changed)

    def _changed(self) -> NoReturn:
        raise OSError(f"{self.name} changed while it was read")


def record_files(results: Results) -> list[RecordFile]:
    """Every record file of a results folder, in order."""
    return [RecordFile(results, name) for name in Folder(results.root).names(RECORDS)]


def artefact_folders(results: Results) -> Iterator[ArtefactFolder]:
    """Every artefact of a results folder that is of one of `KINDS`."""
    root = results.store.root
    for kind in KINDS:
        if (root / kind).is_dir():
            for path in sorted((root / kind).iterdir()):
                if KEY.fullmatch(path.name):
                    yield ArtefactFolder(root, kind, path.name)


def check_names(record: Record) -> None:
    """Raise RecordError if names in a record are unsafe as file names."""
    if not (CELL.fullmatch(record.cell) and NAME.fullmatch(record.evaluator)):
        raise RecordError(f"it names a file that no record has: {record.cell!a:.60}, {record.evaluator!a:.60}")
    if odd := [name for name in record.pictures if NAME.fullmatch(name) is None]:
        raise RecordError(f"it names a picture that no record has: {odd[0]!a:.60}")


def header(content: bytes) -> str:
    """The header of a safetensors file, which holds all of its text."""
    return content[8 : 8 + min(int.from_bytes(content[:8], "little"), MOST_HEADER)].decode(errors="replace")


def _check_safetensors(content: bytes) -> None:
    try:
        safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise RecordError("its evidence is no safetensors file, and nothing else is read") from error
