"""A record's file in a results folder, with what belongs to it, read without trusting the folder."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load

from bench.results.bundle import PART
from bench.results.records import Record, RecordError
from bench.results.results import Results, cell_and_evaluator, evidence_name, picture_name
from bench.transfer.content_name import MOST_BESIDE, MOST_RECORD

PNG = b"\x89PNG\r\n\x1a\n"
CELL, NAME = re.compile(rf"{PART}/{PART}"), re.compile(PART)
MOST_HEADER = 16 << 20


@dataclass(frozen=True)
class RecordFile:
    """A record's file, as `cells/DATA SET/CELL/EVALUATOR.json` below the results folder."""

    results: Results
    name: str

    def read(self) -> tuple[Record, dict[str, bytes]]:
        """The record, and the pictures and evidence beside it by their hash; evidence may be gone.

        Raises RecordError for a link, for what is too large or of another kind, and as `Results.record` does.
        """
        self._plain(self.name, MOST_RECORD)
        cell, evaluator = cell_and_evaluator(self.name)
        try:
            record = self.results.record(cell, evaluator)
            fit(record)
            beside: dict[str, bytes] = {}
            for name, picture in record.pictures.items():
                self._plain(picture_name(record, name), MOST_BESIDE)
                png = self.results.picture(record, name)
                beside[picture.sha256] = checked_picture(png or b"", name)
            if record.evidence is not None and (self.results.root / evidence_name(record)).exists():
                self._plain(evidence_name(record), MOST_BESIDE)
                found = self.results.evidence(record)
                beside[record.evidence.sha256] = checked_evidence(found or b"")
        except OSError as error:
            raise RecordError(f"{self.name}: {error}") from error
        except RecordError as error:
            raise RecordError(self.results.bare(self.name, error)) from error
        return record, beside

    def _plain(self, name: str, most: int) -> None:
        """Make sure that it is a plain file, behind no link, and of a size that such a file has."""
        path = self.results.root / name
        above = path
        while above != self.results.root:
            if above.is_symlink():
                raise RecordError(f"{name} is a link, or lies behind one")
            above = above.parent
        try:
            told = path.lstat()
        except FileNotFoundError as error:
            raise RecordError(f"{name} is gone") from error
        if not stat.S_ISREG(told.st_mode):
            raise RecordError(f"{name} is no file")
        if told.st_size > most:
            raise RecordError(f"{name} takes {told.st_size} bytes, and at most {most} may be")


def fit(record: Record) -> None:
    """Make sure that a record's own words make safe names. Raises RecordError."""
    if not (CELL.fullmatch(record.cell) and NAME.fullmatch(record.evaluator)):
        raise RecordError(f"it names a file that no record has: {record.cell!a:.60}, {record.evaluator!a:.60}")
    if odd := [name for name in record.pictures if NAME.fullmatch(name) is None]:
        raise RecordError(f"it names a picture that no record has: {odd[0]!a:.60}")


def picked(record: Record, beside: Mapping[str, bytes]) -> tuple[dict[str, bytes], bytes | None]:
    """Pictures by name, and the evidence, from content by its hash. Raises RecordError where a picture is missing."""
    pictures: dict[str, bytes] = {}
    for name, told in record.pictures.items():
        if told.sha256 not in beside:
            raise RecordError(f"its picture {name} is gone")
        pictures[name] = checked_picture(beside[told.sha256], name)
    evidence = None if record.evidence is None else beside.get(record.evidence.sha256)
    return pictures, None if evidence is None else checked_evidence(evidence)


def checked_picture(content: bytes, name: str) -> bytes:
    """A PNG file. Raises RecordError for anything else."""
    if not content.startswith(PNG):
        raise RecordError(f"its picture {name} is gone, or is no PNG")
    return content


def checked_evidence(content: bytes) -> bytes:
    """A safetensors file. Raises RecordError for anything else."""
    try:
        load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise RecordError("its evidence is no safetensors file, and nothing else is read") from error
    return content


def header(content: bytes | Path) -> str:
    """The header of a safetensors file, which names its tensors; of another file nothing."""
    if isinstance(content, bytes):
        size = int.from_bytes(content[:8], "little")
        return "" if content.startswith(PNG) else content[8 : 8 + min(size, MOST_HEADER)].decode(errors="replace")
    with content.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return file.read(min(size, MOST_HEADER)).decode(errors="replace")
