"""Command line, suite and config file together: a RunSpec and the places it works in. The command line wins."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self, cast

import platformdirs
import psutil
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.data.roots import resolve
from bench.plugins import registry
from bench.plugins.spec import PluginSpec, UsageError, did_you_mean, parse, text
from bench.runs.plan import Overwrite, RunSpec
from bench.types import Attack, Metric
from bench.workbench.cell import Place
from bench.workbench.machine import choose_device, cores
from bench.workbench.presets import PRESETS

MOST_JOBS = 4
SUITES = Path(__file__).parents[1] / "suites"
_LISTS = {"methods": "method", "datasets": "dataset", "attacks": "attack", "metrics": "metric", "seeds": "seed"}

Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]
Written = str | dict[str, dict[str, int | float | str | bool | None] | None]


class _Options(BaseModel):
    """What a suite, a config file and the command line may say, by name; the command line's own flags are singular."""

    model_config = ConfigDict(extra="forbid", strict=True)

    methods: Annotated[list[Written], Field(min_length=1)]
    datasets: Annotated[list[Written], Field(min_length=1)] = ["synth-cxr"]
    attacks: list[Written] | Literal["all", "none"] = "all"
    metrics: Annotated[list[str], Field(min_length=1)] | None = None
    seeds: Annotated[list[int], Field(min_length=1)] = [0]
    public: str | None = None
    size: Count | None = None
    skip_corrupt: bool = False
    preset: str = "quick"
    limit: Count | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    jobs: Count | None = None
    timeout: Amount | None = None
    memory: Amount | None = None
    controls: bool | None = None
    overwrite: Overwrite = "failed"
    keep_releases: bool = False
    features: str | None = None
    scored_in: str | None = None
    weights: str | None = None
    balance: bool | None = None

    @model_validator(mode="after")
    def _one_space(self) -> Self:
        if self.features and self.scored_in:
            raise ValueError("features already decides what rows are scored in: leave scored_in out")
        if self.weights and not (self.features or self.scored_in):
            raise ValueError("weights are those of an extractor: name it with --features or --scored-in")
        return self


def place(options: argparse.Namespace) -> Place:
    """The folders of a command: results, prepared data, and data roots."""
    cache = Path(platformdirs.user_cache_dir("veil-bench")) / "data"
    roots = resolve(getattr(options, "data_root", None) or ())
    results = Path(getattr(options, "results", None) or "results")
    return Place(results.resolve(), cache, roots)


def site(options: argparse.Namespace) -> Path:
    """Where the pages go."""
    return Path(options.site).resolve() if options.site else place(options).results / "site"


def run_spec(options: argparse.Namespace) -> RunSpec:
    """What `bench run` was asked for, defaults filled in.

    Raises:
        UsageError: An unknown suite, option or plug-in, or a value that an option cannot take.
    """
    given: dict[str, object] = {}
    for path in ([_suite(options.suite)] if options.suite else []) + ([options.config] if options.config else []):
        given |= _read(path)
    for name in _Options.model_fields:
        value = getattr(options, _LISTS.get(name, name))
        if value is not None:
            given[name] = value
    if options.attacks:
        given["attacks"] = options.attacks
    if given.get("attacks") in (["all"], ["none"]):
        given["attacks"] = cast("list[str]", given["attacks"])[0]
    if not given.get("methods"):
        raise UsageError(f"no method given; use --method NAME or --suite quickstart. Known: {_known('methods')}")
    try:
        chosen = _Options.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"option {'.'.join(map(str, first['loc']))}: {first['msg']}, got {first['input']!r}"
            if first["loc"]
            else first["msg"].removeprefix("Value error, ")
        ) from error
    device = choose_device(chosen.device).type
    # Two jobs of one thread do more than one job of two (1.3 times in training); a GPU is best left to one.
    jobs = chosen.jobs or (1 if device == "cuda" else min(cores(), MOST_JOBS))
    memory = 0.8 * psutil.virtual_memory().total / jobs if chosen.memory is None else chosen.memory * 2**30
    return RunSpec(
        methods=_specs(chosen.methods),
        datasets=_specs(chosen.datasets),
        attacks=_attacks(chosen.attacks, on_features=bool(chosen.features)),
        metrics=_metrics(chosen.metrics, in_feature_space=bool(chosen.features or chosen.scored_in)),
        public=None if chosen.public is None else parse(chosen.public),
        size=chosen.size,
        skip_corrupt=chosen.skip_corrupt,
        preset=_preset(chosen.preset),
        seeds=tuple(chosen.seeds),
        limit=chosen.limit,
        device=device,
        jobs=jobs,
        timeout=chosen.timeout,
        memory=int(memory),
        controls=chosen.attacks == "all" if chosen.controls is None else chosen.controls,
        overwrite=chosen.overwrite,
        keep_releases=chosen.keep_releases,
        features=_extractor(chosen.features, chosen.weights),
        scored_in=_extractor(chosen.scored_in, chosen.weights),
        balanced=chosen.features is None if chosen.balance is None else chosen.balance,
    )


def _extractor(written: str | None, weights: str | None) -> PluginSpec | None:
    """The extractor as written, with the file of its weights where that is an option of its own."""
    if written is None:
        return None
    spec = parse(written)
    if weights is None:
        return spec
    if "weights" in dict(spec.parameters):
        raise UsageError(f"weights are named twice: by {spec.name}[weights=...] and by --weights")
    file = str(Path(weights).expanduser().resolve())  # plans are read again from other folders
    if any(letter in file for letter in "[],"):
        raise UsageError(f"--weights must name a file whose path has no '[', ']' or ',': got {file}")
    return replace(spec, parameters=(*spec.parameters, ("weights", file)))


def _suite(name: str) -> Path:
    path = SUITES / f"{name}.yaml"
    known = sorted(found.stem for found in SUITES.glob("*.yaml"))
    if name not in known:
        raise UsageError(f"unknown suite {name!r}; {did_you_mean(name, known)}")
    return path


def _read(path: Path) -> Mapping[str, object]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} must hold a mapping of options, got {type(found).__name__}")
    for key in found:
        if key not in _Options.model_fields:
            raise UsageError(f"{path}: unknown option {key!r}; {did_you_mean(str(key), _Options.model_fields)}")
    return found


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


def _attacks(given: Sequence[Written] | Literal["all", "none"], *, on_features: bool) -> tuple[PluginSpec, ...]:
    """All attacks: those on membership only where features are released, for releases of images they take longest."""
    if given == "none":
        return ()
    if given == "all":
        known = {name: cast("type[Attack]", registry.load("attacks", name)) for name in registry.working("attacks")}
        return tuple(PluginSpec(name) for name, cls in known.items() if on_features or cls.scores == "pairs")
    return _specs(given)


def _metrics(given: Sequence[str] | None, *, in_feature_space: bool) -> tuple[str, ...]:
    if given is None:
        known = {
            name: cast("type[Metric[object]]", registry.load("metrics", name)) for name in registry.working("metrics")
        }
        return tuple(
            name for name, cls in known.items() if not cls.on_request or (cls.for_features and in_feature_space)
        )
    for name in given:
        registry.build("metrics", parse(name), "quick")
    return tuple(dict.fromkeys(given))


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}; {did_you_mean(name, PRESETS)}")
    return name


def _known(group: registry.Group) -> str:
    return ", ".join(sorted(registry.entries(group)))
