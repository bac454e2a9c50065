"""Records to rows: what stands in each place of the board, as typed data that pages and the terminal both print.

    for row in ordered(rows(records), "reid-auc"):
        entry = row.entries["reid-auc"]
        print(row.label, row.preset, row.seed, entry.text, entry.interval, entry.null, entry.by)

Nothing here reads a file or a clock: the same records give the same rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from bench.records import ClaimRecord, DatasetRecord, Record, ScoreRecord, Status
from leaderboard.columns import Column, columns

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
    """What stands in one place of the board.

    Args:
        column: The metric.
        status: "ok" where there is a figure; otherwise why there is none.
        text: The figure, or the status in words; never empty.
        interval: The 95 % interval; "no interval" for a figure without one; empty without a figure.
        null: What chance gives, with its interval; empty where unknown.
        against_null: Where the figure lies against the 95 % interval of chance; None where there is none. "inside":
            not distinguishable from chance; "better" or "worse": outside it, in the direction an owner wants or not.
        by: The evaluator (for privacy: the attack) that gave the figure.
        score: The figure itself; None without one.
        gaps: Evaluators that should have given this figure and did not.
        reason: Why there is no figure; empty where there is one, and for "not run".
    """

    column: Column
    status: EntryStatus
    text: str
    interval: str = ""
    null: str = ""
    against_null: Literal["inside", "better", "worse"] | None = None
    by: str = ""
    score: ScoreRecord | None = None
    gaps: tuple[Gap, ...] = ()
    reason: str = ""

    @property
    def incomplete(self) -> bool:
        """Whether an evaluator failed or timed out, so that the weakest figure may not be the weakest."""
        return any(gap.status in ("failed", "timed-out") for gap in self.gaps)


@dataclass(frozen=True)
class Row:
    """One method with its parameters on one data set, preset and seed.

    Args:
        dataset: The data set's name.
        data: The data set as scored; None where no evaluator got as far as reading it.
        method, parameters, label: The method; `label` is both as the command line takes them.
        preset, seed, keys, cell: Which run.
        entries: One entry a metric, weakest over the attacks; keys are metric names in column order.
        attacks: One set of entries an attack, by evaluator name; keys as in `entries`, attack metrics only.
        claim, claim_text: The formal claim, and it in words.
        device: What throughput was measured on; empty where unknown.
        records: Everything the row was made of, by evaluator name.
    """

    dataset: str
    data: DatasetRecord | None
    method: str
    parameters: Mapping[str, JsonValue]
    label: str
    preset: str
    seed: int
    keys: int
    cell: str
    entries: Mapping[str, Entry]
    attacks: Mapping[str, Mapping[str, Entry]]
    claim: ClaimRecord | None
    claim_text: str
    device: str
    records: tuple[Record, ...] = field(repr=False)


def rows(records: Iterable[Record], folders: Mapping[str, str] | None = None) -> list[Row]:
    """One row a cell, in the order of data set, method, parameters, preset and seed. Records with `limit` are left out.

    Args:
        records: In any order.
        folders: Cell to data-set name, for cells that failed before they read their data.
    """
    accepted = [record for record in records if record.limit is None]
    shown = columns(accepted)
    cells: dict[tuple[str, ...], list[Record]] = {}
    names = {record.cell: record.dataset.name for record in accepted if record.dataset}
    for record in accepted:
        dataset = names.get(record.cell) or (folders or {}).get(record.cell) or "data set not read"
        run = (record.preset, f"{record.seed:020d}", record.cell)
        cells.setdefault((dataset, record.method.name, label(record), *run), []).append(record)
    return [_row(key[0], sorted(cells[key], key=lambda record: record.evaluator), shown) for key in sorted(cells)]


def _row(dataset: str, records: Sequence[Record], shown: Sequence[Column]) -> Row:
    first = records[0]
    data = next((record.dataset for record in records if record.dataset), None)
    claim = next((record.claim for record in records if record.claim), None)
    attacks = [record for record in records if record.kind == "attack"]
    timed = next((record for record in records if record.kind == "throughput" and record.status == "ok"), None)
    return Row(
        dataset=dataset,
        data=data,
        method=first.method.name,
        parameters=first.method.parameters,
        label=label(first),
        preset=first.preset,
        seed=first.seed,
        keys=first.keys,
        cell=first.cell,
        entries={column.name: entry(records, column) for column in shown},
        attacks={
            record.evaluator: {c.name: entry([record], c) for c in shown if c.kind == "attack"} for record in attacks
        },
        claim=claim,
        claim_text=claim_text(claim, reached=any(record.status == "ok" for record in records)),
        device=device(timed) if timed else "",
        records=tuple(records),
    )


def entry(records: Sequence[Record], column: Column) -> Entry:
    """The weakest figure of a metric over the records of one cell, or why there is none.

    Random scores (`FLOOR`) are the figure only where no other attack gave one.
    """
    relevant = [record for record in records if record.kind == column.kind]
    figures = [
        (r.scores[column.name], r.evaluator, r) for r in relevant if r.status == "ok" and column.name in r.scores
    ]
    gaps = tuple(gap for record in relevant if (gap := _gap(record, column.name)))
    real = [figure for figure in figures if figure[2].attack is None or figure[2].attack.name != FLOOR] or figures
    if not real:
        status: EntryStatus = next((s for s in GRAVITY if any(gap.status == s for gap in gaps)), "not-run")
        reason = "; ".join(f"{gap.evaluator}: {gap.reason}" for gap in gaps if gap.status == status)
        return Entry(column, status, WORDS[status], gaps=gaps, reason=reason)
    sign = 1 if column.better == "higher" else -1
    score, by, _ = min(real, key=lambda figure: (sign * figure[0].value, figure[1]))
    return Entry(
        column, "ok", number(score.value, column.digits), interval(score.low, score.high, column.digits),
        _null(score, column.digits), against_null(score), by, score, gaps,
    )  # fmt: skip


def _gap(record: Record, metric: str) -> Gap | None:
    """Why `record` has no figure for `metric`; None where it has one, or was never asked for one."""
    if record.status != "ok":
        return Gap(record.evaluator, record.status, record.not_applicable.get(metric) or reason(record))
    if metric in record.not_applicable:
        return Gap(record.evaluator, "not-applicable", record.not_applicable[metric])
    return None


def reason(record: Record) -> str:
    """Why a record holds no scores, with the phase it stopped in."""
    text = record.reason or "no reason was recorded"
    return f"{text} (in {record.phase})" if record.phase else text


def ordered(board: Iterable[Row], metric: str) -> list[Row]:
    """The rows from the best to the worst for the data owner by one metric; rows without the figure come last."""

    def place(row: Row) -> tuple[int, float]:
        found = row.entries.get(metric)
        if found is None or found.score is None:
            return 1, 0.0
        return 0, -found.score.value if found.column.better == "higher" else found.score.value

    return sorted(board, key=place)


def against_null(score: ScoreRecord) -> Literal["inside", "better", "worse"] | None:
    """Where a figure lies against the 95 % interval of chance; None where chance has no interval."""
    if score.null_low is None or score.null_high is None:
        return None
    if score.null_low <= score.value <= score.null_high:
        return "inside"
    return "better" if (score.value > score.null_high) == (score.better == "higher") else "worse"


def label(record: Record) -> str:
    """Method and parameters as the command line takes them: dp-simple[scale=20]."""
    parameters = parameters_text(record.method.parameters)
    return f"{record.method.name}[{parameters}]" if parameters else record.method.name


def parameters_text(parameters: Mapping[str, JsonValue]) -> str:
    """Parameters as name=value, sorted by name.

    >>> parameters_text({"scale": 20.0, "clip": None, "mode": "l1"})
    'clip=none,mode=l1,scale=20.0'
    """
    return ",".join(f"{name}={_plain(value)}" for name, value in sorted(parameters.items()))


def _plain(value: JsonValue) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def claim_text(claim: ClaimRecord | None, *, reached: bool) -> str:
    """A formal claim in words; `reached` tells a method without a claim from one that never got so far."""
    if claim is None:
        return "no claim" if reached else "not reached"
    if claim.epsilon is None:
        return "∞"
    return number(claim.epsilon, None)


def device(record: Record) -> str:
    """The name of the device a record was measured on; empty where the record does not say."""
    for name in ("accelerator", "processor", "device"):
        value = record.hardware.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def number(value: float, digits: int | None) -> str:
    """A figure in print: fixed decimals, or about three significant digits where `digits` is None.

    >>> number(0.5, 3), number(1, None), number(8411.2, None), number(1.234e9, None), number(-0.0004, None)
    ('0.500', '1.00', '8,411', '1.23 × 10⁹', '−0.0004')
    """
    size = abs(value)
    if digits is not None:
        text = f"{value:.{digits}f}"
    elif size >= 1e7 or 0 < size < 1e-4:
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


def _null(score: ScoreRecord, digits: int | None) -> str:
    if score.null is None:
        return ""
    if score.null_low is None or score.null_high is None:
        return number(score.null, digits)
    return f"{number(score.null, digits)} ({interval(score.null_low, score.null_high, digits)})"
