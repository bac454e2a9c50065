"""Files of options: a suite that comes with the project, a configuration file, and the parts that one may hold."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cli.run_arguments import SUITES
from bench.data.roots import DATA_ROOTS, config_path
from bench.data.yaml_text import YamlError, read_yaml
from bench.plugins.spec import UsageError, did_you_mean
from bench.results.disk_errors import unread
from bench.runs.engine_options import EngineOptions

if TYPE_CHECKING:  # nothing heavy is imported where nothing can be missing
    from bench.runs.run_spec import RunSpec

ENGINE = "engine"  # in a configuration file: options of what starts workers, which are none of the run
PARTS = "parts"  # in a file: a list of mappings of options, each a run of its own over what the file says of all


def parts(parsed: argparse.Namespace, known: Collection[str]) -> list[dict[str, object]]:
    """What suite and configuration file say of each part of a run, the latter winning; one part where neither has any.

    Raises:
        UsageError: An unknown suite or option, a file that is none of options, or two files with parts.
    """
    shared: dict[str, object] = {}
    found: list[dict[str, object]] = []
    for path in ([_suite(parsed.suite)] if parsed.suite else []) + ([parsed.config] if parsed.config else []):
        told = _read(path)
        own = told.pop(PARTS, None)
        if path == parsed.config:
            told.pop(ENGINE, None)
        _check(path, told, known, parsed)
        shared |= told
        if own is None:
            continue
        if found:
            raise UsageError(f"{path} has parts, and so has the suite {parsed.suite}: only one of them may")
        if not isinstance(own, list) or not own:
            raise UsageError(f"{path}: {PARTS} must be a list of mappings of options, got {own!r:.80}")
        for each in own:
            if not isinstance(each, dict):
                raise UsageError(f"{path}: a part must be a mapping of options, got {each!r:.80}")
            _check(path, each, known, parsed)
        found = own
    return [_flat({**shared, **each}) for each in found] or [_flat(shared)]


def _flat(told: Mapping[str, object]) -> dict[str, object]:
    """Entries of a list within a list in its place, so that parts can share some of a list by a YAML anchor."""

    def entries(value: object) -> list[object]:
        return [entry for each in value for entry in entries(each)] if isinstance(value, list) else [value]

    return {key: entries(value) if isinstance(value, list) else value for key, value in told.items()}


def engine_options(parsed: argparse.Namespace) -> EngineOptions:
    """What the configuration file says to the engine, over which the command line wins. Raises UsageError."""
    told = _read(parsed.config).get(ENGINE, {}) if parsed.config else {}
    if not isinstance(told, dict):
        raise UsageError(f"{parsed.config}: {ENGINE} must be a mapping of options, got {told!r:.80}")
    return EngineOptions.read(parsed.engine or (), told)


def _suite(name: str) -> Path:
    path = SUITES / f"{name}.yaml"
    known = sorted(found.stem for found in SUITES.glob("*.yaml"))
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


def _check(path: Path, told: Mapping[str, object], known: Collection[str], parsed: argparse.Namespace) -> None:
    for key in (str(each) for each in told if each not in known):
        hint = did_you_mean(key, known)
        if key == DATA_ROOTS:
            hint = f"it belongs in {config_path()}, or name the folder by --data-root"
        elif hasattr(parsed, key) and f"{key}s" not in known:
            hint = f"it is for the command line, as --{key.replace('_', '-')}"
        raise UsageError(f"{path}: unknown option {key!r}; {hint}")


def part_title(number: int, specs: Sequence[RunSpec]) -> str:
    """A part of a run in words: its place and its data."""
    return f"part {number} of {len(specs)}: {_data_named(specs[number - 1])}"


def _data_named(spec: RunSpec) -> str:
    sided = (f"{each.dataset} at {each.size} pixels" if each.size else str(each.dataset) for each in spec.choices)
    return ", ".join(dict.fromkeys(sided))
