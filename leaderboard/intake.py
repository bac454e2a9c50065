"""The records and pictures that a board accepts, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from bench.plugins.registry import HOME
from bench.results.records import Record, RecordError, dumps, is_no_past_time
from bench.results.results import Results
from bench.results.verdict import JudgedRow, Tier, Verdict, VerdictError, first_judged, judged_row, verdicts, verifiers
from bench.workbench.inputs import drawn_people
from leaderboard.board import OWN_PEOPLE, Row, rows
from leaderboard.entries import Column, columns
from leaderboard.reach import steps

ALL = ("all of it",)
"""The unverified parts of a row that no verifier has checked."""
Subject = str
"""A row but for its seed: a second bundle with it is a further try."""
Why = Literal["altered", "limited", "superseded", "unfit"]


@dataclass(frozen=True)
class Draws:
    """Draws that the board handed out, by number.

    Args:
        handed: Numbers by ("name", NAME, ORIGIN), ("code", DIGEST) or ("key", PUBLIC KEY), then data set and preset.
        keys: The public key that signed the commitment of a draw, by its number.
        answered: Numbers of those that a verified row answers.
    """

    handed: Mapping[tuple[str, ...], frozenset[int]] = field(default_factory=dict)
    keys: Mapping[int, str] = field(default_factory=dict)
    answered: frozenset[int] = frozenset()

    def like(self, record: Record, draw: int | None) -> frozenset[int]:
        """Draws for methods of a record's name, code or answered draw's author."""
        method, place = record.method, (str(record.choice["dataset"]), record.preset)
        names = [("name", method.name, method.origin, *place), ("code", method.code, *place)]
        names += [("key", self.keys[draw], *place)] if draw is not None and self.keys.get(draw) else []
        return frozenset(number for name in names for number in self.handed.get(name, ()))


NO_DRAWS = Draws()


@dataclass(frozen=True)
class Refusal:
    """A file or a cell that stands on no board.

    Args:
        name: Of the file or the cell, without the folder.
        why: "altered" after it was written, "limited" by --limit, "superseded" by the same row of another source, or
            "unfit" to be shown.
        reason: In full, without a path.
    """

    name: str
    why: Why
    reason: str


@dataclass(frozen=True)
class Intake:
    """The content of results folders.

    Args:
        records: The accepted ones.
        folders: Cell to data-set name.
        refused: Files and cells left out, and why.
        pictures: PNG files beside records of data that may be shared, by cell, record and name.
        origins: The source of a cell, by number; by default the first, the board's own.
        references: By source, all its records of reference methods, also of cells taken from another source.
        judged: Verdicts of verifiers whom the board trusts, by source and cell.
        tries: How often a row was handed in, by what it is but for its seed; withdrawn bundles count.
        draws: Draws that the board handed out.
        sources: The results folders, in order; empty if the records come from none.
    """

    records: tuple[Record, ...]
    folders: Mapping[str, str]
    refused: tuple[Refusal, ...] = ()
    pictures: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    references: Mapping[int, tuple[Record, ...]] = field(default_factory=dict)
    judged: Mapping[tuple[int, str], JudgedRow] = field(default_factory=dict)
    draws: Draws = NO_DRAWS
    tries: Mapping[Subject, int] = field(default_factory=dict)
    sources: Sequence[Results] = ()

    def text(self, record: Record) -> bytes:
        """The file of an accepted record, byte for byte."""
        return self.sources[self._source(record.cell)].text(record) if self.sources else dumps(record).encode()

    @property
    def limited(self) -> int:
        """Number of records made with --limit."""
        return sum(refusal.why == "limited" for refusal in self.refused)

    @property
    def broken(self) -> tuple[str, ...]:
        """Refused files: no records, altered, forged, or not signed as required."""
        return tuple(refusal.name for refusal in self.refused if refusal.why == "altered")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Every metric, as the board's own records describe it if they do."""
        own = [record for record in self.records if not self._source(record.cell)]
        return columns(own, [record for record in self.records if self._source(record.cell)])

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One a cell, by data set and method.

        Attacks need the board's own controls. Controls of a submission count only for rows of the same source that
        were checked no further than they were. Only the board's own records say how far attacks reach.
        """
        groups: dict[tuple[int, Tier], list[Record]] = {}
        for record in self.records:
            source = self._source(record.cell)
            groups.setdefault((source, self._tier(source, record.cell) if source else Tier.SEALED), []).append(record)
        own = groups.get((0, Tier.SEALED), [])
        ladder, certifying = steps(own), self.references.get(0, ())
        board = rows(own, self.folders, certifying, self.columns, ladder)
        for (source, tier), mine in groups.items():
            if source:
                controls = [one for one in self.references.get(source, ()) if self._tier(source, one.cell) >= tier]
                theirs = {str(one.digest) for one in controls if self._tier(source, one.cell) < Tier.RE_RUN}
                theirs -= {str(one.digest) for one in certifying}
                undated = {str(one.digest) for one in [*mine, *controls]} if tier < Tier.RE_RUN else theirs
                undated -= {str(one.digest) for one in certifying}
                submitted = rows(mine, self.folders, [*certifying, *controls], self.columns, ladder, theirs, undated)
                board += [self._handed_in(row, source, tier) for row in submitted]
        return tuple(
            sorted(board, key=lambda row: (row.dataset, row.method, row.label, row.preset, row.seed, row.cell))
        )

    def _handed_in(self, row: Row, source: int, tier: Tier) -> Row:
        judged = self.judged.get((source, row.cell))
        tiers = {record.evaluator: self._tier_of(judged, record).word for record in row.records}
        drawn = judged is not None and judged.draw is not None and tier >= Tier.RE_RUN
        known = drawn or tier == Tier.SEALED or row.looked_up or row.records[0].method.origin == HOME
        if not known and drawn_people(row.choice) is not None:
            row = replace(row, looked_up=OWN_PEOPLE)
        return replace(
            row, trusted=tier >= Tier.RE_RUN, unverified=ALL if judged is None else tuple(judged.said), tiers=tiers,
            checks=tuple(self._checks(row, judged)), submissions=self.tries.get(subject_of(row.records[0]), 1),
        )  # fmt: skip

    def _checks(self, row: Row, judged: JudgedRow | None) -> Iterator[str]:
        """Statements of verifier and board on a submitted row."""
        first = row.records[0]
        handed = self.draws.like(first, None if judged is None else judged.draw)
        if judged is not None and judged.draw is not None:
            yield (f"Keys, row orders and splits follow from draw {judged.draw} of the board, which was made after "
                   "code, parameters and data were committed.")  # fmt: skip
        else:
            yield "Its author chose the run secret, and could have handed in the best of many."
        if handed:
            yield (
                "Draws handed out on this data set and preset for a method of this name, with this code or of this "
                f"author's key: {len(handed)}, of these {len(handed - self.draws.answered)} unanswered."
            )
        if (tries := self.tries.get(subject_of(first), 1)) > 1:
            yield f"Handed in {tries} times: the first that was checked furthest stands, or the first not withdrawn."
        yield from [] if judged is None else judged.sentences()

    @staticmethod
    def _tier_of(judged: JudgedRow | None, record: Record) -> Tier:
        known = None if judged is None else judged.records.get(record.evaluator)
        return Tier.SELF_REPORTED if known is None else known.tier

    def tier(self, row: Row) -> Tier:
        """The tier of a row's least checked record."""
        return self._tier(self._source(row.cell), row.cell)

    def _source(self, cell: str) -> int:
        return self.origins.get(cell, 0)

    def _tier(self, source: int, cell: str) -> Tier:
        judged = self.judged.get((source, cell))
        return Tier.SELF_REPORTED if judged is None else judged.tier

    def of(self, wanted: Callable[[Record], bool]) -> Intake:
        """The same with some of the records only, and their pictures."""
        records = tuple(filter(wanted, self.records))
        cells = {record.cell for record in records}
        pictures = {place: png for place, png in self.pictures.items() if place[0] in cells}
        references = {source: tuple(filter(wanted, some)) for source, some in self.references.items()}
        return replace(self, records=records, pictures=pictures, references=references)


def intake(
    *sources: Results, verdicts: tuple[Verdict, ...] = (), draws: Draws = NO_DRAWS, withdrawn: Sequence[Results] = ()
) -> Intake:
    """Read every record of the sources; refusals are named without folder.

    The first source is the board's own. A cell of several sources is taken whole from one of them: the board's own,
    unless another is sealed; among others the one that was checked furthest, then the one that a verifier judged first.
    A row of another seed is a further try at the same: of several bundles with one, the same one stands for all.
    Records of two runs are never in one row. What an author writes into a record, such as its date, decides nothing.
    """
    refused: list[Refusal] = []
    cells: dict[str, dict[int, list[Record]]] = {}
    references: dict[int, tuple[Record, ...]] = {}
    judged: dict[tuple[int, str], JudgedRow] = {}
    for number, source in enumerate(sources):
        mine: dict[str, list[Record]] = {}
        for name, record in source.records():
            if not isinstance(record, Record):
                refused.append(Refusal(name.rpartition("/")[2], "altered", source.bare(name, record)))
            elif record.limit is not None:
                refused.append(Refusal(name, "limited", f"made with --limit {record.limit}"))
            elif is_no_past_time(record.created):
                refused.append(Refusal(name, "unfit", "it says no time of the past as when it was made"))
            else:
                mine.setdefault(record.cell, []).append(record)
        references[number] = tuple(one for some in mine.values() for one in some if one.method.role is not None)
        for cell, records in mine.items():
            cells.setdefault(cell, {})[number] = records
            if (row := judged_row(records, mine, verdicts)) is not None:
                judged[number, cell] = row
    tries, superseded = _tries(cells, judged, verdicts, withdrawn)
    accepted, pictures, origins = list[Record](), dict[tuple[str, str, str], bytes](), dict[str, int]()
    for cell, candidates in cells.items():
        tiers = {number: judged[number, cell].tier if (number, cell) in judged else Tier.SELF_REPORTED
                 for number in candidates}  # fmt: skip
        for number in [number for number in candidates if (number, cell) in superseded]:
            refused.append(Refusal(f"cells/{cell}", "superseded", superseded[number, cell]))
            del candidates[number]
        if not candidates:
            continue
        best = min(
            candidates, key=lambda number: _standing(number, tiers[number], first_judged(candidates[number], verdicts))
        )
        accepted += candidates[best]
        origins[cell] = best
        for number, others in candidates.items():
            if number != best:
                reason = f"{len(others)} records of a cell that another source holds, checked no further than it"
                refused.append(Refusal(f"cells/{cell}", "superseded", reason))
        for record in candidates[best]:
            shown, lost = _pictures(sources[best], record)
            pictures |= shown
            refused += lost
    folders = {record.cell: record.cell.partition("/")[0] for record in accepted}
    refused.sort(key=lambda refusal: (refusal.name, refusal.reason))
    return Intake(
        tuple(accepted), folders, tuple(refused), pictures, origins, references, judged, draws, tries, sources
    )


def subject_of(record: Record) -> Subject:
    """A record's row without its seed."""
    choice = {name: value for name, value in record.choice.items() if name != "seed"}
    return json.dumps([record.method.origin, record.method.written, record.device, choice], sort_keys=True)


def _tries(
    cells: Mapping[str, Mapping[int, list[Record]]], judged: Mapping[tuple[int, str], JudgedRow],
    verdicts: Sequence[Verdict], withdrawn: Sequence[Results],
) -> tuple[dict[Subject, int], dict[tuple[int, str], str]]:  # fmt: skip
    """Submissions by subject, and reasons against rows of further tries."""
    handed: dict[Subject, dict[int, list[str]]] = {}
    for cell, candidates in cells.items():
        for number, records in candidates.items():
            if number and records[0].method.role is None:
                handed.setdefault(subject_of(records[0]), {}).setdefault(number, []).append(cell)
    superseded: dict[tuple[int, str], str] = {}
    for sources in handed.values():
        order = {
            number: min(
                _standing(number, judged[number, cell].tier if (number, cell) in judged else Tier.SELF_REPORTED,
                          first_judged(cells[cell][number], verdicts))
                for cell in mine
            )
            for number, mine in sources.items()
        }  # fmt: skip
        first = min(order, key=lambda number: order[number])
        for number, mine in sources.items():
            if number != first:
                reason = "a further try at a row that another bundle holds: that stands unless it is withdrawn"
                superseded |= {(number, cell): reason for cell in mine if cell not in sources[first]}
    tries = {subject: len(sources) for subject, sources in handed.items()}
    for source in withdrawn:
        rows = {subject_of(one) for _, one in source.records() if isinstance(one, Record) and one.method.role is None}
        tries |= {subject: tries.get(subject, 0) + 1 for subject in rows}
    return tries, superseded


def _standing(number: int, tier: Tier, judged: str) -> tuple[int, bool, str, int]:
    """The place of a source among those of a row, best first."""
    own = number == 0
    return -max(tier, Tier.RE_RUN) if own else -tier, not own, judged, number


def _pictures(source: Results, record: Record) -> tuple[dict[tuple[str, str, str], bytes], list[Refusal]]:
    """A record's pictures if its data may be shared, and altered ones."""
    pictures, lost = {}, []
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
                pictures[record.cell, record.evaluator, name] = png
    return pictures, lost


def protocol_of(record: Record) -> int | None:
    """The protocol that measured a record; None if its data never opened."""
    protocol = record.inputs.get("protocol")
    return protocol if type(protocol) is int else None


def boards(taken: Intake) -> dict[int, Intake]:
    """The records by protocol, the newest first; empty without records."""
    known = {number for record in taken.records if (number := protocol_of(record)) is not None}
    if not known:
        return {0: taken} if taken.records else {}
    newest = max(known)
    return {number: taken.of(partial(_of, number, newest)) for number in sorted(known, reverse=True)}


def _of(number: int, newest: int, record: Record) -> bool:
    return (protocol_of(record) or newest) == number


def address(protocol: int) -> str:
    """Address of a protocol's board below the site, for good."""
    return f"protocol-{protocol}/"


HERE = Path(__file__).parent
SUBMISSIONS, VERIFIERS = HERE / "submissions", HERE / "verifiers"
DRAWS = SUBMISSIONS / "draws"


def board_verdicts() -> Iterator[Verdict | VerdictError]:
    """Every verdict on a submission, or why it does not count."""
    yield from verdicts(SUBMISSIONS, verifiers(VERIFIERS))
