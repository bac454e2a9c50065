"""The numbers behind the pages: a flat CSV (one row a score, parts included) and all records as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping

from bench.results.records import SCHEMA, Record, ScoreRecord, content_of
from leaderboard.board import device
from leaderboard.entries import reason

FIELDS = (
    "dataset", "dataset_parameters", "fingerprint", "public", "public_fingerprint", "method", "method_parameters",
    "preset", "seed", "keys", "cell", "evaluator", "kind", "attack", "attack_parameters", "status", "phase", "reason",
    "metric", "part", "value", "low", "high", "prediction_low", "prediction_high", "n", "null", "null_low",
    "null_high", "p", "better", "unit", "note",
    "device", "git", "created", "key",
)  # fmt: skip
Field = str | int | float | None


def results_csv(records: Iterable[Record]) -> str:
    """One row a score; a metric or an evaluator without a figure has a row with its status and reason instead.

    Text that a spreadsheet would run as a formula gets an apostrophe before it; numbers stay numbers.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for record in records:
        for line in _lines(record):
            writer.writerow({name: plain(value) for name, value in line.items()})
    return text.getvalue()


def results_json(records: Iterable[Record]) -> str:
    """Every record as its file holds it, with digest and signature, in one list, with sorted keys."""
    content = {"schema": SCHEMA, "records": [content_of(record) for record in records]}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def plain(value: Field) -> Field:
    """The value as a spreadsheet may have it.

    >>> plain("=1+1"), plain("identity"), plain(-1.5)
    ("'=1+1", 'identity', -1.5)
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r", "|") and value:
        return f"'{value}" if value.strip() else value
    return value


def flat(score: ScoreRecord, path: str = "") -> Iterator[tuple[str, ScoreRecord]]:
    """A score and all its parts, each with its path: "" for the whole, then "Edema", "Edema / test"."""
    yield path, score
    for name, part in score.parts.items():
        yield from flat(part, f"{path} / {name}" if path else name)


def _lines(record: Record) -> Iterator[Mapping[str, Field]]:
    data, attack = record.dataset, record.attack
    common: dict[str, Field] = {
        "dataset": data.name if data else None,
        "dataset_parameters": json.dumps(data.parameters, sort_keys=True) if data else None,
        "fingerprint": data.fingerprint if data else None,
        "public": data.public if data else None,
        "public_fingerprint": data.public_fingerprint if data else None,
        "method": record.method.name,
        "method_parameters": json.dumps(record.method.parameters, sort_keys=True),
        "preset": record.preset,
        "seed": record.seed,
        "keys": record.keys,
        "cell": record.cell,
        "evaluator": record.evaluator,
        "kind": record.kind,
        "attack": attack.name if attack else None,
        "attack_parameters": json.dumps(attack.parameters, sort_keys=True) if attack else None,
        "status": record.status,
        "phase": record.phase,
        "device": device(record) or None,
        "git": record.git,
        "created": record.created,
        "key": record.key,
    }
    if record.status != "ok":
        yield common | {"reason": reason(record)}
    for metric, why in sorted(record.not_applicable.items()):
        yield common | {"metric": metric, "status": "not-applicable", "reason": why}
    for metric, whole in sorted(record.scores.items()):
        for part, score in flat(whole):
            yield common | {
                "metric": metric, "part": part, "value": score.value, "low": score.low, "high": score.high,
                "prediction_low": score.prediction_low, "prediction_high": score.prediction_high,
                "n": score.n, "null": score.null, "null_low": score.null_low, "null_high": score.null_high,
                "p": score.p, "better": score.better, "unit": score.unit, "note": score.note,
            }  # fmt: skip
