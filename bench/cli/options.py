"""Command line, suite and configuration file together: a RunSpec and the places it works in. The command line wins.

What the options are is said by the fields of `Choice` and `RunSpec`; here is only what their defaults come to.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from bench.cli.suite import parts
from bench.data.roots import resolve
from bench.isolation import find_isolation
from bench.plugins import registry
from bench.plugins.chosen import Chosen, choose
from bench.plugins.option import expected, given_flags, options
from bench.plugins.spec import PluginSpec, UsageError, parse, text
from bench.results.record_parts import MOST
from bench.results.results import Results
from bench.results.signing_key import read_public
from bench.runs.run_spec import RunSpec, Written
from bench.types import Attack, Method, Metric
from bench.workbench.choice import Choice
from bench.workbench.machine import choose_device, usable_memory, usual_jobs
from bench.workbench.place import Place
from leaderboard.packed_rows import ROWS, published_results

Words = Literal["all", "none"]  # in place of a list of attacks


def _model() -> type[BaseModel]:
    """What suite, configuration file and command line may say, by name, derived from the options."""
    fields: dict[str, Any] = {}
    for cls in (Choice, RunSpec):
        for name, known in options(cls).items():
            kind: Any = known.kind
            if known.many:
                kind = Annotated[list[kind], Field(min_length=1)]
            fields[known.many or name] = (kind | Words | None if name == "attacks" else kind | None, None)
    return create_model("Options", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def place(options: argparse.Namespace) -> Place:
    """The folders of a command: results, prepared data, and data roots. Raises UsageError for results in a file."""
    cache = Path(platformdirs.user_cache_dir("veil-bench")) / "data"
    roots = resolve(getattr(options, "data_root", None) or ())
    results = Path(getattr(options, "results", None) or "results")
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results {results}: expected a folder, found a file")
    named = getattr(options, "trusted", None)
    trusted = frozenset(read_public(path) for path in named) if named else None
    folder = results.resolve()
    published = (folder / ROWS).is_dir()
    return Place(published_results(folder, trusted) if published else Results(folder, trusted=trusted), cache, roots)


def site(options: argparse.Namespace) -> Path:
    """Where the pages go."""
    return Path(options.site).resolve() if options.site else place(options).results.root / "site"


def run_spec(parsed: argparse.Namespace) -> RunSpec:
    """What a command was asked for that takes one choice of methods and data; raises as `run_specs` does."""
    found = run_specs(parsed)
    if len(found) > 1:
        asked = parsed.suite or parsed.config
        if asked is None:
            sides = ", ".join(sorted({str(choice.size or "their own") for spec in found for choice in spec.choices}))
            raise UsageError(f"the methods are made for images of different sides ({sides}): choose one by --size")
        raise UsageError(f"{asked} has {len(found)} parts, and `bench {parsed.verb}` does one: name methods and data")
    return found[0]


def run_specs(parsed: argparse.Namespace) -> tuple[RunSpec, ...]:
    """What `bench run` was asked for, defaults filled in and plug-ins built: one for each part of a suite.

    Raises:
        UsageError: An unknown suite, option or plug-in, or a value that an option cannot take.
        DataError: A file of weights that is named is not there.
    """
    known = _model()
    told = (_run_spec(parsed, part, known) for part in parts(parsed, known.model_fields))
    return tuple(dict.fromkeys(each for spec in told for each in _by_side(spec)))


def _by_side(spec: RunSpec) -> Iterator[RunSpec]:
    """The spec in parts whose methods take images of one side."""
    alike: dict[tuple[Choice, ...], list[Chosen[Method]]] = {}
    for method in spec.methods:
        alike.setdefault(tuple(choice.sized_for(method) for choice in spec.choices), []).append(method)
    for choices, methods in alike.items():
        yield dataclasses.replace(spec, choices=choices, methods=tuple(methods))


def _run_spec(parsed: argparse.Namespace, part: Mapping[str, object], known: type[BaseModel]) -> RunSpec:
    """A part of a run, over which the command line wins."""
    given: dict[str, object] = {**part, **given_flags(parsed, Choice), **given_flags(parsed, RunSpec)}
    if parsed.attacks:
        given["attacks"] = parsed.attacks
    if isinstance(named := given.get("attacks"), list) and (
        words := [each for each in named if each in get_args(Words)]
    ):
        if len({str(each) for each in named}) > 1:
            others = ", ".join(str(each) for each in named if each != words[0])
            raise UsageError(f"--attack {words[0]} goes with no other attack: got {others} beside it")
        given["attacks"] = words[0]
    try:
        told = known.model_validate(given).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"option {where}: {expected(first)}") from error
    choices = _choices(told)
    first_choice, preset = choices[0], choices[0].preset
    asked = told.get("attacks", "all")
    isolation = find_isolation(told.get("isolation", "auto"))
    here = isolation == "none"  # then plug-ins from outside run in the judge's own process
    elsewhere = getattr(parsed, "executor", "local") != "local"  # what workers have cannot be seen from here
    wish = told.get("device", "auto")
    device = wish if elsewhere and wish != "auto" else choose_device(wish).type
    jobs = told.get("jobs") or usual_jobs(device)
    memory = told["memory"] * 2**30 if "memory" in told else usable_memory() / jobs
    attacks = _attacks(asked, preset, on_features=first_choice.features is not None, here=here)
    metrics = _metrics(told.get("metrics"), preset, in_feature_space=first_choice.extractor is not None)
    if "methods" not in told:  # said last: what was given is looked at all the same
        names = ", ".join(sorted(registry.entries("methods")))
        suite = " or --suite quickstart" if parsed.verb == "run" else ""
        raise UsageError(f"no method given; use --method NAME{suite}. Known: {names}")
    return RunSpec(
        choices=choices,
        methods=tuple(dict.fromkeys(choose("methods", spec, preset, here=here) for spec in _specs(told["methods"]))),
        attacks=attacks,
        metrics=metrics,
        evaluators=tuple(dict.fromkeys(registry.placed_name(name) for name in told.get("evaluators", ()))),
        controls=told.get("controls", asked == "all"),
        device=device,
        jobs=jobs,
        timeout=told.get("timeout"),
        memory=int(memory),
        overwrite=told.get("overwrite", "failed"),
        keep_releases=told.get("keep_releases", False),
        isolation=isolation,
        skip_absent=told.get("skip_absent", False),
    )


def check_side(size: int | None) -> None:
    """Raise UsageError where images of that side would be larger than any are prepared."""
    from bench.data.prepare import SIDE

    if size is not None and size > SIDE:
        raise UsageError(f"--size must be in [1, {SIDE}], got {size}")


def _choices(told: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Every choice of data: the options that may be repeated, each value with each."""
    known = options(Choice)
    single = {name: told.get(name) for name, option in known.items() if not option.many}
    if beyond := [seed for seed in told.get("seeds", ()) if abs(seed) > MOST]:
        raise UsageError(f"a seed must be at most {MOST}, got {beyond[0]}: tables of records have no room for it")
    check_side(told.get("size"))
    many = {name: told.get(option.many) or [None] for name, option in known.items() if option.many}
    first = Choice.written({**single, **{name: values[0] for name, values in many.items()}})
    # What an extractor says of its weights is asked once, for a file may be large.
    shared = {name: getattr(first, name) for name in single}
    made = []
    for values in product(*many.values()):
        part = Choice.read({"preset": first.preset, **dict(zip(many, values, strict=True))})
        made.append(dataclasses.replace(part, **shared))
    return tuple(dict.fromkeys(made))


def _specs(given: Sequence[Written]) -> tuple[PluginSpec, ...]:
    """Specs from `name[a=1]` or `{name: {a: 1}}`; parameters become text, as on the command line."""
    found = []
    for item in given:
        if isinstance(item, str):
            found.append(parse(item))
            continue
        for name, values in item.items():
            found.append(PluginSpec(name, None, tuple((key, text(value)) for key, value in (values or {}).items())))
    return tuple(found)


def _attacks(
    given: Sequence[Written] | Words, preset: str, *, on_features: bool, here: bool
) -> tuple[Chosen[Attack], ...]:
    """All attacks: those on membership only where features are released, for releases of images they take longest."""
    if given == "none":
        return ()
    if given == "all":
        known = [choose("attacks", name, preset) for name in registry.own("attacks")]
        for name, entry in registry.entries("attacks").items():
            if entry.origin != registry.HOME and entry.error is None:
                with contextlib.suppress(UsageError):  # broken: `bench list` says why
                    known.append(choose("attacks", name, preset, here=here))
        return tuple(attack for attack in known if on_features or attack.plugin.scores == "pairs")
    return tuple(choose("attacks", spec, preset, here=here) for spec in _specs(given))


def _metrics(given: Sequence[str] | None, preset: str, *, in_feature_space: bool) -> tuple[str, ...]:
    """The metrics as registered, or by file. Raises UsageError where two of them have one name."""
    if given is None:
        known = {
            name: cast("type[Metric[object]]", registry.load("metrics", name)) for name in registry.working("metrics")
        }
        return tuple(
            name for name, cls in known.items() if not cls.on_request or (cls.for_features and in_feature_space)
        )
    chosen = {str(made): made.plugin.name for made in (choose("metrics", name, preset) for name in given)}
    names = list(chosen.values())
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two metrics are called {twice[0]}: a record could hold the figure of one alone")
    return tuple(chosen)
