"""Figures computed again from stored evidence, beside those in the record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

from pydantic import JsonValue

from bench.contract.seal import ContractError
from bench.plugins import registry
from bench.results.evidence_file import unpack
from bench.results.records import Record, score_record
from bench.runs.judge import judge
from bench.types import Metric, NotApplicable

CLOSE = 1e-6
"""Of a number: sums in another order, on another machine."""


def evidence_of(record: Record, content: bytes) -> dict[str, object]:
    """The evidence of a record, as its evaluator declares it. Raises EvidenceError."""
    return unpack(content, cast(Any, registry.load("evaluators", record.measured_by)).evidence)


def differences(record: Record, evidence: dict[str, object]) -> Iterator[str]:
    """Every figure of the record that does not follow from the evidence, in words."""
    for name, described in record.metrics.items():
        metric = cast("Metric[object]", cast(Any, registry.load("metrics", described.written))())
        said = record.scores.get(name)
        try:
            found = score_record(judge(metric, evidence), better=metric.better, unit=metric.unit)
        except NotApplicable:
            if said is not None:
                yield f"{name} is {said.value:g} in the record, and makes no sense of its evidence"
            continue
        except ContractError as error:
            yield f"{name} of its evidence is no sound figure: {error}"
            continue
        if said is None:
            yield f"{name} is not in the record, and is {found.value:g} of its evidence"
        elif where := _apart(said.model_dump(mode="json"), found.model_dump(mode="json"), ""):
            yield f"{name} is {said.value:g} in the record and {found.value:g} of its evidence (apart in{where})"


def _apart(a: JsonValue, b: JsonValue, where: str) -> str | None:
    """The first place where two figures differ by more than rounding; None where they agree."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where} its parts"
        return next((place for name in a if (place := _apart(a[name], b[name], f"{where} {name}"))), None)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return where
        return next((place for x, y in zip(a, b, strict=True) if (place := _apart(x, y, where))), None)
    if _number(a) and _number(b):
        same = math.isclose(cast(float, a), cast(float, b), rel_tol=CLOSE, abs_tol=1e-9)
    else:
        same = a == b
    return None if same else where


def _number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
