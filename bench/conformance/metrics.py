"""Checks of a metric, on evidence of the kind it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import torch

from bench.conformance.outcome import PRESET, Skip, require
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.types import Evaluator, Metric, column_of, evidence_type


def _carries_its_column(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    column_of(cls)
    better = getattr(cls, "better", None)
    require(better in ("higher", "lower"), f"{cls.__name__}.better must be 'higher' or 'lower', got {better!r}")


def _metric_is_sound(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    metric = cast("Metric[object]", registry.build("metrics", spec, PRESET))
    for evidence in _evidence(evidence_type(cls)):
        first, second = metric(evidence), metric(evidence)
        require(first == second, "the same evidence gave two different scores")
        require(first.value == first.value and abs(first.value) != float("inf"), "a score must be finite")
        if first.low is not None and first.high is not None:
            require(first.low <= first.high, f"the interval is upside down: {first.low} to {first.high}")
        require(first.low is not None or first.note != "", "a score without an interval must say why in its note")


def _evidence(kind: type) -> Iterator[object]:
    """Small pieces of evidence of one kind, from the evaluators that give it; other kinds are skipped."""
    known = [cast("type[Evaluator[object]]", registry.load("evaluators", name))
             for name in registry.working("evaluators")]  # fmt: skip
    found = [piece for cls in known if cls.evidence is kind for piece in cls.samples()]
    if not found:
        raise Skip(f"no evidence of the kind {kind.__name__} at hand")
    yield from found


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "carries its column": _carries_its_column,
    "score is sound": _metric_is_sound,
}
