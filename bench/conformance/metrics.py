"""Checks of a metric, on evidence of the kind it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import torch

from bench.conformance.cause import blaming
from bench.conformance.outcome import PRESET, Skip, require
from bench.contract.sound_score import sound
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
        with blaming(cls.__call__):
            before = list(_bits(evidence))
            first = sound(metric(evidence))
            require(list(_bits(evidence))[: len(before)] == before, "it wrote into its evidence: work on a copy")
            require(first == metric(evidence), "the same evidence gave two different scores")


def _bits(held: object) -> Iterator[bytes]:
    """The numbers of every tensor and array in a piece of evidence, in the order in which it holds them."""
    if isinstance(held, torch.Tensor | np.ndarray):
        yield np.asarray(held.detach().cpu() if isinstance(held, torch.Tensor) else held).tobytes()
    elif isinstance(held, Mapping):
        for value in held.values():
            yield from _bits(value)
    elif isinstance(held, Sequence) and not isinstance(held, str | bytes):
        for value in held:
            yield from _bits(value)
    elif hasattr(held, "__dict__"):
        yield from _bits(vars(held))


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
