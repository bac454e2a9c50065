"""Plug-ins by entry point or file, imported one by one.

Broken ones are listed as broken.
"""

from __future__ import annotations

__lookups__ = ("build", "entries", "load", "own", "working")

import dataclasses
import hashlib
import importlib.util
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import FrameType, ModuleType
from typing import get_type_hints

from bench.plugins import environments
from bench.plugins.groups import Group
from bench.plugins.spec import (
    PluginSpec,
    UsageError,
    construct,
    did_you_mean,
    holds_plugin,
    is_required,
    parameters,
    parse,
    plugin_hint,
    text,
)
from bench.shadowing import PACKAGES
from bench.types import Attack, Evaluator, Extractor, Method, Metric, Parameter, Source, column_of

KINDS: Mapping[Group, tuple[type, str]] = {
    "methods": (Method, "method"),
    "attacks": (Attack, "attack"),
    "datasets": (Source, "data set"),
    "metrics": (Metric, "metric"),
    "features": (Extractor, "feature extractor"),
    "evaluators": (Evaluator, "evaluator"),
}
"""What every plug-in of a group derives from, and what it is called."""
HOME = "veil-bench"
APART: tuple[Group, ...] = ("methods", "attacks")
"""Groups whose plug-ins of other authors run in rooms alone."""


@dataclass(frozen=True)
class Entry:
    """A registered plug-in; `error` says why it cannot be used.

    None until it was tried, and while it works. `environment` names the environment that it was added with, which only
    rooms start.
    """

    group: Group
    name: str
    target: str
    origin: str
    error: str | None = None
    environment: str | None = None


_inhabited: dict[tuple[Group, str], str] = {}


def inhabit(plugins: Mapping[tuple[Group, str], str]) -> None:
    """Register plug-ins by their targets in a room of their environment."""
    _inhabited.update(plugins)
    entries.cache_clear()


@cache
def entries(group: Group) -> Mapping[str, Entry]:
    """Every registered plug-in of a group by name; nothing is imported.

    Methods and attacks of other authors are those of added environments.

    A name that two distributions claim stays with this project if it is one of them; otherwise neither gets it. The
    loser is listed under `name (distribution)` with the reason.
    """
    result: dict[str, Entry] = {}
    registered = [
        Entry(group, point.name, point.value, _origin(point), _beside(group, point))
        for point in entry_points(group=f"bench.{group}")
    ]
    registered += _added(group)
    for entry in sorted(registered, key=lambda entry: (entry.origin != HOME, entry.origin)):
        rival = result.get(entry.name)
        if rival is None:
            result[entry.name] = entry
        elif rival.target != entry.target:
            reason = f"the name {entry.name!r} is also claimed by {{}}: one of the two must be renamed or uninstalled"
            lost = [(entry, rival)] if rival.origin == HOME else [(entry, rival), (rival, entry)]
            for loser, winner in lost:
                label = f"{loser.name} ({loser.origin})"
                result[label] = Entry(group, label, loser.target, loser.origin, reason.format(winner.origin))
            if rival.origin != HOME:
                result[entry.name] = Entry(group, entry.name, rival.target, rival.origin, reason.format(entry.origin))
    return result


def _origin(point: EntryPoint) -> str:
    if point.dist is None:
        return "unknown"
    name = _distribution(point.dist)
    ours = point.value.partition(":")[0].partition(".")[0] in PACKAGES
    return f"another {HOME}" if name == HOME and not ours else name  # a package may call itself as it likes


def _beside(group: Group, point: EntryPoint) -> str | None:
    """The reason to refuse another author's method or attack, or None."""
    origin = _origin(point)
    if origin == HOME or group not in APART:
        return None
    return (
        f"its package {origin} is installed beside the benchmark, where it could change figures: run "
        f"`bench plugin add {origin}`, and uninstall it here"
    )


def _added(group: Group) -> list[Entry]:
    """The group's plug-ins of added environments."""
    if group not in APART:
        return []
    if _inhabited:
        return [Entry(of, name, target, "added") for (of, name), target in _inhabited.items() if of == group]
    found = []
    for name, environment in environments.known().items():
        if not isinstance(environment, environments.Environment):
            if group == "methods":  # it may be of either kind
                found.append(Entry(group, f"plug-ins of {name}", "", name, str(environment)))
            continue
        for each in environment.manifest.plugins:
            if each.group == group:
                found.append(Entry(group, each.name, each.target, each.origin, environment=name))
    return found


@cache
def _distribution(package: Distribution) -> str:
    """The distribution's name, read once."""
    return package.name


def load(group: Group, name: str) -> type:
    """The class behind a name or a `file.py:Class`.

    Raises:
        UsageError: Unknown name (with the nearest), or a plug-in that cannot be imported (with the reason).
    """
    if ".py:" in name:
        return from_file(name)
    known = entries(group)
    if name not in known:
        raise UsageError(f"unknown {noun(group)} {name!r}; {plugin_hint(name, known)}")
    if error := inspect(known[name]).error:
        raise UsageError(f"{noun(group)} {name!r} from {known[name].origin} cannot be used: {error}")
    if known[name].environment is not None:
        raise UsageError(
            f"{noun(group)} {name!r} is in the environment {known[name].environment}, which only rooms start: use "
            "--isolation sandbox or processes"
        )
    return imported(known[name].target)


@cache
def inspect(entry: Entry) -> Entry:
    """The entry after an attempt to import it, with its `error`."""
    if entry.error is not None or entry.environment is not None:
        return entry
    try:
        with heard() as signalled:
            cls = imported(entry.target)
        if entry.group == "metrics":
            column_of(cls)  # without one no record could say what the figure is
        if (name := getattr(cls, "name", entry.name)) != entry.name:
            raise ValueError(f"it is registered as {entry.name!r}, and its class calls itself {name!r}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        reason = f"needs the package {missing!r}, which is not installed"
    except BaseException as error:  # a plug-in may fail in any way, and breaks nothing else
        if signalled(error):
            raise
        reason = f"broken: {type(error).__name__}: {error}"
    else:
        return entry
    return Entry(entry.group, entry.name, entry.target, entry.origin, reason)


def working(group: Group) -> list[str]:
    """The usable names; `bench list` explains the broken ones."""
    return [name for name, entry in entries(group).items() if inspect(entry).error is None]


def own(group: Group) -> list[str]:
    """The usable names of this project's own plug-ins.

    Other packages are not imported.
    """
    return [name for name, entry in entries(group).items() if entry.origin == HOME and inspect(entry).error is None]


def _placed(group: Group, spec: PluginSpec) -> PluginSpec:
    """The spec with full paths of files, for any folder."""
    cls = load(group, spec.name)
    hidden, first = confidential(cls), first_parameter(cls)
    parameters = tuple(
        (name, _full(value) if name in hidden and isinstance(value, str) else value) for name, value in spec.parameters
    )
    argument = _full(spec.argument) if spec.argument is not None and first in hidden else spec.argument
    return dataclasses.replace(spec, name=placed_name(spec.name), argument=argument, parameters=parameters)


def placed_name(name: str) -> str:
    """A plug-in's name, a file by its full path."""
    path, colon, cls = name.rpartition(":")
    return f"{Path(path).expanduser().resolve()}:{cls}" if ".py:" in name and colon else name


def _full(path: str) -> str:
    """The full path of an existing file; other text unchanged."""
    place = Path(path).expanduser()
    return str(place.resolve()) if place.exists() else path


def canonical(group: Group, spec: PluginSpec, preset: str) -> PluginSpec:
    """The canonical spec: parameters sorted, defaults left out.

    Raises:
        UsageError: As `build`.
    """
    spec = _placed(group, spec)
    usual, asked = (_usual(group, spec, preset) if spec.parameters else {}), dict(spec.parameters)
    values = parameters(build(group, spec, preset))
    inner = _inner(load(group, spec.name))
    written = {name: str(canonical(inner[name], parse(str(value)), preset)) for name, value in spec.parameters
               if name in inner}  # fmt: skip
    given = tuple(
        (name, written.get(name, text(value)))
        for name, value in sorted(values.items())
        if (value != usual[name] if name in usual else name in asked)
    )
    return PluginSpec(spec.name, spec.argument, given)


def _usual(group: Group, spec: PluginSpec, preset: str) -> Mapping[str, Parameter]:
    """A plug-in's parameters given its argument alone; empty if insufficient."""
    cls, given = load(group, spec.name), {name for name, _ in spec.parameters}
    needed = {field.name for field in dataclasses.fields(cls) if field.init and is_required(field)}
    needed -= getattr(cls, "presets", {}).get(preset, {}).keys()
    return {} if given & needed else parameters(build(group, PluginSpec(spec.name, spec.argument), preset))


def build(group: Group, spec: PluginSpec, preset: str) -> object:
    """The plug-in that `spec` describes, sized for `preset`."""
    cls = load(group, spec.name)
    if not issubclass(cls, kind(group)):
        raise UsageError(f"{spec.name} is no {noun(group)}: {cls.__name__} does not derive from {kind(group).__name__}")
    presets: Mapping[str, Mapping[str, Parameter]] = getattr(cls, "presets", {})

    def nested(kind: type, written: str) -> object:
        return build(_group(kind), parse(written), preset)

    return construct(cls, spec, presets.get(preset), nested=nested)


def _inner(cls: type) -> Mapping[str, Group]:
    """The fields of a plug-in class that hold another plug-in."""
    return {name: _group(hint) for name, hint in get_type_hints(cls).items() if holds_plugin(hint)}


def _group(kind: type) -> Group:
    return "methods" if issubclass(kind, Method) else "attacks"


def origin(group: Group, name: str) -> str:
    """A plug-in's origin for records: a distribution or a file name."""
    return Path(name.partition(".py:")[0]).name + ".py" if ".py:" in name else entries(group)[name].origin


def kind(group: Group) -> type:
    """The base class of a group's plug-ins."""
    return KINDS[group][0]


def noun(group: Group) -> str:
    """The noun for a group's plug-ins."""
    return KINDS[group][1]


def confidential(cls: type) -> frozenset[str]:
    """A class's parameters that are paths, and never enter a record."""
    return frozenset(getattr(cls, "confidential", ()))


def first_parameter(cls: type) -> str | None:
    """The parameter that a spec's argument sets. Raises UsageError for no dataclass."""
    if not dataclasses.is_dataclass(cls):
        raise UsageError(
            f"{cls.__name__} must be a frozen dataclass, whose fields are its parameters: write "
            "@dataclass(frozen=True) above the class"
        )
    return next((field.name for field in dataclasses.fields(cls) if field.init), None)


def imported(target: str) -> type:
    """The class that `module:Class` names; whatever the import raises passes."""
    if ".py:" in target:
        return from_file(target)
    module, _, attribute = target.partition(":")
    cls = getattr(importlib.import_module(module), attribute)
    if not isinstance(cls, type):
        raise TypeError(f"{target} must be a class, got {cls!r}")
    return cls


@cache
def from_file(name: str) -> type:
    """The class that `file.py:Class` names.

    Raises:
        UsageError: No such file or class, or a file that cannot be run (with its line).
    """
    path_text, _, attribute = name.rpartition(":")
    module = module_of(path_text)
    cls = getattr(module, attribute, None)
    if not isinstance(cls, type):
        own = (value for value in vars(module).values() if isinstance(value, type))
        classes = [value.__name__ for value in own if value.__module__ == module.__name__]
        raise UsageError(f"{path_text} has no class {attribute!r}; {did_you_mean(attribute, classes)}")
    return cls


@cache
def module_of(path_text: str) -> ModuleType:
    """The module in a file, run once for all its plug-ins."""
    path = Path(path_text).resolve()
    if not path.is_file():
        raise UsageError(f"no such plug-in file: {path_text} (expected FILE.py:CLASS)")
    module_name = f"bench_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path_text} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with heard() as signalled:
            spec.loader.exec_module(module)
    except BaseException as error:  # the author's file may fail in any way
        if signalled(error):
            raise
        lines = [
            line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
        ]
        at = f" at line {lines[-1]}" if lines else ""  # of a file that is no Python, the error says it
        raise UsageError(f"{path_text} cannot be imported{at}: {type(error).__name__}: {error}") from error
    return module


SIGNALS = tuple(number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)))


@contextmanager
def heard() -> Iterator[Callable[[BaseException], bool]]:
    """Tell if a signal raised an exception of the block.

    Otherwise a KeyboardInterrupt, say, is the code's own.

    Handlers work as before. Of the first signal on they are those from before the block.

    >>> with heard() as signalled:
    ...     try:
    ...         raise KeyboardInterrupt
    ...     except KeyboardInterrupt as error:
    ...         print(signalled(error))
    False
    """
    came = False
    before: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        handler = before[signal.Signals(number)]
        restore()
        handler(number, frame)

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    if threading.current_thread() is threading.main_thread():  # signals reach no other
        for number in SIGNALS:
            if callable(handler := signal.getsignal(number)) and not isinstance(handler, signal.Handlers):
                before[number] = handler
                signal.signal(number, note)
    try:
        yield lambda error: came and not isinstance(error, Exception)
    finally:
        restore()
