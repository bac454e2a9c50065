"""What results folders hold for the pages: the accepted records with their pictures, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from bench.results.records import Record, RecordError
from bench.results.results import Results
from bench.results.verdict import Verdict
from leaderboard.board import Row, rows
from leaderboard.columns import columns
from leaderboard.tiers import Tier, tier_of

Why = Literal["altered", "limited", "superseded", "unfit"]


@dataclass(frozen=True)
class Refusal:
    """A file or a cell that stands on no board.

    Args:
        name: Of the file, or of the cell, without the folder.
        why: In a word: it is not what was written, it was made with --limit, another source holds the same row,
            or it may not be shown.
        reason: In full, without a path.
    """

    name: str
    why: Why
    reason: str


@dataclass(frozen=True)
class Intake:
    """What results folders held.

    Args:
        records: The accepted ones.
        folders: Cell to data-set name.
        refused: What was left out, and why.
        pictures: PNG files beside records of data that may be shared, by cell, record and name.
        verdicts: What verifiers whom the board trusts found of records.
        origins: From which of the sources a cell is, by number; the first where nothing is said.
    """

    records: tuple[Record, ...]
    folders: Mapping[str, str]
    refused: tuple[Refusal, ...] = ()
    pictures: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    origins: Mapping[str, int] = field(default_factory=dict)

    @property
    def limited(self) -> int:
        """How many records were made with --limit."""
        return sum(refusal.why == "limited" for refusal in self.refused)

    @property
    def broken(self) -> tuple[str, ...]:
        """The files that are refused: no records, altered, forged, or not signed as they should be."""
        return tuple(refusal.name for refusal in self.refused if refusal.why == "altered")

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One a cell, by data set and method.

        Attacks on the rows of a source are held against controls of that source: what a stranger says of reference
        methods certifies nobody else's attack.
        """
        by_source: dict[int, list[Record]] = {}
        for record in self.records:
            by_source.setdefault(self.origins.get(record.cell, 0), []).append(record)
        shown = columns(self.records)
        found = [row for mine in by_source.values() for row in rows(mine, self.folders, shown=shown)]
        return tuple(
            sorted(found, key=lambda row: (row.dataset, row.method, row.label, row.preset, row.seed, row.cell))
        )

    def tier(self, row: Row) -> Tier:
        """Of a row: of the record that was checked least."""
        return min(tier_of(record, self.verdicts) for record in row.records)

    def of(self, records: tuple[Record, ...]) -> Intake:
        """The same with some of the records only, and their pictures."""
        cells = {record.cell for record in records}
        pictures = {place: png for place, png in self.pictures.items() if place[0] in cells}
        return replace(self, records=records, pictures=pictures)


def intake(*sources: Results, verdicts: tuple[Verdict, ...] = ()) -> Intake:
    """Read every record of the sources; what is refused is named (never by folder).

    A cell that several sources hold is taken whole from one of them: from the one that was checked furthest, of equals
    from the first source, else from the newest. Records of two runs never stand in one row.
    """
    refused: list[Refusal] = []
    held: dict[str, dict[int, list[Record]]] = {}
    for number, source in enumerate(sources):
        mine: dict[str, list[Record]] = {}
        for name, found in source.records():
            if not isinstance(found, Record):
                refused.append(Refusal(name.rpartition("/")[2], "altered", source.bare(name, found)))
            elif found.limit is not None:
                refused.append(Refusal(name, "limited", f"made with --limit {found.limit}"))
            else:
                mine.setdefault(found.cell, []).append(found)
        for cell, records in mine.items():
            held.setdefault(cell, {})[number] = records
    accepted, pictures, origins = list[Record](), dict[tuple[str, str, str], bytes](), dict[str, int]()
    for cell, candidates in held.items():
        chosen = max(candidates, key=lambda number: (*_standing(number, candidates[number], verdicts), -number))
        accepted += candidates[chosen]
        origins[cell] = chosen
        for number, others in candidates.items():
            if number != chosen:
                reason = f"{len(others)} records of a cell that another source holds, checked no further than it"
                refused.append(Refusal(f"cells/{cell}", "superseded", reason))
        for record in candidates[chosen]:
            shown, lost = _pictures(sources[chosen], record)
            pictures |= shown
            refused += lost
    folders = {record.cell: record.cell.partition("/")[0] for record in accepted}
    refused.sort(key=lambda refusal: (refusal.name, refusal.reason))
    return Intake(tuple(accepted), folders, tuple(refused), pictures, verdicts, origins)


def _standing(number: int, records: list[Record], verdicts: tuple[Verdict, ...]) -> tuple[Tier, bool, str]:
    tier = min(tier_of(record, verdicts) for record in records)
    return tier, number == 0, max(record.created for record in records)


def _pictures(source: Results, record: Record) -> tuple[dict[tuple[str, str, str], bytes], list[Refusal]]:
    """The pictures of a record of data that may be shared, and those that were altered."""
    found, lost = {}, []
    if record.dataset is not None and record.dataset.shareable:
        for name in record.pictures:
            try:
                png = source.picture(record, name)
            except RecordError:
                lost.append(
                    Refusal(f"{record.evaluator}--{name}.png", "altered", "it is not the picture of its record")
                )
                continue
            if png is not None:
                found[record.cell, record.evaluator, name] = png
    return found, lost
