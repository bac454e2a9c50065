"""The contract suite: what every plug-in must satisfy, in seconds. `bench check NAME` and `tests/contract/` run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial

import torch

from bench.conformance import attacks, datasets, evaluators, features, methods, metrics
from bench.conformance.outcome import Noted, Result, Skip, require
from bench.plugins import registry
from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, parse
from bench.types import NotApplicable

Check = Callable[[PluginSpec, torch.device], None]


def conform(group: Group, text: str, device: torch.device) -> list[Result]:
    """Run every check of the plug-in's group; one that fails does not stop the others."""
    spec = parse(text)
    results = []
    for title, work in _suite(group, spec, device).items():
        try:
            work()
        except (Skip, NotApplicable) as reason:
            results.append(Result(title, "skipped", str(reason)))
        except Noted as note:
            results.append(Result(title, "noted", str(note)))
        except Exception as error:  # an adapter may fail in any way, and each way is a finding
            results.append(Result(title, "failed", f"{type(error).__name__}: {error}"))
        else:
            results.append(Result(title, "passed"))
    return results


def _suite(group: Group, spec: PluginSpec, device: torch.device) -> Mapping[str, Callable[[], None]]:
    first = {"describes itself": partial(_describes_itself(group), spec, device)}
    if group == "methods":
        return {**first, **methods.checks(spec, device)}
    return {**first, **{title: partial(work, spec, device) for title, work in _SUITES[group].items()}}


def _describes_itself(group: Group) -> Check:
    wanted = {
        "methods": ("name", "source"),
        "attacks": ("name", "source", "knowledge"),
        "datasets": ("name", "title", "source", "public", "origin", "licence", "obtain"),
        "metrics": ("name", "unit", "better", "source"),
        "features": ("name", "source"),
        "evaluators": ("name", "source"),
    }[group]

    def work(spec: PluginSpec, device: torch.device) -> None:
        cls = registry.load(group, spec.name)
        for name in wanted:
            value = getattr(cls, name, None)
            require(isinstance(value, str) and value != "", f"{cls.__name__}.{name} must be a text, got {value!r}")
        require(bool(cls.__doc__), f"{cls.__name__} needs a docstring: its first line is shown by `bench list`")
        require(is_dataclass(cls) and cls.__dataclass_params__.frozen, f"{cls.__name__} must be a frozen dataclass")  # type: ignore[attr-defined]
        names = {field.name for field in fields(cls)}
        for preset, values in getattr(cls, "presets", {}).items():
            unknown = sorted(values.keys() - names)
            require(not unknown, f"preset {preset!r} sets parameters that do not exist: {unknown}")
        usual = {field.name for field in fields(cls) if field.default is not MISSING}
        unknown = sorted(getattr(cls, "unlearned", frozenset()) - usual)
        require(not unknown, f"unlearned names what is no parameter with a default: {unknown}")

    return work


_SUITES: Mapping[Group, Mapping[str, Check]] = {
    "attacks": attacks.CHECKS,
    "metrics": metrics.CHECKS,
    "datasets": datasets.CHECKS,
    "features": features.CHECKS,
    "evaluators": evaluators.CHECKS,
}
