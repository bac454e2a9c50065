"""The ledger of the papers' results and our reproductions of them.

A row has the paper's result, our figures (each with the record that it is quoted from), and a verdict: reproduced,
refuted or open, with the files that an open row awaits. `leaderboard.quotation` checks the quoted figures against their
sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.data.yaml_text import YamlError, parse_yaml, read_yaml

FILE = "reproduction.yaml"
NOTE = "scheme: "
Verdict = Literal["reproduced", "refuted", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Text = Annotated[str, Field(min_length=1, max_length=900, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]


class ReproductionError(ValueError):
    """An unreadable ledger; the text names place, expectation and value."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Measured(_Entry):
    """A figure of ours, quoted from its source.

    Args:
        what: What it is a figure of, beside the method that the row speaks of.
        record: A published record, as DATA SET/CELL/EVALUATOR; None where the figure comes from elsewhere.
        reach: A step of the ladder, as METHOD / ATTACK; else None.
        test: A test that holds the figure, as FILE::TEST; else None.
        reads: Of a test, the figure in a reader's words; None where `value` is given.
        score: A metric of the record or step, or of a record "scheme: NOTE", what the fitted method says of itself;
            of a test the words in which its code states the figure.
        value: Rounded to six digits, as are `low` and `high`, the 95 % interval; None of a test. A bound from below
            has no `high`.
        budget: What it was measured with.
        command: What measures it again.
    """

    what: Text
    record: Text | None = None
    reach: Text | None = None
    test: Text | None = None
    reads: Text | None = None
    score: Text
    value: float | None = None
    low: float | None = None
    high: float | None = None
    budget: Text
    command: Text

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [name for name in ("record", "reach", "test") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"expected one of record, reach and test, got {', '.join(sources) or 'none'}")
        if (self.value is None) != (self.test is not None) or (self.value is None) == (self.reads is None):
            raise ValueError("expected `value`, or for a test `reads`, the text that readers see")
        return self

    def at(self, preset: str) -> bool:
        """True if it was measured at that preset."""
        return f"preset {preset}" in self.budget

    @property
    def source(self) -> str:
        """The source of the quotation."""
        return self.record or self.reach or self.test or ""


class Row(_Entry):
    """One row of a table, or one statement of a figure.

    Args:
        what: What the paper measured.
        says: What the paper says came out.
        verdict: What follows from `ours`.
        why: The reason of the verdict.
        ours: What was measured here.
        methods: The plug-ins whose quality it tells: `bench info` shows it for them.
        command: What would settle an open row.
        awaits: Names of what is missing for that, as in `Reproduction.missing`; none if only the command has to run.
    """

    what: Text
    says: Text
    verdict: Verdict
    why: Text
    ours: tuple[Measured, ...] = ()
    methods: tuple[Name, ...] = ()
    command: Text | None = None
    awaits: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _settled(self) -> Self:
        if self.verdict != "open" and self.awaits:
            raise ValueError(f"a row that is {self.verdict} awaits nothing, got awaits {', '.join(self.awaits)}")
        if self.verdict == "open" and self.command is None:
            raise ValueError("an open row needs the command that would settle it")
        if self.verdict != "open" and not self.ours:
            raise ValueError(f"a row that is {self.verdict} needs a figure of ours")
        return self


class Table(_Entry):
    """A table or figure of a paper.

    Args:
        place: Its name in the paper.
        shows: What it shows.
        rows: Its rows; none where it holds no result.
    """

    place: Text
    shows: Text
    rows: tuple[Row, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """Number of its rows with that verdict."""
        return sum(row.verdict == verdict for row in self.rows)


class Paper(_Entry):
    """A paper: its citation, and its tables and figures."""

    id: Name
    title: Text
    cited: Text
    tables: tuple[Table, ...] = Field(min_length=1)

    def count(self, verdict: Verdict) -> int:
        """Number of its rows with that verdict."""
        return sum(table.count(verdict) for table in self.tables)


class Reproduction(_Entry):
    """The ledger, with what open rows await, and its place."""

    schema_: Literal[1] = Field(alias="schema")
    missing: dict[Name, Text] = Field(default_factory=dict)
    papers: tuple[Paper, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _once(self) -> Self:
        for paper in self.papers:
            places = [table.place for table in paper.tables]
            if twice := sorted({place for place in places if places.count(place) > 1}):
                raise ValueError(f"{paper.id}: {', '.join(twice)} stands there twice")
        return self

    @model_validator(mode="after")
    def _known(self) -> Self:
        awaited = {name for _, _, row in self.rows() for name in row.awaits}
        if unknown := sorted(awaited - set(self.missing)):
            raise ValueError(f"rows await {', '.join(unknown)}, which `missing` does not name")
        if idle := sorted(set(self.missing) - awaited):
            raise ValueError(f"`missing` names {', '.join(idle)}, which no row awaits")
        return self

    def awaiting(self) -> dict[str, int]:
        """Number of open rows that await each missing thing, the most first."""
        count = Counter(name for _, _, row in self.rows() for name in row.awaits)
        return dict(count.most_common())

    def ready(self) -> int:
        """Number of open rows for which only a command has to run."""
        return sum(row.verdict == "open" and not row.awaits for _, _, row in self.rows())

    def rows(self) -> Iterator[tuple[Paper, Table, Row]]:
        """Every row with its paper and table."""
        for paper in self.papers:
            for table in paper.tables:
                for row in table.rows:
                    yield paper, table, row

    def of(self, method: str) -> list[tuple[Paper, Table, Row]]:
        """The rows on the quality of a method."""
        return [entry for entry in self.rows() if method in entry[2].methods]


def stated(one: Measured) -> str:
    """Our figure in a line of text, with its budget."""
    score = "" if one.value is None else f" {one.score.removeprefix(NOTE)}"
    return f"{briefly(one)}{score} ({one.budget})"


def briefly(one: Measured) -> str:
    """A figure of ours in a few words."""
    if one.value is None:
        return f"{one.what}: {one.reads}"
    ends = [f"{end:.3g}" for end in (one.low, one.high) if end is not None]
    between = " to ".join(ends) if len(ends) == 2 else f"at least {ends[0]}" if one.low is not None else "no interval"
    return f"{one.what}: {one.value:.3g} ({between})"


def read(path: Path) -> Reproduction:
    """The ledger in a file.

    Raises:
        ReproductionError: It is not a ledger; the text names the place.
        OSError: It cannot be read.
    """
    try:
        return _checked(read_yaml(path), str(path.name))
    except YamlError as error:
        raise ReproductionError(f"{path.name}: {error}") from error


@cache
def shipped() -> Reproduction:
    """The ledger that came with this version."""
    text = (resources.files("leaderboard") / FILE).read_text(encoding="utf-8")
    return _checked(parse_yaml(text), FILE)


def _checked(content: object, where: str) -> Reproduction:
    if not isinstance(content, dict):
        raise ReproductionError(f"{where}: expected `schema` and `papers`, got {type(content).__name__}")
    try:
        return Reproduction.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = _named(content, first["loc"])
        got = "" if isinstance(first["input"], (dict, list)) else f", got {first['input']!r:.60}"
        raise ReproductionError(f"{where}: {place}: {first['msg']}{got}") from error


def _named(content: object, place: tuple[int | str, ...]) -> str:
    """A place in the ledger, by names instead of numbers.

    >>> _named({"papers": [{"id": "syfer", "tables": [{"place": "Table 1"}]}]}, ("papers", 0, "tables", 0, "rows"))
    'syfer, Table 1, rows'
    """
    words: list[str] = []
    for part in place:
        try:
            content = content[part]  # type: ignore[index]
        except (LookupError, TypeError):
            content = None
        if isinstance(part, str):
            words.append(part)
        elif isinstance(content, dict):
            words[-1:] = [str(next((content[name] for name in ("id", "place", "what") if name in content), part))]
    return ", ".join(words) or "the file"
