"""The contract suite that every plug-in must satisfy, in seconds.

`bench check NAME` and `tests/contract/` run it.
"""

from __future__ import annotations

__figures__ = False

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import partial
from io import StringIO

import torch

from bench.conformance import attacks, methods, other_groups
from bench.conformance.method_basics import CORE
from bench.conformance.outcome import Noted, Result, Skip, cause_of, require
from bench.contract.seal import ContractError
from bench.plugins import registry
from bench.plugins.groups import SAID, Group
from bench.plugins.registry import heard
from bench.plugins.spec import PluginSpec, parse
from bench.plugins.third_party import believed
from bench.types import NotApplicable
from bench.wire.text import named

Check = Callable[[PluginSpec, torch.device], None]
DESCRIBED = frozenset(
    {"describes itself", "can be built", "fits public rows", "draws keys", "keys cannot be guessed",
     "carries its column", "says whose it is"}
)  # fmt: skip
"""The checks that a plug-in passes before it has worked."""


def conform(
    group: Group, text: str, device: torch.device, begun: Callable[[str], None] = lambda title: None,
    raised: Callable[[BaseException], None] | None = None,
) -> list[Result]:  # fmt: skip
    """Run the checks of the plug-in's group, up to the first cause.

    A check that depends on a failed one is not reached.

    Args:
        group: Of the plug-in.
        text: Its name, or FILE.py:CLASS.
        device: Where to work.
        begun: Told the title of every check as it begins.
        raised: Told what a failed check raised, while its frames live; what the plug-in prints is then printed. None
            keeps what it prints from the user.
    """
    spec = parse(text)
    results: list[Result] = []
    failed: list[str] = []
    output = StringIO()
    for title, work in _suite(group, spec, device).items():
        begun(title)
        if (cause := _cause(group, title, failed)) is not None:
            results.append(Result(title, "not-reached", f'because "{cause}" failed'))
            continue
        start = time.perf_counter()
        with redirect_stdout(output) if raised is None else nullcontext():
            result = _outcome(title, work, group, spec, raised)
        results.append(replace(result, seconds=time.perf_counter() - start))
        failed += [title] if result.status == "failed" else []
    if (idle := _idle(results)) is not None:
        results.append(idle)
    if printed := output.getvalue().strip():
        detail = f"it prints ({printed.splitlines()[0]!r:.60}): a run keeps that in its logs; `bench.progress` shows"
        results.append(Result("keeps quiet", "noted", f"{detail} where it is"))
    return results


def _idle(results: Sequence[Result]) -> Result | None:
    """A note if every check of the plug-in at work was skipped."""
    worked = [result for result in results if result.check not in DESCRIBED]
    if all(result.status == "skipped" for result in worked):
        return Result("is tried at work", "noted", f"it was not, only described: {worked[0].detail}")
    return None


def _cause(group: Group, title: str, failed: list[str]) -> str | None:
    """The failure that prevents a check; None if it can run."""
    if group != "methods":
        return failed[0] if failed else None
    core = [each for each in failed if each in ("describes itself", *CORE)]
    return core[0] if core else next((each for each in failed if methods.NEEDS.get(title) == each), None)


def _outcome(
    title: str, work: Callable[[], None], group: Group, spec: PluginSpec,
    raised: Callable[[BaseException], None] | None,
) -> Result:  # fmt: skip
    try:
        with heard() as signalled:
            work()
    except (Skip, NotApplicable) as reason:
        return Result(title, "skipped", str(reason))
    except Noted as note:
        return Result(title, "noted", str(note))
    except BaseException as error:  # a plug-in may fail in any way, and each way is a finding
        if signalled(error):
            raise
        if raised is not None:
            raised(error)
        with suppress(Exception):  # the class that cannot be loaded is what failed
            cause = cause_of(error, registry.load(group, spec.name))
            return Result(title, "failed", _said(error), cause.where, cause.trace)
        return Result(title, "failed", _said(error))
    return Result(title, "passed")


def _said(error: BaseException) -> str:
    if isinstance(error, ContractError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it ends the process (SystemExit: {error.code}): raise an error that says what is wrong"
    if isinstance(error, KeyboardInterrupt):
        return f"{named(error)}, which stops a command as Ctrl-C does: raise an error that says what is wrong"
    return named(error)


def _suite(group: Group, spec: PluginSpec, device: torch.device) -> Mapping[str, Callable[[], None]]:
    first = {"describes itself": partial(_describes_itself(group), spec, device)}
    if group == "methods":
        return {**first, **methods.checks(spec, device)}
    return {**first, **{title: partial(work, spec, device) for title, work in _SUITES[group].items()}}


def _require_believable(cls: type, name: str) -> None:
    """Refuse class variables that a run would refuse."""
    value = getattr(cls, name, "")
    if isinstance(value, property):  # known of an instance alone: it may be that of an attack which it holds
        return
    try:
        believed(name, sorted(value) if isinstance(value, frozenset) else value)
    except ValueError as error:
        raise ContractError(f"{cls.__name__}.{name} is {value!r:.80}: {error}") from None


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
        for name in SAID.get(group, ("name",)):
            _require_believable(cls, name)
        own = getattr(cls, "name", None)
        taken = group in SAID and own != spec.name and own in registry.entries(group)
        require(
            not taken, f"{cls.__name__}.name, {own}, is that of a registered {registry.noun(group)}: choose another"
        )
        lacking = sorted(getattr(cls, "__abstractmethods__", ()))
        require(
            not lacking, f"{cls.__name__} must define {' and '.join(lacking)}: docs/how-to/write-a-plug-in.md shows one"
        )
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
    "metrics": other_groups.METRICS_CHECKS,
    "datasets": other_groups.DATASETS_CHECKS,
    "features": other_groups.FEATURES_CHECKS,
    "evaluators": other_groups.EVALUATORS_CHECKS,
}
