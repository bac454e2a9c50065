"""The journal of a results folder: plans and opened data.

Content that is not as it was written is refused by name.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import JsonValue, ValidationError

from bench.disk.atomic_file import PRIVATE, Storage
from bench.results import signed_json
from bench.results.records import DatasetRecord, RecordError
from bench.results.signed_json import AlteredError

PLANS = f"{PRIVATE}plans/"
DATA = "data/"


class AlteredWarning(UserWarning):
    """A file beside the records was altered; it is ignored or rewritten."""


@dataclass(frozen=True)
class Journal:
    """The notes of a results folder, whose `root` errors name."""

    root: Path
    storage: Storage

    def keep_plan(self, cell: str, text: str, before: str | None) -> bool:
        """Note a cell's plan, which may hold paths, in place of `before`.

        False if another run has noted something else since then.
        """
        if text == before:
            return True
        name, content = f"{PLANS}{cell}.yaml", signed_json.stamped(text, f"plan {cell}")
        if before is None and not self.storage.holds(name):
            return self.storage.write_once(name, content)
        return self.storage.write(name, content, still=lambda: self._noted(cell) == before)

    def _noted(self, cell: str) -> str | None:
        """The note of a cell, if readable."""
        with contextlib.suppress(RecordError):
            return self.plan(cell)
        return None

    def plan(self, cell: str) -> str | None:
        """The note of a cell, or None. Raises RecordError if altered."""
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
        """Keep the record of opened data, for plans that open none."""
        self._keep_json(f"{DATA}{key}.json", data.model_dump(mode="json"))

    def data(self, key: str) -> DatasetRecord | None:
        """The data when last opened; None if unknown or altered."""
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

    def problems(self) -> Iterator[tuple[str, str]]:
        """Every altered plan and data record, with the reason."""
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
