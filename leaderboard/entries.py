"""One place of the board: a metric's weakest figure, or a reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.contract.metric import GROUPS
from bench.results.records import MetricRecord, Record, ScoreRecord, Status
from bench.statistics.confidence_intervals import RARE, UNLIKELY

EntryStatus = Literal["ok", "not-applicable", "failed", "timed-out", "not-run"]
WORDS: Mapping[EntryStatus, str] = {
    "ok": "ok",
    "not-applicable": "not applicable",
    "failed": "failed",
    "timed-out": "timed out",
    "not-run": "not run",
}
GRAVITY: tuple[Status, ...] = ("failed", "timed-out", "not-applicable")
FLOOR = "chance"  # random scores: the floor of every attack, and no finding about a method while a real attack ran


@dataclass(frozen=True)
class Gap:
    """An evaluator that gave no figure, and why.

    Args:
        evaluator: Which one.
        status: How it ended.
        reason: Why, with the phase it stopped in.
    """

    evaluator: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Entry:
    """The content of one place of the board.

    Args:
        column: The metric.
        status: "ok" where there is a figure; otherwise why there is none.
        text: The figure, or the status in words; never empty.
        interval: The 95 % interval; "no interval" for a figure without one; empty without a figure.
        prediction: Where the figure under one further key would fall; empty under one key.
        null: What chance gives, with its interval; empty where unknown.
        against_null: Where the figure lies against chance, which has as many tries as there are attacks; None where
            nothing is known of chance. "inside": not told from chance; "better" or "worse": told from it, in the
            direction an owner wants or not.
        by: The evaluator (for privacy: the attack) that gave the figure.
        kind: Which evaluator that is, without its attack; empty without a figure.
        attacked: Whether an attack gave the figure.
        certified: Whether that attack's controls hold; True for figures that no attack gave.
        unrated: Why a figure that an attack gave is not rated; empty where it is.
        score: The figure itself; None without one.
        gaps: Evaluators that should have given this figure and did not.
        reason: Why there is no figure; empty where there is one, and for "not run".
    """

    column: Column
    status: EntryStatus
    text: str
    interval: str = ""
    prediction: str = ""
    null: str = ""
    against_null: Literal["inside", "better", "worse"] | None = None
    by: str = ""
    kind: str = ""
    attacked: bool = False
    certified: bool = True
    unrated: str = ""
    score: ScoreRecord | None = None
    gaps: tuple[Gap, ...] = ()
    reason: str = ""

    @property
    def incomplete(self) -> bool:
        """True if an evaluator failed or timed out."""
        return any(gap.status in ("failed", "timed-out") for gap in self.gaps)


def entry(records: Sequence[Record], column: Column, certified: Collection[str] = ()) -> Entry:
    """The weakest figure of a metric in one cell, or why none.

    Attacks whose controls hold (`certified`, by evaluator) come first; without any, all attacks are looked at. Random
    scores (`FLOOR`) are the figure only where no other attack gave one. A figure that beats chance is weaker than any
    that does not: attacks that read labels see fewer rows, among which chance needs fewer guesses. The weakest of
    several attacks is held against the weakest of as many of chance (`of_tries`).
    """
    relevant = [record for record in records if column.name in record.metrics]
    scored = [record for record in relevant if record.status == "ok" and column.name in record.scores]
    gaps = tuple(gap for record in relevant if (gap := _gap(record, column.name)))
    real = [record for record in scored if record.attack is None or record.attack.name != FLOOR] or scored
    real = [record for record in real if record.evaluator in certified] or real
    if not real:
        status: EntryStatus = next((s for s in GRAVITY if any(gap.status == s for gap in gaps)), "not-run")
        reason = "; ".join(f"{gap.evaluator}: {gap.reason}" for gap in gaps if gap.status == status)
        return Entry(column, status, WORDS[status], gaps=gaps, reason=reason)
    sign, tries = 1 if column.better == "higher" else -1, sum(record.attack is not None for record in real)

    def strength(record: Record) -> tuple[bool, float, str]:
        score = record.scores[column.name]
        return not beats_chance(of_tries(tries, score)), sign * score.value, record.evaluator

    weakest = min(real, key=strength)
    score = weakest.scores[column.name]
    return Entry(
        column, "ok", number(score.value, column.digits), interval(score.low, score.high, column.digits),
        _prediction(score, column.digits), _null(score, column.digits), against_null(of_tries(tries, score)),
        weakest.evaluator, weakest.kind, weakest.attack is not None,
        weakest.attack is None or weakest.evaluator in certified, "", score, gaps,
    )  # fmt: skip


def _gap(record: Record, metric: str) -> Gap | None:
    """The reason why `record` lacks a figure; None if it has one."""
    if record.status != "ok":
        return Gap(record.evaluator, record.status, record.not_applicable.get(metric) or reason(record))
    if metric in record.not_applicable:
        return Gap(record.evaluator, "not-applicable", record.not_applicable[metric])
    return None


def reason(record: Record) -> str:
    """Why a record holds no scores, with the phase it stopped in."""
    text = record.reason or "no reason was recorded"
    return f"{text} (in {record.phase})" if record.phase else text


def of_tries(tries: int, score: ScoreRecord) -> ScoreRecord:
    """The figure with its p-value corrected for several tries (Šidák).

    Šidák's 1 - (1 - p)^tries: exact for independent figures, and too high for those that go together, as attacks do.
    """
    if score.p is None or tries <= 1:
        return score
    return score.model_copy(update={"p": -math.expm1(tries * math.log1p(-score.p)) if score.p < 1 else 1.0})


def against_null(score: ScoreRecord) -> Literal["inside", "better", "worse"] | None:
    """Position of a figure against chance, by p or by interval.

    None where neither is known.
    """
    if score.p is not None and score.null is not None:
        if score.p >= UNLIKELY:
            return "inside"
        return "better" if (score.value > score.null) == (score.better == "higher") else "worse"
    if score.null_low is None or score.null_high is None:
        return None
    if score.null_low <= score.value <= score.null_high:
        return "inside"
    return "better" if (score.value > score.null_high) == (score.better == "higher") else "worse"


def beats_chance(score: ScoreRecord) -> bool:
    """True if an attack's figure beats chance with p below 0.001.

    Where a record holds no probability, the 95 % interval of chance stands in for it.
    """
    if score.null is None or (score.value < score.null) != (score.better == "higher"):
        return False
    return score.p < RARE if score.p is not None else against_null(score) == "worse"


def short(evaluator: str) -> str:
    """An evaluator's name for people: the attack's own.

    >>> short("reidentification-contrastive-steps-150-"), short("membership-lira"), short("utility")
    ('contrastive-steps-150', 'lira', 'utility')
    """
    return evaluator.removeprefix("reidentification-").removeprefix("membership-").removesuffix("-")


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


def _prediction(score: ScoreRecord, digits: int | None) -> str:
    known = score.prediction_low is not None and score.prediction_high is not None
    return interval(score.prediction_low, score.prediction_high, digits) if known else ""


def _null(score: ScoreRecord, digits: int | None) -> str:
    if score.null is None:
        return ""
    if score.null_low is None or score.null_high is None:
        return number(score.null, digits)
    return f"{number(score.null, digits)} ({interval(score.null_low, score.null_high, digits)})"


class Column(MetricRecord):
    """A metric as a column of the board."""

    name: str

    @property
    def arrow(self) -> str:
        """An arrow in the direction that is better for the data owner."""
        return "↑" if self.better == "higher" else "↓"


def columns(records: Iterable[Record], others: Iterable[Record] = ()) -> tuple[Column, ...]:
    """All metrics of the records in board order; the newest description counts.

    What `others` say of a metric counts where none of `records` describes it. Groups stand in the order of `GROUPS`,
    others after them by name; within a group metrics stand by their `order`.
    """
    found: dict[str, MetricRecord] = {}
    for some in (others, records):
        for record in sorted(some, key=lambda record: (record.created, record.cell, record.evaluator)):
            found |= record.metrics
    made = [Column(name=name, **metric.model_dump()) for name, metric in found.items()]
    return tuple(sorted(made, key=_place))


def _place(column: Column) -> tuple[int, str, int, str]:
    group = GROUPS.index(column.group) if column.group in GROUPS else len(GROUPS)
    return group, column.group, column.order, column.name
