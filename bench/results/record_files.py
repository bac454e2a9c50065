"""A record with the files beside it, kept so that two runs at once neither lose a record nor mix two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench.results.records import NewerRecordError, Record, RecordError, Status, dumps
from bench.results.shelf import Shelf
from bench.sandbox import FROM_WEAKEST

SETTLED: frozenset[Status] = frozenset({"ok", "not-applicable"})
"""What a record says that no second try would change."""
ANY = "any"


@dataclass(frozen=True)
class RecordFiles:
    """Where records lie, and how one is read by its name, which raises as `bench.results.records.loads` does."""

    shelf: Shelf
    read: Callable[[str], Record]

    def keep(self, kept: Record, beside: Mapping[str, bytes], before: str | None) -> Record:
        """As `bench.results.results.Results.keep`, for a record with its digest and the files that it names."""
        name, content = f"{stem(kept)}.json", dumps(kept).encode()
        earlier = {*self._beside(kept), *beside}
        while (faster := self._faster(kept, before)) is None:
            for each, part in beside.items():
                self.shelf.write(each, part)
            if not self.shelf.holds(name):
                if self.shelf.write_once(name, content):
                    break
            elif self.shelf.write(name, content, still=lambda: self._faster(kept, before) is None):
                break
        there = kept if faster is None else faster
        for each, part in beside.items():  # another run may have taken them for those of an earlier record
            if faster is None and not self.shelf.holds(each):
                self.shelf.write(each, part)
        for old in sorted(earlier - names_beside(there) - names_beside(self._found(name) or there)):
            self.shelf.remove(old)
        return there

    def _faster(self, record: Record, before: str | None) -> Record | None:
        """The same record, of another run that has kept it since this one began; a failed one is replaced."""
        found = self._found(f"{stem(record)}.json")
        if found is None or before in (ANY, found.digest) or found.key != record.key:
            return None
        as_apart = FROM_WEAKEST.index(found.isolation) >= FROM_WEAKEST.index(record.isolation)
        return found if as_apart and found.status in SETTLED else None

    def _found(self, name: str) -> Record | None:
        """The record of that name, if there is one that can be read. Raises NewerRecordError."""
        try:
            return self.read(name)
        except NewerRecordError:
            raise
        except (RecordError, OSError):  # what is there is no record that could be lost
            return None

    def _beside(self, record: Record) -> Iterator[str]:
        """The files that lie beside a record, whatever names them."""
        for ending in ("png", "safetensors"):
            yield from self.shelf.names(f"{stem(record)}--*.{ending}")


def stem(record: Record) -> str:
    """What the names of all files of a record begin with, in the results folder."""
    return f"cells/{record.cell}/{record.evaluator}"


def cell_and_evaluator(name: str) -> tuple[str, str]:
    """What a record's file speaks of by its name, `cells/DATA SET/CELL/EVALUATOR.json`."""
    cell, _, evaluator = name.removeprefix("cells/").removesuffix(".json").rpartition("/")
    return cell, evaluator


def picture_name(record: Record, name: str) -> str:
    """The file with a picture of a record, in the results folder."""
    return f"{stem(record)}--{name}-{record.pictures[name].sha256[:12]}.png"


def names_beside(record: Record) -> set[str]:
    """The files with the pictures and the evidence of a record, in the results folder."""
    found = {picture_name(record, name) for name in record.pictures}
    return found if record.evidence is None else found | {evidence_name(record)}


def evidence_name(record: Record) -> str:
    """The file with the evidence of a record that has any, in the results folder."""
    assert record.evidence is not None
    return f"{stem(record)}--evidence-{record.evidence.sha256[:12]}.safetensors"
