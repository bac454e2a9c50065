"""Checks of an evaluator: what it says of itself, and the samples of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast

import torch

from bench.conformance.outcome import Skip, require
from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.types import Attack, Evaluator


def _class(spec: PluginSpec) -> type[Evaluator[Any]]:
    return cast("type[Evaluator[Any]]", registry.load("evaluators", spec.name))


def _fields_fit(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    require(isinstance(getattr(cls, "evidence", None), type), f"{cls.__name__}.evidence must be the type that it gives")
    names = [field.name for field in fields(cast(Any, cls))]
    if cls.scores is None:
        require(names == [], f"only an evaluator of attacks has a field, its attack: got {names}")
        require(cls.controls is None, "only an evaluator of attacks has controls")
    else:
        require(names == ["attack"], f"an evaluator of attacks has one field, attack: got {names}")


def _keys_count(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    made = cls() if cls.scores is None else cast(Any, cls)(cast(Attack, None))
    for name, preset in PRESETS.items():
        require(made.keys(preset) >= 1, f"keys must be at least 1, got {made.keys(preset)} at preset {name}")


def _samples_are_evidence(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    samples = list(cls.samples())
    if not samples:
        raise Skip("it gives no samples, so that metrics of its evidence cannot be tried without a run")
    for sample in samples:
        require(
            isinstance(sample, cls.evidence), f"a sample must be {cls.evidence.__name__}, got {type(sample).__name__}"
        )


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "fields fit": _fields_fit,
    "keys count": _keys_count,
    "samples are evidence": _samples_are_evidence,
}
