"""The data that all pages of one build share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bench.results.records import Record
from bench.results.verdict import fingerprint
from bench.workbench.inputs import PROTOCOL
from leaderboard.answer import View, views
from leaderboard.board import THROUGHPUT, Row
from leaderboard.comparison import ranking
from leaderboard.entries import Column
from leaderboard.intake import Intake, protocol_of
from leaderboard.names import digest, slug, slugs
from leaderboard.panel import Member, attack_key
from leaderboard.row_schema import JUDGED, BoardRow, board_rows
from leaderboard.sections import Section, at_pixels, credit, credited, sections
from leaderboard.summary import Attempt
from leaderboard.tables import TablePart, in_parts, long, wide

WITHOUT_IMAGES = frozenset({"plane"})
"""Pictures of points."""
WITH_PUBLIC = frozenset({"rebuilt"})
"""Pictures that show images of the public set, too."""


@dataclass(frozen=True)
class Sheet:
    """A picture of a row.

    Args:
        file: Below the site's root.
        name: As its record calls it.
        caption: As its record says it.
        of: The id of the row whose release it shows; empty for the page's own.
        size: " at 64 pixels", or the like.
        owner: Source and licence of the private images on it; empty if it shows none.
        public: The same of public images, if they are of another set.
    """

    file: str
    name: str
    caption: str
    of: str
    size: str
    owner: str
    public: str


@dataclass(frozen=True)
class Edition:
    """One build of the board.

    Args:
        taken: The content of the results.
        board: Its rows.
        parts: The rows by data set.
        columns: Every metric.
        rows: The rows as data, in the order of `board`.
        lines: The same in the order of the front page: first data sets on which attacks came to most verdicts, within
            a data set the best verdict, then the best utility.
        earlier: Number of rows of each earlier protocol, whose figures do not compare, by its address below the site.
    """

    taken: Intake
    board: Sequence[Row]
    parts: Sequence[Section]
    columns: Sequence[Column]
    rows: Sequence[BoardRow]
    lines: Sequence[BoardRow]
    earlier: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, taken: Intake) -> Edition:
        """The edition of an intake."""
        board = taken.rows
        parts = sections(board)
        order = ranking(parts)
        lines = board_rows(parts, {row.cell: taken.tier(row) for row in board}, order.ranks, order.tests)
        verdicts = Counter(row.section for row in lines if row.verdict in JUDGED and not row.reference)
        lines.sort(key=lambda row: (-verdicts[row.section], *_place(row)))
        by_name = {(row.id, row.method): row for row in lines}
        return cls(taken, board, parts, taken.columns, [by_name[row.id, row.label] for row in board], lines)

    @cached_property
    def _analysed(self) -> Mapping[tuple[str, str], Row]:
        return {(row.id, row.label): row for row in self.board}

    @cached_property
    def views(self) -> Sequence[View]:
        """The answer for each data set, the leading one first."""
        return views(self.lines, self.named)

    def row_of(self, data: BoardRow) -> Row:
        """The analysed row behind the data; forged cells may hold several."""
        return self._analysed[data.id, data.method]

    @cached_property
    def _accepted(self) -> Mapping[tuple[str, str, str | None], Record]:
        return {_of_record(record): record for record in self.taken.records}

    def as_measured(self, record: Record) -> Record:
        """A record of an analysed row, with the figures that are withheld."""
        return self._accepted[_of_record(record)]

    @cached_property
    def named(self) -> Mapping[str, Column]:
        """The metrics by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def methods(self) -> Mapping[str, str]:
        """A file stem a method."""
        return slugs(row.method for row in self.board)

    @cached_property
    def attacks(self) -> Mapping[tuple[str, str], tuple[str, tuple[Attempt, ...]]]:
        """File stem and records with their rows, by attack kind and name."""
        attempts: dict[tuple[str, str], list[Attempt]] = {}
        for data in self.lines:
            row = self.row_of(data)
            for record in row.records:
                if (key := attack_key(record)) is not None:
                    attempts.setdefault(key, []).append((data, row, record))
        stems = slugs(
            "/".join(key) if sum(key[1] == other[1] for other in attempts) > 1 else key[1] for key in attempts
        )
        names = {key: stems.get(key[1]) or stems["/".join(key)] for key in attempts}
        return {key: (names[key], tuple(attempts[key])) for key in sorted(attempts)}

    @cached_property
    def pictured(self) -> Mapping[tuple[str, str, str], str]:
        """The file of every picture, by cell, record and name."""
        return {where: f"figures/{slug(where[2])}-{digest('/'.join(where))}.png" for where in self.taken.pictures}

    @cached_property
    def sheets(self) -> Mapping[str, list[Sheet]]:
        """Each row's pictures, by its id."""
        return {line.id: list(self._sheets(self.row_of(line))) for line in self.lines}

    def _sheets(self, row: Row) -> Iterator[Sheet]:
        data = row.data
        if data is None:
            return
        for record in row.records:
            for name, picture in sorted(record.pictures.items()):
                file = self.pictured.get((row.cell, record.evaluator, name))
                if file is None:
                    continue
                owner = public = ""
                if len(data.shape) == 3 and name not in WITHOUT_IMAGES:
                    owner = credited(data.name, credit(str(row.choice.get("dataset"))))
                    if name in WITH_PUBLIC and data.public != data.name:
                        public = credited(data.public, credit(data.public))
                yield Sheet(file, name, picture.caption, "", at_pixels(data), owner, public)

    @cached_property
    def prints(self) -> Mapping[str, str]:
        """A hash of everything shown of a row, by id."""
        reaches: dict[int, str] = {}  # many attacks on many rows stand on the same rungs, which are the same objects
        return {row.id: _print(row, self.row_of(row), reaches) for row in self.lines}

    @cached_property
    def described(self) -> str:
        """A hash of what many pages show: metrics, menu, foot, credits."""
        columns = [column.model_dump(mode="json") for column in self.columns]
        credits = [str(part.credit) for part in self.parts]
        return hashlib.sha256(
            json.dumps([columns, self.timed, self.origin, len(self.parts) > 1, credits], sort_keys=True).encode()
        ).hexdigest()

    @cached_property
    def timed(self) -> bool:
        """True if a row has a figure of throughput."""
        figures = (row.figures.get(THROUGHPUT) for row in self.lines)
        return any(figure is not None and figure.value is not None for figure in figures)

    @cached_property
    def protocol(self) -> int:
        """The protocol that measured the records; 0 if they name none."""
        return max((number for record in self.taken.records if (number := protocol_of(record))), default=0)

    @cached_property
    def origin(self) -> str:
        """Days and protocol of the records, in sentences; empty without records."""
        if not self.dates:
            return ""
        first, last = self.dates
        days = first if first == last else f"{first} to {last}"
        return f"Made from records of {days}. {self.superseded}".rstrip()

    @cached_property
    def superseded(self) -> str:
        """The warning that this version measures by a later protocol; else empty."""
        if not 0 < self.protocol < PROTOCOL:
            return ""
        return (
            f"These figures are of protocol {self.protocol}. This version measures by protocol {PROTOCOL}, and "
            "figures of different protocols do not compare."
        )

    @cached_property
    def snapshot(self) -> str:
        """A hash of all records: what a citation names."""
        return snapshot(self.board)

    @cached_property
    def date(self) -> str:
        """The creation time of the newest record, in UTC; empty without records."""
        return max((row.created for row in self.board), default="")

    @cached_property
    def dates(self) -> tuple[str, str] | None:
        """The days of the oldest and the newest record; None without records."""
        created = [record.created[:10] for record in self.taken.records]
        return (min(created), max(created)) if created else None

    @cached_property
    def board_table(self) -> Sequence[TablePart]:
        """The wide table: a line a row."""
        return in_parts("board", wide(self.rows, self.columns))

    @cached_property
    def results_table(self) -> Sequence[TablePart]:
        """The long table: a line a figure."""
        records = long((row.id, record) for row in self.board for record in row.records)
        return in_parts("results", records, compress=True)


def snapshot(rows: Iterable[Row]) -> str:
    """A hash over the digests of the rows' records."""
    return fingerprint(record for row in rows for record in row.records)


def _of_record(record: Record) -> tuple[str, str, str | None]:
    return record.cell, record.evaluator, record.digest


def _place(row: BoardRow) -> tuple[str, str, int, float, str, str]:
    figure = row.figures.get(row.utility)
    useful = -figure.value if figure is not None and figure.value is not None else 1.0
    return row.data, row.preset, row.place, useful, row.method, row.id


def _print(data: BoardRow, row: Row, reaches: dict[int, str]) -> str:
    records: list[object] = [record.digest or record.model_dump_json() for record in row.records]
    panels = [repr((replace(panel, members=()), [_member(member, reaches) for member in panel.members]))
              for panel in (row.panel, row.membership)]  # fmt: skip
    content = [records, data.model_dump_json(exclude={"records", "digests"}), panels]
    return hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass")).hexdigest()


def _member(member: Member, reaches: dict[int, str]) -> str:
    """Everything of an attack; `reaches` keeps a hash of each rung."""
    rungs = [reaches.get(id(rung)) or reaches.setdefault(id(rung), digest(repr(rung), 64)) for rung in member.rungs]
    return repr((replace(member, rungs=()), rungs))
