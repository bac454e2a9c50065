"""Everything that a run leaves behind, in one place: records, pictures, plans, opened data, verdicts, artefacts, logs.

Where a thing lies is known here alone. `Shelf` is what keeps it: a folder, and in a file of its own any other place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from bench.plugins.slug import slug
from bench.results.records import DatasetRecord, Record, RecordError, dumps, loads
from bench.results.store import Store, write_atomically

PRIVATE = "artefacts/"  # what may hold paths or private rows, for the owner's eyes alone
PLANS = f"{PRIVATE}plans/"


class Shelf(Protocol):
    """Keeps content by name; a name is a relative path with slashes."""

    def read(self, name: str) -> bytes:
        """The content. Raises FileNotFoundError."""

    def write(self, name: str, content: bytes) -> None:
        """Put content there in one step: a reader, or a crash, sees the old content or the new."""

    def remove(self, name: str) -> None:
        """Remove it, if it is there."""

    def names(self, pattern: str) -> Iterator[str]:
        """The names that match a pattern such as `cells/*/*/*.json`, in order."""


@dataclass(frozen=True)
class Folder:
    """A shelf on this machine."""

    root: Path

    def read(self, name: str) -> bytes:
        """As in `Shelf`."""
        return self._path(name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """As in `Shelf`."""
        if name.startswith(PRIVATE):
            (self.root / PRIVATE).mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self._path(name), content)

    def remove(self, name: str) -> None:
        """As in `Shelf`."""
        self._path(name).unlink(missing_ok=True)

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Shelf`."""
        return (path.relative_to(self.root).as_posix() for path in sorted(self.root.glob(pattern)))

    def _path(self, name: str) -> Path:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"a name must lie inside the results folder, got {name!r}")
        return self.root / name


@dataclass(frozen=True)
class Results:
    """A results folder.

    Args:
        root: On this machine: artefacts and logs always lie here.
        shelf: Keeps everything else; None stands for the same folder.
    """

    root: Path
    shelf: Shelf | None = None

    @cached_property
    def _kept(self) -> Shelf:
        return self.shelf or Folder(self.root)

    @property
    def store(self) -> Store:
        """Fitted schemes, releases and detectors, by content."""
        return Store(self.root / PRIVATE)

    def log(self, *names: str) -> Path:
        """The file that takes what a worker prints: of a cell (its folder and a record's name), or of anything else."""
        *folders, name = names
        return Path(self.root, "cells" if folders else "logs", *folders, f"{slug(name)}.log")

    def records(self) -> Iterator[tuple[str, Record | RecordError]]:
        """Every record with its name, in order; a broken file gives its error instead of stopping the rest."""
        for name in self._kept.names("cells/*/*/*.json"):
            try:
                yield name, self._record(name)
            except RecordError as error:
                yield name, error
            except OSError as error:
                yield name, RecordError(f"{name}: {error}")

    def record(self, cell: str, evaluator: str) -> Record:
        """One record. Raises FileNotFoundError where there is none, RecordError where it cannot be read."""
        return self._record(f"cells/{cell}/{evaluator}.json")

    def _record(self, name: str) -> Record:
        try:
            return loads(self._kept.read(name).decode(), str(self.root / name))
        except UnicodeDecodeError as error:
            raise RecordError(f"{self.root / name}: {error}") from error

    def keep(self, record: Record, pictures: dict[str, bytes]) -> None:
        """Write a record, and the pictures that it names beside it; earlier ones go."""
        stem = f"cells/{record.cell}/{record.evaluator}"
        for old in self._kept.names(f"{stem}--*.png"):
            self._kept.remove(old)
        for name, png in pictures.items():
            self._kept.write(f"{stem}--{name}.png", png)
        self._kept.write(f"{stem}.json", dumps(record).encode())

    def picture(self, record: Record, name: str) -> bytes | None:
        """A picture of a record; None where it is gone."""
        try:
            return self._kept.read(f"cells/{record.cell}/{record.evaluator}--{name}.png")
        except FileNotFoundError:
            return None

    def keep_plan(self, cell: str, text: str) -> None:
        """Note what a cell consists of; paths may be in it."""
        if self.plan(cell) != text:
            self._kept.write(f"{PLANS}{cell}.yaml", text.encode())

    def plan(self, cell: str) -> str | None:
        """What was noted of a cell; None where nothing was."""
        try:
            return self._kept.read(f"{PLANS}{cell}.yaml").decode()
        except FileNotFoundError:
            return None

    def plans(self) -> Iterator[str]:
        """The folders of the cells that were planned."""
        for name in self._kept.names(f"{PLANS}*/*.yaml"):
            yield name.removeprefix(PLANS).removesuffix(".yaml")

    def keep_data(self, key: str, data: DatasetRecord) -> None:
        """Keep what a choice of data came to, so that a dry run knows it without opening the data."""
        self._kept.write(f"data/{key}.json", data.model_dump_json().encode())

    def data(self, key: str) -> DatasetRecord | None:
        """What a choice of data came to when it was last opened, or None."""
        try:
            return DatasetRecord.model_validate_json(self._kept.read(f"data/{key}.json"))
        except (OSError, ValidationError):
            return None

    def keep_panel(self, cell: str, text: str) -> None:
        """Keep the verdict on the attacks of a cell."""
        self._kept.write(f"panels/{cell}.json", text.encode())
