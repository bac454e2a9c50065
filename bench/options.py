"""Command line, suite and config file together: a RunSpec and the places it works in. The command line wins."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import platformdirs
import psutil
import yaml

from bench import registry
from bench.cell import Place
from bench.data.roots import resolve
from bench.machine import choose_device
from bench.plan import Overwrite, RunSpec
from bench.presets import PRESETS
from bench.spec import PluginSpec, UsageError, did_you_mean, parse

SUITES = Path(__file__).parent / "suites"
# Name in YAML: attribute of the parsed command line.
_LISTS = {"methods": "method", "datasets": "dataset", "attacks": "attack", "metrics": "metric", "seeds": "seed"}
_SINGLE = (
    "public", "size", "skip_corrupt", "preset", "limit", "device", "jobs", "timeout", "memory", "overwrite",
    "keep_releases",
)  # fmt: skip


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
        UsageError: An unknown suite, key or plug-in, or values that contradict each other.
    """
    files = [_suite(options.suite)] if options.suite else []
    if options.config:
        files.append(options.config)
    chosen: dict[str, object] = {}
    for path in files:
        chosen |= _read(path)
    for key, attribute in _LISTS.items():
        chosen |= {key: given} if (given := getattr(options, attribute)) else {}
    if options.attacks:
        chosen["attacks"] = options.attacks
    for key in _SINGLE:
        chosen |= {key: given} if (given := getattr(options, key)) is not None else {}
    if not chosen.get("methods"):
        raise UsageError(f"no method given; use --method NAME or --suite quickstart. Known: {_known('methods')}")
    jobs = int(cast(int, chosen.get("jobs", 1)))
    memory = chosen.get("memory")
    public = chosen.get("public")
    return RunSpec(
        methods=_specs(chosen["methods"]),
        datasets=_specs(chosen.get("datasets", ["synth-cxr"])),
        attacks=_attacks(chosen.get("attacks", "all")),
        metrics=_metrics(chosen.get("metrics")),
        public=None if public is None else parse(str(public)),
        size=cast("int | None", chosen.get("size")),
        skip_corrupt=bool(chosen.get("skip_corrupt", False)),
        preset=_preset(str(chosen.get("preset", "quick"))),
        seeds=tuple(cast("list[int]", chosen.get("seeds", [0]))),
        limit=cast("int | None", chosen.get("limit")),
        device=choose_device(str(chosen.get("device", "auto"))).type,
        jobs=jobs,
        timeout=cast("float | None", chosen.get("timeout")),
        memory=int(float(cast(float, memory)) * 2**30) if memory else int(0.8 * psutil.virtual_memory().total / jobs),
        overwrite=cast(Overwrite, chosen.get("overwrite", "failed")),
        keep_releases=bool(chosen.get("keep_releases", False)),
    )


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
    known = [*_LISTS, *_SINGLE]
    for key in found:
        if key not in known:
            raise UsageError(f"{path}: unknown option {key!r}; {did_you_mean(str(key), known)}")
    return found


def _specs(given: object) -> tuple[PluginSpec, ...]:
    """Specs from a list of `name[a=1]` or of `{name: {a: 1}}`; parameters become text, as on the command line."""
    found = []
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, dict):
            found += [
                PluginSpec(str(name), None, tuple((str(key), _text(value)) for key, value in (values or {}).items()))
                for name, values in item.items()
            ]
        else:
            found.append(parse(str(item)))
    return tuple(found)


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _attacks(given: object) -> tuple[PluginSpec, ...]:
    if given in ("none", ["none"]):
        return ()
    if given in ("all", ["all"]):
        return tuple(PluginSpec(name) for name, entry in registry.entries("attacks").items() if not entry.error)
    return _specs(given)


def _metrics(given: object) -> tuple[str, ...]:
    if given is None:
        return tuple(name for name, entry in registry.entries("metrics").items() if not registry.inspect(entry).error)
    names = [str(name) for name in given] if isinstance(given, list) else [str(given)]
    for name in names:
        registry.load("metrics", name)
    return tuple(dict.fromkeys(names))


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}; {did_you_mean(name, PRESETS)}")
    return name


def _known(group: registry.Group) -> str:
    return ", ".join(sorted(registry.entries(group)))
