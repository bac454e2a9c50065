"""Paired comparison of rows on the same people and keys, and ranks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from bench.results.records import Record
from bench.statistics.confidence_intervals import Paired, holm, one_of_many, paired, rank_intervals
from bench.types import Replicates
from bench.workbench.choice import same_rows
from leaderboard.board import Row
from leaderboard.entries import Column
from leaderboard.sections import Section


@dataclass(frozen=True)
class Compared:
    """One figure of two rows.

    Args:
        column: The metric.
        by: The evaluators that gave the two figures: for privacy the attacks.
        a, b: The figures.
        keys: How many keys each was measured under; 0 if they cannot be compared.
        paired: How they differ; None if they cannot be compared.
        reason: Why they cannot; empty if they can.
    """

    column: Column
    by: tuple[str, str]
    a: float
    b: float
    keys: int
    paired: Paired | None
    reason: str


@dataclass(frozen=True)
class Ranked:
    """Rows of one data set by one figure, the owner's best first.

    Args:
        column: The metric.
        values: The figure of each row, by label.
        ranks: The lowest and highest rank of each; all hold at once.
        pairs: The probability of each pair being equal, corrected for all pairs.
        sizes: The difference of each pair, a - b or of guesses a / b, with the 95 % interval of that pair alone.
        ratio: Whether they differ by a ratio.
        left_out: Rows that cannot be compared with the rest, and why.
    """

    column: Column
    values: Mapping[str, float]
    ranks: Mapping[str, tuple[int, int]]
    pairs: Mapping[tuple[str, str], float]
    sizes: Mapping[tuple[str, str], tuple[float, float, float]]
    ratio: bool
    left_out: Mapping[str, str]


def why_not(a: Record, b: Record, metric: str) -> str:
    """The reason why two records' metric cannot be compared; else empty."""
    if a.dataset is None or b.dataset is None:
        return "a record without data"
    if not same_rows(a.choice, b.choice, a.dataset, b.dataset):
        apart = [name for name in a.choice if a.choice[name] != b.choice.get(name)] or ["rows or fingerprints"]
        return f"they speak of other rows: {', '.join(apart)} differ"
    ours, theirs = (record.scores[metric].replicates for record in (a, b))
    if ours is None or theirs is None:
        return (
            "a record keeps no replicates of it: data that may not be shared, membership of people who are not known, "
            "and figures without an interval have none"
        )
    if len(ours.by_key) != len(theirs.by_key):
        return f"as many keys are needed on both sides, got {len(ours.by_key)} and {len(theirs.by_key)}"
    if ours.people != theirs.people or ours.scale != theirs.scale:
        return "they were measured on other people, or other resamples of them"
    return ""


def compared(a: Row, b: Row, metrics: Iterable[str], attack: str | None = None) -> list[Compared]:
    """Two rows compared by each metric and attack that both have.

    Args:
        a, b: The rows.
        metrics: By name.
        attack: Only this evaluator's figures; None takes all.
    """
    pairs = []
    for name in metrics:
        for ours in a.records:
            theirs = next((record for record in b.records if record.evaluator == ours.evaluator), None)
            if theirs is None or name not in ours.scores or name not in theirs.scores:
                continue
            if attack is None or attack in (ours.evaluator, ours.attack and ours.attack.name):
                pairs.append(_one(a.entries[name].column, ours, theirs))
    return pairs


def _one(column: Column, a: Record, b: Record) -> Compared:
    reason = why_not(a, b, column.name)
    difference, keys = None, 0
    if not reason:
        ours, theirs = _replicates(a, column.name), _replicates(b, column.name)
        difference, keys = paired(ours, theirs), len(ours.by_key)
    figure_a, figure_b = (record.scores[column.name].value for record in (a, b))
    return Compared(column, (a.evaluator, b.evaluator), figure_a, figure_b, keys, difference, reason)


def _replicates(record: Record, metric: str) -> Replicates:
    replicates = record.scores[metric].replicates
    assert replicates is not None
    return replicates.read()


def _keys(record: Record, metric: str) -> int:
    replicates = record.scores[metric].replicates
    return 0 if replicates is None else len(replicates.by_key)


def ranked(rows: Sequence[Row], metric: str) -> Ranked | None:
    """Rows of one data set, preset and seed by one figure.

    None with fewer than two rows that can be compared. If rows differ in people or keys, the
    largest group with the same ones is compared; of equally large groups, the earlier.
    """
    with_figure = [row for row in rows if (entry := row.entries.get(metric)) and entry.score is not None]
    by_label = {row.label: next(r for r in row.records if r.evaluator == row.entries[metric].by) for row in with_figure}
    left_out: dict[str, str] = {}
    groups: list[dict[str, Record]] = []
    for label, record in by_label.items():
        reason = why_not(record, record, metric)
        if not reason and _keys(record, metric) == 1:
            reason = "one key says nothing of how keys vary"
        if reason:
            left_out[label] = reason
            continue
        alike = (group for group in groups if not why_not(next(iter(group.values())), record, metric))
        group = next(alike, None)
        if group is None:
            groups.append({label: record})
        else:
            group[label] = record
    largest = max(groups, key=len, default={})
    if len(largest) < 2:
        return None
    first = next(iter(largest.values()))
    others = {label: record for group in groups if group is not largest for label, record in group.items()}
    left_out |= {label: why_not(first, record, metric) for label, record in others.items()}
    column = with_figure[0].entries[metric].column
    sign = 1 if column.better == "higher" else -1
    values = {label: record.scores[metric].value for label, record in largest.items()}
    order = sorted(values, key=lambda label: -sign * values[label])
    replicates = {label: _replicates(record, metric) for label, record in largest.items()}
    tests = {(a, b): one_of_many(replicates[a], replicates[b]) for a, b in combinations(order, 2)}
    pairs = holm({names: one.p for names, one in tests.items()})
    sizes = {names: (one.value, one.low, one.high) for names, one in tests.items()}
    ranks = rank_intervals({label: sign * value for label, value in values.items()}, pairs)
    return Ranked(
        column,
        {label: values[label] for label in order},
        {label: ranks[label] for label in order},
        pairs,
        sizes,
        next(iter(replicates.values())).scale == "log",
        left_out,
    )


RANKED = ("utility-auc", "guesswork", "membership-auc")
MOST = 100  # most rows compared pair by pair: with more, the pairs take minutes

Ranks = Mapping[str, tuple[int, int, int]]
"""Lowest and highest rank, and of how many rows, by metric."""


@dataclass(frozen=True)
class Difference:
    """Two rows by one figure, on the same people and keys.

    Args:
        p: The probability that they are equal, corrected for all pairs of rows.
        value, low, high: The one less the other, with the 95 % interval of this pair alone; of guesses their ratio.
        ratio: Whether it is a ratio.
    """

    p: float
    value: float
    low: float
    high: float
    ratio: bool

    @property
    def turned(self) -> Difference:
        """The other against the one."""
        if self.ratio:
            return Difference(self.p, 1 / self.value, 1 / self.high, 1 / self.low, self.ratio)
        return Difference(self.p, -self.value, -self.high, -self.low, self.ratio)


@dataclass(frozen=True)
class Ranking:
    """Ranks and tests of all rows.

    Args:
        ranks: By cell and metric.
        tests: How two rows differ: by cell, other cell and metric.
    """

    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, Mapping[str, Difference]]] = field(default_factory=dict)


def ranking(parts: Sequence[Section]) -> Ranking:
    """Rows that speak of the very same rows of data, compared.

    Left out are reference methods, rows that only their author measured, and figures that are unrated or not
    certified.
    """
    groups: dict[str, list[Row]] = {}
    for part in parts:
        for row in part.rows:
            if row.records[0].method.role is None and not row.unrated and row.trusted:
                which = json.dumps([part.slug, row.choice, row.device], sort_keys=True)
                groups.setdefault(which, []).append(row)
    ranks: dict[str, dict[str, tuple[int, int, int]]] = {}
    tests: dict[str, dict[str, dict[str, Difference]]] = {}
    for rows in groups.values():
        cells = {row.label: row.cell for row in rows}
        for metric in RANKED if len(cells) <= MOST else ():
            certified = [row for row in rows if metric in row.entries and row.entries[metric].certified]
            order = ranked(certified, metric) if len(certified) > 1 else None
            if order is None:
                continue
            for label, (low, high) in order.ranks.items():
                ranks.setdefault(cells[label], {})[metric] = (low, high, len(order.ranks))
            for (a, b), p in order.pairs.items():
                difference = Difference(p, *order.sizes[a, b], ratio=order.ratio)
                tests.setdefault(cells[a], {}).setdefault(cells[b], {})[metric] = difference
                tests.setdefault(cells[b], {}).setdefault(cells[a], {})[metric] = difference.turned
    return Ranking(ranks, tests)
