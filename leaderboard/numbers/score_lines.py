"""Every figure as a flat line, its parts too: what the long tables hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.results.records import Record, ScoreRecord
from leaderboard.board import machine
from leaderboard.entries import reason
from leaderboard.protocols import protocol_of


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """A figure, or a place without one, with everything that tells it from others.

    Args:
        row: The row of the board: its address, and its name in the static API.
        part: Of the metric; empty for the whole.
        reason: Why there is no figure.
        device: The kind of device that it ran on: cpu or cuda.
        machine: The processor or accelerator.
    """

    row: str
    dataset: str | None
    dataset_parameters: str | None
    fingerprint: str | None
    public: str | None
    public_fingerprint: str | None
    method: str
    method_parameters: str
    preset: str
    seed: int
    keys: int
    cell: str
    evaluator: str
    kind: str
    attack: str | None
    attack_parameters: str | None
    status: str
    phase: str | None
    reason: str | None = None
    metric: str | None = None
    part: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    n: int | None = None
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    better: str | None = None
    unit: str | None = None
    note: str | None = None
    device: str
    machine: str | None
    protocol: int | None
    git: str | None
    created: str
    key: str


def score_lines(records: Iterable[tuple[str, Record]]) -> Iterator[ScoreLine]:
    """One line a figure; a metric or an evaluator without a figure has a line with its status and reason instead.

    Args:
        records: Each with the name of its row.
    """
    for row, record in records:
        common = _common(row, record)
        if record.status != "ok":
            yield replace(common, reason=reason(record))
        for metric, why in sorted(record.not_applicable.items()):
            yield replace(common, metric=metric, status="not-applicable", reason=why)
        for metric, whole in sorted(record.scores.items()):
            for part, score in flat(whole):
                yield replace(
                    common, metric=metric, part=part, value=score.value, low=score.low, high=score.high,
                    prediction_low=score.prediction_low, prediction_high=score.prediction_high, n=score.n,
                    null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
                    better=score.better, unit=score.unit, note=score.note,
                )  # fmt: skip


def flat(score: ScoreRecord, path: str = "") -> Iterator[tuple[str, ScoreRecord]]:
    """A score and all its parts, each with its path: "" for the whole, then "Edema", "Edema / test"."""
    yield path, score
    for name, part in score.parts.items():
        yield from flat(part, f"{path} / {name}" if path else name)


def _common(row: str, record: Record) -> ScoreLine:
    data, attack = record.dataset, record.attack
    return ScoreLine(
        row=row,
        dataset=data.name if data else None,
        dataset_parameters=json.dumps(data.parameters, sort_keys=True) if data else None,
        fingerprint=data.fingerprint if data else None,
        public=data.public if data else None,
        public_fingerprint=data.public_fingerprint if data else None,
        method=record.method.name,
        method_parameters=json.dumps(record.method.parameters, sort_keys=True),
        preset=record.preset,
        seed=record.seed,
        keys=record.keys,
        cell=record.cell,
        evaluator=record.evaluator,
        kind=record.kind,
        attack=attack.name if attack else None,
        attack_parameters=json.dumps(attack.parameters, sort_keys=True) if attack else None,
        status=record.status,
        phase=record.phase,
        device=record.device,
        machine=machine(record) or None,
        protocol=protocol_of(record),
        git=record.git,
        created=record.created,
        key=record.key,
    )
