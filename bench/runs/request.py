"""A command's request: options over configuration over suite, as specs with plug-ins.

The options are the fields of `Choice` and `RunSpec`; their defaults are filled in here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from bench.data.raw_files import DATA_ROOTS, config_path
from bench.data.yaml_text import YamlError, read_yaml
from bench.disk.disk_errors import unread
from bench.isolation import check_confined, find_isolation
from bench.plugins import registry
from bench.plugins.configured import Configured, configure
from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, UsageError, alternatives, did_you_mean, expected, options, parse, text
from bench.results.record_parts import MOST
from bench.runs.engine import EngineOptions
from bench.runs.run_spec import RunSpec, Written
from bench.types import Attack, Method, Metric
from bench.workbench.choice import Choice
from bench.workbench.machine import device_type, usable_memory, usual_jobs

SUITES = Path(__file__).parents[1] / "suites"
ENGINE = "engine"  # in a configuration file: options of SLURM or Ray
PARTS = "parts"  # in a file: a list of mappings of options; each is a run of its own
COMMAND_LINE = ("data_root", "dry_run", "executor", "no_site", "results", "secret", "sign", "site", "suite")
MOST_SEEDS = 1000  # of a span
_SPAN = re.compile(r"\s*(?P<first>[+-]?[0-9]+)\s*(-\s*(?P<last>[0-9]+)\s*)?")
Words = Literal["all", "none"]  # in place of a list of attacks


@dataclass(frozen=True)
class Request:
    """The request of a command.

    Args:
        options: Values by their names in a configuration file; they win over `config` and `suite`.
        suite: The name of a suite that ships with the project.
        config: A YAML file of options, which wins over `suite`.
        verb: The command, for messages.
        local: Jobs run on this machine, so that its devices decide what "auto" means.
    """

    options: Mapping[str, object] = field(default_factory=dict)
    suite: str | None = None
    config: Path | None = None
    verb: str = "run"
    local: bool = True


def suites() -> list[str]:
    """The names of the suites that ship with the project."""
    return sorted(path.stem for path in SUITES.glob("*.yaml"))


def _model() -> type[BaseModel]:
    """A model of options by name, for suite, configuration and command line."""
    fields: dict[str, Any] = {}
    for cls in (Choice, RunSpec):
        for name, known in options(cls).items():
            kind: Any = known.kind
            if known.many:
                kind = Annotated[list[kind], Field(min_length=1)]
            fields[known.many or name] = (kind | Words | None if name == "attacks" else kind | None, None)
    return create_model("Options", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def run_spec(request: Request) -> RunSpec:
    """The spec of a command for one choice; raises as `run_specs` does."""
    specs = run_specs(request)
    if len(specs) > 1:
        file = request.suite or request.config
        if file is None:
            sides = ", ".join(sorted({str(choice.size or "their own") for spec in specs for choice in spec.choices}))
            raise UsageError(f"the methods are made for images of different sides ({sides}): choose one by --size")
        raise UsageError(f"{file} has {len(specs)} parts, and `bench {request.verb}` does one: name methods and data")
    return specs[0]


def run_specs(request: Request) -> tuple[RunSpec, ...]:
    """Specs of `bench run`, with defaults and plug-ins; one a suite's part.

    Raises:
        UsageError: An unknown suite, option or plug-in, or a value that an option cannot take.
        DataError: A file of weights that is named is not there.
    """
    known = _model()
    specs = (_run_spec(request, part, known) for part in parts(request, known.model_fields))
    return tuple(dict.fromkeys(part for spec in specs for part in _by_side(spec)))


def choice_of(request: Request) -> Choice:
    """The one choice of data of a request.

    Raises as `run_specs`, and UsageError for several choices.
    """
    known = _model()
    choices = _choices(_told(request.options, known))
    if len(choices) > 1:
        raise UsageError(f"one data set under one seed is opened at a time, got {len(choices)} of them")
    return choices[0]


def _by_side(spec: RunSpec) -> Iterator[RunSpec]:
    """The spec in parts whose methods take images of one side."""
    alike: dict[tuple[Choice, ...], list[Configured[Method]]] = {}
    for method in spec.methods:
        alike.setdefault(tuple(choice.kept_for(method).sized_for(method) for choice in spec.choices), []).append(method)
    for choices, methods in alike.items():
        yield dataclasses.replace(spec, choices=choices, methods=tuple(methods))


def _run_spec(request: Request, part: Mapping[str, object], known: type[BaseModel]) -> RunSpec:
    """A part of a run, over which the command line wins."""
    given: dict[str, object] = {**part, **request.options}
    if isinstance(named := given.get("attacks"), list) and (
        words := [each for each in named if each in get_args(Words)]
    ):
        if len({str(each) for each in named}) > 1:
            others = ", ".join(str(each) for each in named if each != words[0])
            raise UsageError(f"--attack {words[0]} goes with no other attack: got {others} beside it")
        given["attacks"] = words[0]
    told = _told(given, known)
    choices = _choices(told)
    first_choice, preset = choices[0], choices[0].preset
    asked = told.get("attacks", "all")
    wish = told.get("isolation", "auto")
    isolation = find_isolation(wish)
    check_confined(isolation, wish, _named(told, asked))
    here = isolation == "none"  # then plug-ins from outside run in the judge's own process
    place = told.get("device", "auto")
    device = place if not request.local and place != "auto" else device_type(place)
    jobs = told.get("jobs") or usual_jobs(device)
    memory = told["memory"] * 2**30 if "memory" in told else usable_memory() / jobs
    specs = _specs(told.get("methods", ()))
    methods = tuple(dict.fromkeys(configure("methods", spec, preset, here=here) for spec in specs))
    # Of rows that another tool released, who is among them is asked as of features.
    recorded = any(method.plugin.releases is not None for method in methods)
    attacks = _attacks(asked, preset, membership=recorded or first_choice.features is not None, here=here)
    metrics = _metrics(told.get("metrics"), preset, all_kinds=recorded or first_choice.extractor is not None)
    if "methods" not in told:  # said last: what was given is looked at all the same
        names = ", ".join(sorted(registry.entries("methods")))
        suite = " or --suite quickstart" if request.verb == "run" else ""
        raise UsageError(f"no method given; use --method NAME{suite}. Known: {names}")
    return RunSpec(
        choices=choices,
        methods=methods,
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


def _told(given: Mapping[str, object], known: type[BaseModel]) -> dict[str, Any]:
    """The options that were given, checked."""
    try:
        return known.model_validate(given).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        name, *place = first["loc"]
        where = f"[{place[0]}]" if place and isinstance(place[0], int) else ""
        raise UsageError(f"option {name}{where}: {expected(first)}") from error


def _named(told: Mapping[str, Any], attacks: Sequence[Written] | Words) -> Iterator[tuple[Group, PluginSpec]]:
    """The methods and attacks of a request."""
    for spec in _specs(told.get("methods", ())):
        yield "methods", spec
    if not isinstance(attacks, str):
        named = _specs(attacks)
    else:
        named = tuple(PluginSpec(name) for name in registry.entries("attacks")) if attacks == "all" else ()
    for spec in named:
        yield "attacks", spec


def check_side(size: int | None) -> None:
    """Raise UsageError if that side is larger than any images are prepared."""
    from bench.data.prepare import SIDE

    if size is not None and size > SIDE:
        raise UsageError(f"--size must be in [1, {SIDE}], got {size}")


def _choices(told: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Every choice of data: each value of repeated options with each other."""
    known = options(Choice)
    told = {**told, "seeds": list(_seeds(told.get("seeds", ())))}
    told["datasets"] = [each for written in told.get("datasets", ()) for each in alternatives(written)]
    single = {name: told.get(name) for name, option in known.items() if not option.many}
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
    """Specs from `name[a=1|3]` or `{name: {a: [1, 3]}}`; parameters become text."""
    found: list[PluginSpec] = []
    for item in given:
        if isinstance(item, str):
            found += map(parse, alternatives(item.strip()))
            continue
        for name, values in item.items():
            ways = [
                [(key, text(each)) for each in (value if isinstance(value, list) else [value])]
                for key, value in (values or {}).items()
            ]
            found += [PluginSpec(name, None, way) for way in product(*ways)]
    return tuple(found)


def _seeds(given: Sequence[int | str]) -> Iterator[int]:
    """Seeds, with those of a span such as "0-4" one by one."""
    for each in given:
        found = _SPAN.fullmatch(str(each))
        if found is None:
            raise UsageError(f"a seed must be a whole number, or a span such as 0-4, got {each!r}")
        first = int(found["first"])
        last = first if found["last"] is None else int(found["last"])
        for seed in (first, last):
            if abs(seed) > MOST:
                raise UsageError(
                    f"a seed must be at most {MOST}, got {seed}: tables of records cannot hold a larger one"
                )
        if not first <= last < first + MOST_SEEDS:
            raise UsageError(f"a span of seeds goes upwards and holds at most {MOST_SEEDS}, got {each}")
        yield from range(first, last + 1)


def _attacks(
    given: Sequence[Written] | Words, preset: str, *, membership: bool, here: bool
) -> tuple[Configured[Attack], ...]:
    """All attacks; those on membership only if these are asked for."""
    if given == "none":
        return ()
    if given == "all":
        known = [configure("attacks", name, preset) for name in registry.own("attacks")]
        for name, entry in registry.entries("attacks").items():
            if entry.origin != registry.HOME and entry.error is None:
                with contextlib.suppress(UsageError):  # broken: `bench list` says why
                    known.append(configure("attacks", name, preset, here=here))
        return tuple(attack for attack in known if membership or attack.plugin.scores == "pairs")
    return tuple(configure("attacks", spec, preset, here=here) for spec in _specs(given))


def _metrics(given: Sequence[str] | None, preset: str, *, all_kinds: bool) -> tuple[str, ...]:
    """Metrics, registered or by file; `all_kinds` takes those `for_features` too.

    Raises UsageError if two share a name.
    """
    if given is None:
        known = {
            name: cast("type[Metric[object]]", registry.load("metrics", name)) for name in registry.working("metrics")
        }
        return tuple(name for name, cls in known.items() if not cls.on_request or (cls.for_features and all_kinds))
    chosen = {str(made): made.plugin.name for made in (configure("metrics", name, preset) for name in given)}
    names = list(chosen.values())
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two metrics are called {twice[0]}: a record holds one figure under a name")
    return tuple(chosen)


def parts(request: Request, known: Collection[str]) -> list[dict[str, object]]:
    """Each part's options; configuration wins over suite. One part without either.

    Raises:
        UsageError: An unknown suite or option, a file that is none of options, or two files with parts.
    """
    shared: dict[str, object] = {}
    found: list[dict[str, object]] = []
    for path in ([_suite(request.suite)] if request.suite else []) + ([request.config] if request.config else []):
        told = _read(path)
        own = told.pop(PARTS, None)
        if path == request.config:
            told.pop(ENGINE, None)
        _check(path, told, known)
        shared |= told
        if own is None:
            continue
        if found:
            raise UsageError(f"{path} has parts, and so has the suite {request.suite}: only one of them may")
        if not isinstance(own, list) or not own:
            raise UsageError(f"{path}: {PARTS} must be a list of mappings of options, got {own!r:.80}")
        for each in own:
            if not isinstance(each, dict):
                raise UsageError(f"{path}: a part must be a mapping of options, got {each!r:.80}")
            _check(path, each, known)
        found = own
    return [_flat({**shared, **each}) for each in found] or [_flat(shared)]


def _flat(told: Mapping[str, object]) -> dict[str, object]:
    """Nested lists flattened, so that parts can share entries by YAML anchors."""

    def entries(value: object) -> list[object]:
        return [entry for each in value for entry in entries(each)] if isinstance(value, list) else [value]

    return {key: entries(value) if isinstance(value, list) else value for key, value in told.items()}


def engine_options(flags: Sequence[str], config: Path | None) -> EngineOptions:
    """The engine's options: command line over configuration file. Raises UsageError."""
    told = _read(config).get(ENGINE, {}) if config else {}
    if not isinstance(told, dict):
        raise UsageError(f"{config}: {ENGINE} must be a mapping of options, got {told!r:.80}")
    return EngineOptions.read(flags, told)


def _suite(name: str) -> Path:
    path = SUITES / f"{name}.yaml"
    known = suites()
    if name not in known:
        hint = f"a file is named by --config {name}" if Path(name).suffix else did_you_mean(name, known)
        raise UsageError(f"unknown suite {name!r}; {hint}")
    return path


def _read(path: Path) -> dict[str, object]:
    try:
        found = read_yaml(path) or {}
    except (OSError, YamlError) as error:
        raise UsageError(f"cannot read {path}: {unread(error)}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} must hold a mapping of options, got {type(found).__name__}")
    return found


def _check(path: Path, told: Mapping[str, object], known: Collection[str]) -> None:
    for key in (str(each) for each in told if each not in known):
        hint = did_you_mean(key, known)
        if key == DATA_ROOTS:
            hint = f"it belongs in {config_path()}, or name the folder by --data-root"
        elif key in COMMAND_LINE:
            hint = f"it is for the command line, as --{key.replace('_', '-')}"
        raise UsageError(f"{path}: unknown option {key!r}; {hint}")
