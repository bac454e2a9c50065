"""The schema of a board row, for all pages and files.

A field that is declared with `Shown` stands in each of its `places` without another edit: "files" are CSV and parquet,
"board" the tables with a row a line, "facts" the pages of rows and of comparisons, "paper" LaTeX, "feed" the feed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, GetJsonSchemaHandler, JsonValue, PlainSerializer

from bench.evaluators.membership import ClassifierMembership
from bench.evidence import EVES_FORM, OWNERS_FORM, finding_of, part_of
from bench.results.record_parts import Part
from bench.results.records import ClaimRecord, Record, ScoreRecord
from bench.results.verdict import Tier
from bench.statistics.confidence_intervals import RARE
from leaderboard.board import THROUGHPUT, USEFUL, Row, missing, mixed, relative_speed
from leaderboard.comparison import Difference
from leaderboard.entries import WORDS, Entry, EntryStatus, Gap, said, short
from leaderboard.names import parameters_text, slug, unusual
from leaderboard.panel import SIGNS, Word
from leaderboard.reach import MEMBERSHIP, PAIRS
from leaderboard.repeat import command, cost
from leaderboard.sections import Section

Value = str | int | float | None
Place = Literal["files", "board", "facts", "paper", "feed"]
HASH = "_sha256"
"""Ends the name of a parameter that is a hash of a file."""
Kind = Literal["a row for each image", "samples of a generator", "a trained model", "unknown"]
Bound = Annotated[
    float | None,
    Field(allow_inf_nan=True),
    PlainSerializer(lambda bound: "Infinity" if bound == math.inf else bound, float | str | None, when_used="json"),
]
"""A bound on ε; "Infinity" in JSON if no finite one holds, null if none is claimed."""
Rank = tuple[int, int, int] | None
"""Lowest and highest rank, and of how many rows."""
PRIVACY = ("guesswork", "membership-auc")
PERSON = ("person-risk", "member-risk")
DRAWN = (*USEFUL, "reid-auc", *PRIVACY, *PERSON)
"""Figures that the index has, and scripts draw and choose by."""
OF_MEMBERS = "no membership leak above a bound"
GOOD = frozenset({"no leak above a bound", OF_MEMBERS})
"""Verdicts with a bound."""
JUDGED = GOOD | {"leaks", "membership leaks", "broken"}
"""Verdicts with a finding."""
LEAKS = ("reid-auc", "patient-reid-auc", "membership-auc")
"""Figures whose upper ends say how much attacks may find."""
COUNTED = {"guesswork": " by guesses", "membership-auc": " by members"}
"""What ranks by privacy count, by the metric."""
FEW = 3  # so many parameters are always shown


@dataclass(frozen=True)
class Shown:
    """The form of a field in tables and pages.

    Args:
        title: The heading of its column.
        meaning: The tooltip of the heading.
        places: All by default.
        file: Its column in files; by default the title in lower case.
        order: Its place among columns, lower first.
        better: The direction that is better for the data owner, if there is one.
        first: The direction of the first sort by it.
        usual: Whether the board shows its column unless asked not to.
        aside: Whether a phone shows it only in opened rows.
        choice: Whether the board can be filtered by it.
    """

    title: str
    meaning: str = ""
    places: tuple[Place, ...] = get_args(Place)
    file: str = ""
    order: int = 1000
    better: Literal["higher", "lower", ""] = ""
    first: Literal["up", "down"] = "up"
    usual: bool = False
    aside: bool = True
    choice: bool = False

    @property
    def heading(self) -> str:
        """The title with an arrow in the better direction."""
        return f"{self.title} {'↑' if self.better == 'higher' else '↓'}" if self.better else self.title

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Title and meaning in JSON Schema."""
        return {**handler(core_schema), "title": self.title} | ({"description": self.meaning} if self.meaning else {})


def main(title: str, meaning: str, places: tuple[Place, ...], order: int, **more: Any) -> Shown:
    """A field that the board shows unless asked not to."""
    return Shown(title, meaning, places, order=order, usual=True, **more)


class Figure(Part):
    """The weakest figure of a metric over certified attacks, or why none.

    Args:
        by: The evaluator that gave it; `attacked` if that is an attack.
        certified: Whether the controls of the attack that gave it hold.
        chance: Its position against chance, null if unknown.
        beyond: The worst figure of attacks that are not certified, if worse.
        unrated: Why it is not rated; empty if it is.
        reason: Why there is no figure.
        gaps: Evaluators that failed or timed out before they gave it.
        keys: How many keys its paired tests see; null if its record keeps no replicates.
        tier: How far others have checked this figure; empty in the board's own rows.
    """

    status: EntryStatus = "ok"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    n: int | None = None
    keys: int | None = None
    by: str = ""
    attacked: bool = False
    certified: bool = True
    chance: Literal["inside", "better", "worse"] | None = None
    beyond: float | None = None
    unrated: str = ""
    note: str = ""
    reason: str = ""
    gaps: list[Gap] = Field(default=[])
    tier: str = ""

    @property
    def upper(self) -> float | None:
        """The upper end of its interval, or `beyond` if that is larger.

        None without a figure. For figures that are better if lower.
        """
        if self.value is None:
            return None
        return max(self.value if self.high is None else self.high, self.beyond or 0.0)

    @property
    def words(self) -> str:
        """The status in words."""
        return WORDS[self.status]

    @property
    def missing(self) -> str:
        """Why there is no figure, with the status in words."""
        return f"{self.words}: {self.reason}".removesuffix(": ")


FILES: tuple[Place, ...] = ("files",)
FACTS: tuple[Place, ...] = ("files", "facts")
BOARD: tuple[Place, ...] = ("board",)
USUAL: tuple[Place, ...] = ("files", "board", "facts")


class RowName(Part):
    """A row's identity, and its tier.

    Args:
        id: Its name in every address.
        method: With its parameters, as the command line takes it.
        unverified: The parts of it that only its author vouches for.
        created: When the last of its records was made, in UTC.
    """

    id: Annotated[str, Shown("Row", places=FILES, order=0)]
    method: Annotated[
        str,
        main("Method", "The method, with the parameters in which its rows differ", ("files", "board"), 10, aside=False),
    ]
    dataset: Annotated[
        str,
        main("Data set", "Compare rows on one data set only", USUAL, 20, file="dataset", aside=False, choice=True),
    ]
    preset: Annotated[
        str,
        main("Preset", "Size of the run, and its seed", (*USUAL, "feed"), 30, aside=False, choice=True),
    ]
    seed: Annotated[int, Shown("Seed", places=(*FACTS, "feed"), order=40)]
    tier: Annotated[
        str,
        main("Tier", f"How far others have checked the row: {', '.join(tier.word for tier in Tier)}", (*USUAL, "feed"),
             200, first="down", choice=True),
    ]  # fmt: skip
    unverified: list[str]
    created: Annotated[
        str, Shown("Date", "Of its newest record", ("files", "board"), file="created", order=230, first="down")
    ]


class BoardRow(RowName):
    """A row of the board.

    The index and the scripts have it without the fields that have a default.

    Args:
        file: Of the row, relative to the board.
        plugin: The method's name without parameters.
        variant: The parameters by which it differs from its method's other rows and usual settings.
        written: The method as the run asked for it, without parameters left at their defaults.
        section: The name of its data set in addresses.
        data: The data set with its parameters; `data_name` is as short as may be.
        sign: The mark beside its verdict.
        label: The verdict as pages print it, with its bound if it has one.
        reference: The role of a reference method; those are never ranked.
        trusted: Whether it is the board's own, or a verifier measured some of it again.
        applies: Whether the method applies to the data at all.
        utility, privacy, person: The metrics that stand for it on the board; empty if it has none.
        figures: By metric.
        marks: Notes beside its figures: earlier code, the owner's form, several versions.
        reasons: Why figures are missing: status, evaluators or metrics, and reason.
        tests: How it differs from other rows, by their id and metric.
        records: The file of each record, relative to the board, by its name.
        digests: The digest of each record, by its name.
        tiers: How far each record was checked, by its name; empty in the board's own rows.
        checks: What else a verifier and the board say of it.
        submissions: How many bundles with it, of any seed, were handed in; 0 for the board's own rows.
        complete: Whether every attack that applies ran to its end, with controls that hold, and converged.
    """

    schema_version: Literal[3] = 3
    file: str
    plugin: str
    variant: str
    written: str
    section: str
    data: str
    data_name: str
    keys: Annotated[int, Shown("Keys", places=FACTS, order=50)]
    verdict: Annotated[
        Word,
        main("Verdict", "Outcome of the certified attacks, with their bound; best for the data owner first", USUAL, 60,
             aside=False, choice=True),
    ]  # fmt: skip
    sign: str
    label: str
    bound: Annotated[
        float | None,
        Shown("Bound", "95 % upper limit of the attacks' ReID AUC (for generators: membership AUC), if they support "
              "one", FACTS, order=65),
    ]  # fmt: skip
    complete: bool
    power: Annotated[
        float | None,
        Shown("Detectable ReID AUC", "The least ReID AUC that one of the attacks would find with probability .8", FACTS,
              order=66),
    ]  # fmt: skip
    sentence: Annotated[str, Shown("Verdict in full", places=FACTS, order=240)]
    reference: str
    trusted: bool
    applies: bool
    utility: Annotated[
        str,
        main("Utility", "AUC on real test images of a model trained on the release, with its 95 % interval", BOARD, 70,
             better="higher", first="down", aside=False),
    ]  # fmt: skip
    public_model: Annotated[
        float | None,
        Shown("Public model", "Utility AUC of a classifier of public data alone, on the same data", places=FACTS,
              order=72),
    ]  # fmt: skip
    looked_up: Annotated[
        str, Shown("Can be looked up", "Why utility may come from test images that the method carries", FACTS, order=74)
    ]
    utility_rank: Annotated[
        Rank,
        main("Rank by utility", "Range of ranks by utility, from paired tests on the same people and keys, corrected "
             "for all pairs; none if fewer than two records hold replicates", ("board", "facts"), 80),
    ]  # fmt: skip
    privacy: Annotated[
        str,
        main("Worst privacy figure", "Guesses until Eve's first correct match, by the strongest certified attack; for "
             "generators, AUC of recognising members. Sorted by distance from chance", BOARD, 90, first="down",
             aside=False),
    ]  # fmt: skip
    privacy_rank: Annotated[
        Rank,
        main("Rank by privacy", "Range of ranks by the worst privacy figure, among rows that have the same one: "
             "guesses, or AUC of members. There is no order across the two", ("board", "facts"), 100),
    ]  # fmt: skip
    person: Annotated[
        str,
        main("Worst person", "Probability that Eve finds the person most at risk (for generators: the member most at "
             "risk), with its 95 % interval; it is wide if there are few keys", BOARD, 110, better="lower"),
    ]  # fmt: skip
    claim_kind: Annotated[
        Literal["none", "finite ε", "no finite ε", "violated"], Shown("Claim", places=(), order=115, choice=True)
    ]
    claimed: Annotated[
        Bound,
        main("Claimed ε", "The bound that the method's authors state", USUAL, 120, file="claimed epsilon",
             better="lower"),
    ]  # fmt: skip
    derived: Annotated[
        Bound,
        main("Derived ε", "The bound that this project derives for the mechanism as it runs here", (*USUAL, "paper"),
             130, file="derived epsilon", better="lower"),
    ]  # fmt: skip
    delta: Annotated[float | None, Shown("Delta", places=FILES, order=140)]
    per: Annotated[str, Shown("Claim per", places=FACTS, order=150)]
    audited: Annotated[
        float | None,
        main("Shown ε ≥", "Lower bound from an audit, with 95 % confidence; the claim is violated if the bound exceeds "
             "it with 99.9 % confidence", BOARD, 160),
    ]  # fmt: skip
    device: Annotated[str, Shown("Device", "Device of the run", USUAL, order=210, choice=True)]
    speed: Annotated[
        float | None,
        Shown("Speed", "Images released per second over those of a ResNet-18's forward pass on the same images and "
              "device; compare rows of one device", ("files", "board", "facts"), file="speed over resnet-18",
              order=215, better="higher", first="down"),
    ]  # fmt: skip
    kind: Annotated[Kind, Shown("Releases", places=("facts",), order=260, choice=True)]
    unrated: Annotated[str, Shown("Not rated", places=FACTS, order=250)]
    figures: dict[str, Figure]
    throughput_machine: Annotated[
        str, Shown("Throughput machine", places=FACTS, file="throughput measured on", order=220)
    ] = ""
    caveat: Annotated[str, Shown("Caveat", places=FACTS, order=255)] = ""
    audit: Annotated[str, Shown("Audit", places=("facts",), order=270)] = ""
    audit_word: str = ""
    doubt: str = ""
    cost: Annotated[str, Shown("Cost", places=("facts",), order=280)] = ""
    parameters: dict[str, JsonValue] = Field(default={})
    claim: ClaimRecord | None = None
    claim_text: str = ""
    marks: list[str] = Field(default=[])
    reasons: list[tuple[str, str, str]] = Field(default=[])
    tests: dict[str, dict[str, Difference]] = Field(default={})
    command: str = ""
    records: dict[str, str] = Field(default={})
    digests: dict[str, str] = Field(default={})
    tiers: dict[str, str] = Field(default={})
    checks: list[str] = Field(default=[])
    submissions: int = 0

    @property
    def exposure(self) -> float | None:
        """The worst privacy figure: 0 hides nothing, 1 is chance."""
        figure = self.figures.get(self.privacy)
        if figure is None or figure.value is None or figure.null is None or figure.null in (0.0, 1.0):
            return None
        return figure.value / figure.null if self.privacy == "guesswork" else (1 - figure.value) / (1 - figure.null)

    @property
    def of_members(self) -> bool:
        """True if its bound is on membership."""
        return self.verdict == OF_MEMBERS

    @property
    def leak(self) -> float | None:
        """The AUC that attacks reach at most.

        The verdict's bound, else the largest upper end of their figures, or a larger figure of an attack that is not
        certified; None if no rated attack has a figure.
        """
        if self.bound is not None:
            return self.bound
        figures = [self.figures[name] for name in LEAKS if name in self.figures and not self.figures[name].unrated]
        return max((end for one in figures if (end := one.upper) is not None), default=None)

    def rank(self, name: Literal["utility_rank", "privacy_rank"]) -> tuple[str, str]:
        """A range of ranks in print, and of how many by what.

        Both are empty without one. A row that no paired test tells from another may have any rank, however far apart
        the figures are.
        """
        ranks, metric = (
            (self.utility_rank, self.utility) if name == "utility_rank" else (self.privacy_rank, self.privacy)
        )
        if ranks is None:
            return "", ""
        low, high, count = ranks
        of = f"of {count}{COUNTED.get(metric, '')}"
        if (low, high) != (1, count):
            return (f"{low}" if low == high else f"{low}–{high}"), of
        keys = self.figures[metric].keys if metric in self.figures else None
        return "any", of + f": tests over {keys} key{'s' * (keys != 1)} exclude none" * (keys is not None)

    @property
    def place(self) -> int:
        """The place of its verdict: 0 is best for the data owner."""
        return list(SIGNS).index(self.verdict)

    def values(self, place: Place) -> list[Value]:
        """Its values in the columns of a place."""
        return [None if getattr(self, name) == "" else getattr(self, name) for name, _ in shown(place)]


class FieldData(Part):
    """A field of a row, for scripts: its place and form."""

    name: str
    title: str
    heading: str
    meaning: str
    places: tuple[Place, ...]


def shown(place: Place | None = None) -> list[tuple[str, Shown]]:
    """The fields of a row in a place (None: all), in order."""
    known = [(name, mark) for name, field in BoardRow.model_fields.items() for mark in field.metadata
             if isinstance(mark, Shown)]  # fmt: skip
    return sorted((one for one in known if place is None or place in one[1].places), key=lambda one: one[1].order)


def choices() -> list[tuple[str, Shown]]:
    """The fields by which the board can be filtered, in order."""
    return [(name, mark) for name, mark in shown() if mark.choice]


def field_data() -> list[FieldData]:
    """The fields for scripts."""
    return [
        FieldData(name=name, title=mark.title, heading=mark.heading, meaning=mark.meaning, places=mark.places)
        for name, mark in shown()
    ]


def file_columns() -> dict[str, type[str] | type[int] | type[float]]:
    """Columns and types of a row in CSV and parquet."""
    kinds: dict[str, type[str] | type[int] | type[float]] = {}
    for name, mark in shown("files"):
        hint = BoardRow.model_fields[name].annotation
        kind = next((one for one in (int, float) if hint is one or one in get_args(hint)), str)
        kinds[mark.file or mark.title.lower()] = kind
    return kinds


def head(row: BoardRow, *, figures: bool) -> BoardRow:
    """The row in the index; scripts also get the drawn figures."""
    drawn = {name: _brief(row.figures[name]) for name in DRAWN if figures and name in row.figures}
    required = {name: getattr(row, name) for name, field in BoardRow.model_fields.items() if field.is_required()}
    return BoardRow.model_construct(**required | {"figures": drawn})


def _brief(figure: Figure) -> Figure:
    names = ("status", "value", "low", "high", "null", "certified", "beyond", "gaps")
    return Figure.model_construct(**{name: getattr(figure, name) for name in names})


def board_rows(
    parts: Sequence[Section],
    tier: Mapping[str, Tier],
    ranks: Mapping[str, Mapping[str, tuple[int, int, int]]],
    tests: Mapping[str, Mapping[str, Mapping[str, Difference]]],
) -> list[BoardRow]:
    """All rows as data, in the order of the sections.

    Args:
        parts: The board cut into data sets.
        tier: By cell.
        ranks: By cell and metric.
        tests: By cell, other cell and metric.
    """
    ids = {row.cell: row.id for part in parts for row in part.rows}
    rows = []
    for part in parts:
        values: dict[str, dict[str, set[str]]] = {}  # every value of every parameter, by method
        for row in part.rows:
            mine = values.setdefault(row.method, {})
            for name in {*mine, *row.parameters}:
                mine.setdefault(name, set()).add(repr(row.parameters.get(name)))
        plain: dict[str, set[str]] = {}  # every full set of parameters, by those that can be read
        for row in part.rows:
            plain.setdefault(readable(row.method, row.parameters), set()).add(repr(sorted(row.parameters.items())))
        for row in part.rows:
            twin = len(plain[readable(row.method, row.parameters)]) > 1
            others = {ids[other]: dict(by_metric) for other, by_metric in tests.get(row.cell, {}).items()}
            rows.append(_board_row(row, part, _variant(row, values[row.method], twin), tier[row.cell],
                                   ranks.get(row.cell, {}), others))  # fmt: skip
    return rows


def _board_row(
    row: Row, part: Section, variant: str, tier: Tier, ranks: Mapping[str, tuple[int, int, int]],
    tests: dict[str, dict[str, Difference]],
) -> BoardRow:  # fmt: skip
    claim, audit, first = row.claim, row.audited, row.records[0]
    standing = row.standing
    utility, privacy, person = (_first(row, names) for names in (USEFUL, PRIVACY, PERSON))
    return BoardRow(
        id=row.id, file=row_address(row), method=row.label, plugin=row.method, variant=variant,
        written=first.method.written, dataset=row.dataset, section=part.slug, data=part.title, data_name=part.name,
        preset=row.preset, seed=row.seed, keys=row.keys, tier=tier.word, unverified=list(row.unverified),
        created=row.created, verdict=standing.word, sign=SIGNS[standing.word], label=standing.label,
        bound=standing.bound, complete=row.complete, power=row.panel.power, sentence=standing.sentence,
        trusted=row.trusted, reference=first.method.role or "",
        applies=any(one.status != "not-applicable" for one in row.records),
        public_model=None if row.public_model is None else row.public_model.value, looked_up=row.looked_up,
        utility=utility, utility_rank=ranks.get(utility), privacy=privacy, privacy_rank=ranks.get(privacy),
        person=person, claim_kind=_claim_kind(row), claimed=_bound(claim, claim.epsilon if claim else None),
        derived=_bound(claim, claim.derived if claim else None), delta=claim.delta if claim else None,
        per=claim.per if claim else "", audited=audit.empirical if audit else None, device=row.device,
        speed=next((relative_speed(one) for one in row.records if one.evaluator == THROUGHPUT), None),
        kind=kind(row.records), unrated=row.unrated, throughput_machine=row.throughput_machine, caveat=row.caveat,
        figures={name: figure(row, entry) for name, entry in row.entries.items() if entry.status != "not-run"},
        audit=audit.sentence if audit else "", doubt=audit.doubt if audit else "",
        audit_word="" if audit is None or audit.empirical is None else audit.word, cost=cost(row), marks=marks(row),
        parameters=dict(row.parameters), claim=claim, claim_text=row.claim_text, tests=tests, command=command(row),
        reasons=[(WORDS[status], ", ".join(map(short, names)), why) for _, status, why, names in missing([row])],
        records={one.evaluator: record_address(row, one.evaluator) for one in row.records},
        digests={one.evaluator: str(one.digest) for one in row.records}, tiers=dict(row.tiers),
        checks=list(row.checks), submissions=row.submissions,
    )  # fmt: skip


def readable(method: str, parameters: Mapping[str, JsonValue]) -> str:
    """A method's parameters without hashes of files."""
    return repr((method, sorted(item for item in parameters.items() if not item[0].endswith(HASH))))


def _variant(row: Row, values: Mapping[str, set[str]], twin: bool) -> str:
    """Parameters that differ from other rows, and unusual numbers of keys.

    Hashes are among them only if there is a `twin`, a row that differs in them alone.
    """
    chosen = unusual(row.records[0])
    differing = {name: value for name, value in row.parameters.items() if len(values[name]) > 1 or name in chosen}
    if not twin:
        differing = {name: value for name, value in differing.items() if not name.endswith(HASH)}
    texts = [text for name, value in differing.items() if (text := parameters_text({name: value}, empty=False))]
    texts += [f"{row.keys} keys"] * (row.choice.get("keys") is not None)
    if len(row.parameters) <= FEW:  # last, for the end is cut off if there is little room
        alike = {name: value for name, value in row.parameters.items() if name not in differing and value is not None}
        texts += [parameters_text({name: value}) for name, value in alike.items()]
    return ", ".join(texts)


def _first(row: Row, metrics: Sequence[str]) -> str:
    """The first of these metrics with a figure, else the first."""
    asked = [name for name in metrics if name in row.entries and row.entries[name].status != "not-run"]
    return next((name for name in asked if row.entries[name].score is not None), asked[0] if asked else "")


def _bound(claim: ClaimRecord | None, epsilon: float | None) -> float | None:
    return math.inf if claim is not None and epsilon is None else epsilon


def _claim_kind(row: Row) -> Literal["none", "finite ε", "no finite ε", "violated"]:
    if row.claim is None:
        return "none"
    if row.audited is not None and row.audited.word == "violated":
        return "violated"
    return "no finite ε" if row.claim.derived is None else "finite ε"


def kind(records: Sequence[Record]) -> Kind:
    """The kind of a method's release, by the attacks that apply."""
    states: dict[str, set[str]] = {}
    for record in records:
        states.setdefault(record.kind, set()).add(record.status)
    if "ok" in states.get(PAIRS, ()):
        return "a row for each image"
    if "ok" in states.get(MEMBERSHIP, ()):
        return "samples of a generator"
    if "ok" in states.get(ClassifierMembership.name, ()):
        return "a trained model"
    attacks = states.get(PAIRS, set()) | states.get(MEMBERSHIP, set())
    useful = any(record.status == "ok" and record.kind in ("utility", "transfer", "audit") for record in records)
    return "a trained model" if attacks == {"not-applicable"} and useful else "unknown"


def figure(row: Row, entry: Entry) -> Figure:
    """A place of the board as data."""
    score = entry.score
    gaps = [gap for gap in entry.gaps if gap.status in ("failed", "timed-out")]
    if score is None:
        return Figure(status=entry.status, reason=entry.reason, gaps=gaps)
    return Figure(
        value=score.value, low=score.low, high=score.high, prediction_low=score.prediction_low,
        prediction_high=score.prediction_high, null=score.null, null_low=score.null_low, null_high=score.null_high,
        p=score.p, n=score.n, keys=None if score.replicates is None else len(score.replicates.by_key), by=entry.by,
        attacked=entry.attacked, certified=entry.certified,
        chance=entry.against_null, beyond=_beyond(row, entry), unrated=entry.unrated,
        note=said(entry.column.name, score.note), gaps=gaps, tier=row.tiers.get(entry.by, ""),
    )  # fmt: skip


def _beyond(row: Row, entry: Entry) -> float | None:
    """The worst figure of uncertified attacks, if worse than the certified one."""
    if not entry.attacked or not entry.certified or entry.score is None:
        return None
    name, sign = entry.column.name, 1 if entry.column.better == "higher" else -1
    counted = row.panel.certified | row.membership.certified
    others = [record for record in row.records if record.attack is not None and record.evaluator not in counted]
    figures = [record.scores[name].value for record in others if name in record.scores]
    worst = min(figures, key=lambda value: sign * value, default=entry.score.value)
    return worst if sign * worst < sign * entry.score.value else None


def marks(row: Row) -> list[str]:
    """Notes beside a row's figures: earlier code, the owner's form, several versions."""
    earlier = [f"earlier code: {', '.join(sorted(row.earlier))}"] if row.earlier else []
    sharper = sorted(short(record.evaluator) for record in row.records if sharpened(record))
    form = [f"broken by attacks {OWNERS_FORM}, not by their own: {', '.join(sharper)}"] if sharper else []
    return [*earlier, *form, *filter(None, [mixed(row.records)])]


def sharpened(record: Record) -> bool:
    """True if an attack breaks a method only through owner's-form simulations."""
    for score in record.scores.values():
        for name, part in score.parts.items():
            own = score.parts.get(part_of(finding_of(name), EVES_FORM))
            if name.endswith(OWNERS_FORM) and own is not None and _breaks(part) and not _breaks(own):
                return True
    return False


def _breaks(score: ScoreRecord) -> bool:
    return score.p is not None and score.p < RARE


def row_address(row: Row) -> str:
    """The address of a row's file, relative to the board."""
    return f"api/rows/{row.id}.json"


def record_address(row: Row, evaluator: str) -> str:
    """The address of a record, relative to the board."""
    return f"api/records/{row.id}/{slug(evaluator)}.json"
