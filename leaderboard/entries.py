"""A place of the board: a metric's weakest figure, or a reason."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.contract.metric import FIDELITY, GROUPS, SIMILARITY
from bench.results.records import MetricRecord, Record, ScoreRecord, Status
from bench.results.verdict import FLOOR
from bench.statistics.bootstrap import ONE_EACH
from bench.statistics.confidence_intervals import RARE, UNLIKELY

EntryStatus = Literal["ok", "not-applicable", "failed", "timed-out", "not-run", "no-power"]
SIMILAR = ("max-dispersion", "nearest-neighbour-distance")
"""Metrics of that group, also where older records name another."""
Position = Literal["inside", "better", "worse"]
"""Against chance: not distinguishable, or on the side that an owner wants or does not."""
WORDS: Mapping[EntryStatus, str] = {
    "ok": "ok",
    "not-applicable": "not applicable",
    "failed": "failed",
    "timed-out": "timed out",
    "not-run": "not run",
    "no-power": "cannot be told",
}
BY_PERSON = "counted by person"


def said(metric: str, note: str) -> str:
    """A score's note, without an untruth in records of figures by person.

    These are computed of one figure a person, and their notes call people unknown. A word more in the metric's own code
    would call for every such row to be measured again.

    >>> said("patient-membership-auc", ONE_EACH), said("membership-auc", ONE_EACH) == ONE_EACH
    ('counted by person', True)
    """
    return note.replace(ONE_EACH, BY_PERSON) if metric.startswith("patient-") else note


GRAVITY: tuple[Status, ...] = ("failed", "timed-out", "not-applicable")


@dataclass(frozen=True)
class Gap:
    """An evaluator without a figure: its end, the reason, the phase."""

    evaluator: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Entry:
    """The content of one place of the board.

    Args:
        column: The metric.
        status: "ok" for a figure; otherwise why there is none.
        score: The figure itself.
        tries: How many attacks gave a figure: chance has as many tries.
        by: The evaluator (for privacy: the attack) that gave the figure.
        kind: The evaluator without its attack.
        attacked: Whether an attack gave the figure.
        certified: Whether that attack's controls hold; True for figures that no attack gave.
        unrated: Why a figure that an attack gave is not rated, or why a utility is not shown; empty if it is.
        gaps: Evaluators that should have given this figure and did not.
    """

    column: Column
    status: EntryStatus
    score: ScoreRecord | None = None
    tries: int = 0
    by: str = ""
    kind: str = ""
    attacked: bool = False
    certified: bool = True
    unrated: str = ""
    gaps: tuple[Gap, ...] = ()

    @property
    def text(self) -> str:
        """The figure in print, or the status in words."""
        return WORDS[self.status] if self.score is None else number(self.score.value, self.column.digits)

    @property
    def interval(self) -> str:
        """The 95 % interval; "no interval" for a figure without one."""
        return "" if self.score is None else interval(self.score.low, self.score.high, self.column.digits)

    @property
    def against_null(self) -> Position | None:
        """The figure against chance, with one try for each attack."""
        return None if self.score is None else against_null(of_tries(self.tries, self.score))

    @property
    def reason(self) -> str:
        """The reason for a missing figure; empty for "not run"."""
        if self.status == "no-power":
            return self.unrated
        texts = (f"{gap.evaluator}: {gap.reason}" for gap in self.gaps if gap.status == self.status)
        return "; ".join(texts)

    @property
    def incomplete(self) -> bool:
        """True if an evaluator failed or timed out."""
        return any(gap.status in ("failed", "timed-out") for gap in self.gaps)


def entry(records: Sequence[Record], column: Column, certified: Collection[str] = ()) -> Entry:
    """The weakest figure of a metric in one cell, or why none.

    Attacks whose controls hold (`certified`, by evaluator) come first; without any, all attacks are looked at. Random
    scores (`FLOOR`) are the figure only if no other attack gave one. A figure that beats chance is weaker than any
    that does not: attacks that read labels see fewer rows, among which chance needs fewer guesses. The weakest of
    several attacks is compared with the weakest of as many of chance (`of_tries`).
    """
    relevant = [record for record in records if column.name in record.metrics]
    scored = [record for record in relevant if record.status == "ok" and column.name in record.scores]
    gaps = tuple(gap for record in relevant if (gap := _gap(record, column.name)))
    real = [record for record in scored if record.attack is None or record.attack.name != FLOOR] or scored
    real = [record for record in real if record.evaluator in certified] or real
    if not real:
        return Entry(column, next((s for s in GRAVITY if any(gap.status == s for gap in gaps)), "not-run"), gaps=gaps)
    sign, tries = 1 if column.better == "higher" else -1, sum(record.attack is not None for record in real)

    def strength(record: Record) -> tuple[bool, float, str]:
        score = record.scores[column.name]
        return not beats_chance(score, tries), sign * score.value, record.evaluator

    weakest = min(real, key=strength)
    attacked = weakest.attack is not None
    return Entry(
        column, "ok", weakest.scores[column.name], tries, weakest.evaluator, weakest.kind, attacked,
        not attacked or weakest.evaluator in certified, gaps=gaps,
    )  # fmt: skip


def _gap(record: Record, metric: str) -> Gap | None:
    """The reason why `record` lacks a figure; None if it has one."""
    if record.status != "ok":
        return Gap(record.evaluator, record.status, record.not_applicable.get(metric) or reason(record))
    if metric in record.not_applicable:
        return Gap(record.evaluator, "not-applicable", record.not_applicable[metric])
    return None


def reason(record: Record) -> str:
    """The reason why a record holds no scores, and where it failed."""
    text = record.reason or "no reason was recorded"
    return f"{text} (in {record.phase})" if record.phase and record.status != "not-applicable" else text


def of_tries(tries: int, score: ScoreRecord) -> ScoreRecord:
    """An attack's figure with one-sided p, corrected for several tries (Šidák).

    Šidák's 1 - (1 - p)^tries: exact for independent figures, and too high for those that go together, as attacks do.
    """
    if (p := score.chance_does_as_well) is None or tries < 1:
        return score
    return score.model_copy(update={"p": _of_tries(tries, p), "sides": 1})


def _of_tries(tries: int, p: float) -> float:
    return -math.expm1(tries * math.log1p(-p)) if p < 1 else 1.0


def against_null(score: ScoreRecord) -> Position | None:
    """Position of a figure against chance, by p or else by interval."""
    if score.p is not None and score.null is not None:
        if score.p >= UNLIKELY:
            return "inside"
        if score.sides == 1:  # chance rarely does as well for the attacker
            return "worse"
        return "better" if (score.value > score.null) == (score.better == "higher") else "worse"
    if score.null_low is None or score.null_high is None:
        return None
    if score.null_low <= score.value <= score.null_high:
        return "inside"
    return "better" if (score.value > score.null_high) == (score.better == "higher") else "worse"


def beats_chance(score: ScoreRecord, tries: int = 0) -> bool:
    """True if an attack's figure beats chance with p below 0.001.

    With `tries`, p is corrected as in `of_tries`. Where a record holds no probability, the 95 % interval of chance
    stands in for it.
    """
    if score.null is None or (score.value < score.null) != (score.better == "higher"):
        return False
    p = score.chance_does_as_well
    if p is None:
        return against_null(score) == "worse"
    return (p if tries < 1 else _of_tries(tries, p)) < RARE


_FROM_A_FILE = re.compile(r"^(.+\.py)-(.+)-[0-9a-f]{6}$")
"""What `bench.wire.text.slug` leaves of FILE.py:CLASS."""


def short(evaluator: str) -> str:
    """An evaluator's name for people: the attack's own.

    >>> short("reidentification-contrastive-steps-150-"), short("membership-lira"), short("utility")
    ('contrastive-steps-150', 'lira', 'utility')
    >>> short("reidentification-my-attack.py-myattack-cbb4bc")
    'my-attack.py:myattack'
    """
    name = evaluator.removeprefix("reidentification-").removeprefix("membership-")
    return _FROM_A_FILE.sub(r"\1:\2", name).removesuffix("-")


HUGE = 1e9
"""From here on a figure is not printed digit by digit: a table grew as wide as the 309 digits of 1e308."""


def number(value: float, digits: int | None) -> str:
    """A figure in print, with fixed decimals or three significant digits.

    >>> number(0.5, 3), number(1, None), number(8411.2, None), number(1.234e9, None), number(-0.0004, None)
    ('0.500', '1.00', '8,411', '1.23 × 10⁹', '−0.0004')
    >>> number(123456789, 2), number(-1e308, 2)
    ('123456789.00', '−1.00 × 10³⁰⁸')
    """
    size = abs(value)
    if digits is not None and size < HUGE:
        text = f"{value:.{digits}f}"
    elif size >= 1e6 or 0 < size < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa} × 10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    elif size >= 1:
        text = f"{value:,.{max(0, 2 - math.floor(math.log10(size)))}f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−", 1)


def interval(low: float | None, high: float | None, digits: int | None) -> str:
    """A 95 % interval in print."""
    if low is None or high is None:
        return "no interval"
    return f"{number(low, digits)} – {number(high, digits)}"


class Column(MetricRecord):
    """A metric as a column of the board."""

    name: str

    @property
    def arrow(self) -> str:
        """An arrow in the owner's better direction; none of similarity and fidelity."""
        if self.group in (SIMILARITY, FIDELITY):
            return ""
        return "↑" if self.better == "higher" else "↓"


def columns(records: Iterable[Record], others: Iterable[Record] = ()) -> tuple[Column, ...]:
    """All metrics of the records in board order; the newest description counts.

    The descriptions of `others` count if none of `records` describes a metric. Groups stand in the order of `GROUPS`,
    others after them by name; within a group metrics stand by their `order`.
    """
    metrics: dict[str, MetricRecord] = {}
    for source in (others, records):
        for record in sorted(source, key=lambda record: (record.created, record.cell, record.evaluator)):
            metrics |= record.metrics
    metrics |= {name: metrics[name].model_copy(update={"group": SIMILARITY}) for name in SIMILAR if name in metrics}
    return tuple(sorted((Column(name=name, **one.model_dump()) for name, one in metrics.items()), key=_place))


def _place(column: Column) -> tuple[int, str, int, str]:
    group = GROUPS.index(column.group) if column.group in GROUPS else len(GROUPS)
    return group, column.group, column.order, column.name
