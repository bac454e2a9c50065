"""What runs note beside their records: what was planned, what the data came to, what was judged of attacks.

What is read is what was written, or is refused by name.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import JsonValue, ValidationError

from bench.results import signed_json
from bench.results.records import DatasetRecord, RecordError
from bench.results.signed_json import AlteredError
from bench.results.storage import PRIVATE, Storage

PLANS = f"{PRIVATE}plans/"
DATA, PANELS = "data/", "panels/"


class AlteredWarning(UserWarning):
    """Something beside the records is not what was written; it is done without, or made again."""


@dataclass(frozen=True)
class Journal:
    """The notes of a results folder.

    Args:
        root: The folder, as errors name it.
        storage: Keeps them.
    """

    root: Path
    storage: Storage

    def keep_plan(self, cell: str, text: str, before: str | None) -> bool:
        """Note what a cell consists of; paths may be in it.

        Args:
            cell: Its folder.
            text: The note.
            before: What was noted when the note was made, which it replaces.

        Returns:
            Whether it was noted; False where another run has noted something else since then.
        """
        if text == before:
            return True
        name, content = f"{PLANS}{cell}.yaml", signed_json.stamped(text, f"plan {cell}")
        if before is None and not self.storage.holds(name):
            return self.storage.write_once(name, content)
        return self.storage.write(name, content, still=lambda: self._noted(cell) == before)

    def _noted(self, cell: str) -> str | None:
        """What was noted of a cell, if it can be read."""
        with contextlib.suppress(RecordError):
            return self.plan(cell)
        return None

    def plan(self, cell: str) -> str | None:
        """What was noted of a cell; None where nothing was. Raises RecordError where it was altered."""
        try:
            return signed_json.unstamped(self.storage.read(f"{PLANS}{cell}.yaml"), f"plan {cell}")
        except FileNotFoundError:
            return None
        except (AlteredError, UnicodeDecodeError) as error:
            raise RecordError(f"{self.root / PLANS / cell}.yaml: {error}") from error

    def plans(self) -> Iterator[str]:
        """The folders of the cells that were planned."""
        return self._below(PLANS, "*/*", "yaml")

    def keep_data(self, key: str, data: DatasetRecord) -> None:
        """Keep what a choice of data came to, so that a dry run knows it without opening the data."""
        self._keep_json(f"{DATA}{key}.json", data.model_dump(mode="json"))

    def data(self, key: str) -> DatasetRecord | None:
        """What a choice of data came to when it was last opened, or None; of a file that was altered with a warning."""
        try:
            return DatasetRecord.model_validate(self._read_json(f"{DATA}{key}.json"))
        except (FileNotFoundError, ValidationError):  # never opened, or by an earlier version
            return None
        except (OSError, RecordError) as error:
            warnings.warn(f"{error}; the data are opened again", AlteredWarning, stacklevel=2)
            return None

    def data_keys(self) -> Iterator[str]:
        """The choices of data that were opened, as `data` takes them."""
        return self._below(DATA, "*", "json")

    def keep_panel(self, cell: str, text: str) -> None:
        """Keep the verdict on the attacks of a cell: a JSON object."""
        self._keep_json(f"{PANELS}{cell}.json", signed_json.parsed(text.encode()))

    def panel(self, cell: str) -> dict[str, JsonValue]:
        """The verdict on the attacks of a cell. Raises FileNotFoundError, or RecordError where it was altered."""
        return self._read_json(f"{PANELS}{cell}.json")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Every plan, choice of data and verdict that is not what was written, and why."""
        for cell in self.plans():
            try:
                self.plan(cell)
            except (RecordError, OSError) as error:
                yield f"{PLANS}{cell}.yaml", str(error)
        for key in self.data_keys():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", AlteredWarning)
                self.data(key)
            yield from ((f"{DATA}{key}.json", str(warning.message)) for warning in said)
        for cell in self._below(PANELS, "*/*", "json"):
            try:
                self.panel(cell)
            except (RecordError, OSError) as error:
                yield f"{PANELS}{cell}.json", str(error)

    def _below(self, folder: str, pattern: str, ending: str) -> Iterator[str]:
        for name in self.storage.names(f"{folder}{pattern}.{ending}"):
            yield PurePosixPath(name).relative_to(folder).with_suffix("").as_posix()

    def _keep_json(self, name: str, content: dict[str, JsonValue]) -> None:
        self.storage.write(name, signed_json.written(signed_json.attest(content, name)))

    def _read_json(self, name: str) -> dict[str, JsonValue]:
        try:
            return signed_json.read(self.storage.read(name), name)
        except AlteredError as error:
            raise RecordError(f"{self.root / name}: {error}") from error
