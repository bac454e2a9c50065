"""A hash of what a plug-in's code computes: its module and every module of this project that it imports.

What of a module counts says `bench.plugins.meaning`. (Of a method or an attack from outside every byte counts, and of
its package data files too: it may compute from its own words, and nobody has read it.) The modules of `SILENT` do not,
which compute nothing that a record holds: what they say either shows nowhere in a figure, or is in a record's key as a
value. The contract's plain types are among them; where their meaning changes, `bench.workbench.inputs.PROTOCOL` rises.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bench.plugins import registry
from bench.plugins.installation import brought
from bench.plugins.meaning import package_of, read
from bench.plugins.outside import StandIn
from bench.plugins.spec import UsageError
from bench.types import Plugin

PROJECT = frozenset({"bench", "methods", "attacks", "metrics"})
SILENT = (
    *(f"bench.contract.{name}" for name in (
        "attack", "claim", "dataset", "evaluator", "method", "metric", "plugin", "preset", "release", "source",
    )),
    "bench.progress", "bench.validation", "bench.plugins", "bench.results", "bench.pictures",
    "bench.workbench.cell", "bench.workbench.choice", "bench.workbench.inputs", "bench.workbench.machine",
    "bench.workbench.place",
    # How things travel to processes of their own and back: they arrive bit by bit as they left.
    "bench.isolation", "bench.sandbox", "bench.shadowing", "bench.wire",
    # How rows are prepared and read: their fingerprints are in every key.
    "bench.data.prepare", "bench.data.prepared", "bench.features.feature_space",
)  # fmt: skip


def source_hash(cls: type) -> str:
    """16 hex digits for the code behind a plug-in class."""
    return modules_hash(Path(inspect.getfile(cls)))


def plugin_hash(plugin: Plugin) -> str:
    """16 hex digits for the code behind a plug-in and behind those that it holds."""
    held = [value for value in vars(plugin).values() if isinstance(value, Plugin)]
    own = (
        _outside_hash(_source(plugin), _beside_it(plugin)) if isinstance(plugin, StandIn) else source_hash(type(plugin))
    )
    if not held:
        return own
    codes = [own, *(plugin_hash(inner) for inner in held)]
    return hashlib.sha256("".join(codes).encode()).hexdigest()[:16]


def _source(plugin: StandIn) -> Path:
    """The file with the class that a stand-in stands for."""
    name = plugin.written.name
    if ".py:" in name:
        return Path(name.rpartition(":")[0])
    target = registry.entries(plugin.group)[name].target
    found = _locate(target.partition(":")[0])
    if found is None:
        raise UsageError(f"{name} cannot be used: its module {target.partition(':')[0]} has no Python source")
    return found


def _beside_it(plugin: StandIn) -> tuple[Path, ...]:
    """What else it may compute from: the files that its parameters name, and all that was installed with it."""
    spec = plugin.written
    named = [
        Path(value) for value in (spec.argument, *(value for _, value in spec.parameters)) if isinstance(value, str)
    ]
    found = [path for path in named if path.is_absolute() and path.exists()]
    if ".py:" not in spec.name:
        with contextlib.suppress(PackageNotFoundError):
            found += brought(distribution(registry.entries(plugin.group)[spec.name].origin))
    return tuple(found)


@cache
def _outside_hash(start: Path, beside: tuple[Path, ...] = ()) -> str:
    """16 hex digits for `modules_hash`, and for every byte of the file at `start` or of the package that it lies in.

    `beside` are files and folders that count as well, each by what it holds.
    """
    depth = len(package_of(start).split(".")) if package_of(start) else 0
    top = start.parents[depth - 1] if depth else start.parent
    files = (
        [path for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts] if depth else [start]
    )
    found = hashlib.sha256(modules_hash(start).encode())
    for path in sorted(files):
        name = path.relative_to(top).as_posix() if depth else ""  # a file counts wherever it lies and whatever its name
        found.update(hashlib.sha256(name.encode()).digest() + _digest(path))
    for each in beside:
        for path in sorted(each.rglob("*")) if each.is_dir() else [each]:
            if path.is_file() and "__pycache__" not in path.parts and path not in files:
                found.update(hashlib.sha256(path.name.encode()).digest() + _digest(path))
    return found.hexdigest()[:16]


def _digest(path: Path) -> bytes:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


@cache
def modules_hash(start: Path) -> str:
    """16 hex digits for the module at `start` and, in turn, what it imports from this project and its own package."""
    return hashlib.sha256("".join(sorted(read(path).meaning for path in behind(start))).encode()).hexdigest()[:16]


@cache
def behind(start: Path) -> frozenset[Path]:
    """The modules whose code a hash is taken over: `start`, and all that it imports, in turn, but for `SILENT`."""
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        package = package_of(path)
        own = PROJECT | {package.partition(".")[0]} if package else PROJECT
        for module, name in read(path).imports:
            followed = module.partition(".")[0] in own or (not package and _beside(module, path))
            waiting += _modules(module, name) if followed else []
    return frozenset(seen)


def _beside(module: str, path: Path) -> bool:
    """Whether a module lies in the folder of a file that is part of no package."""
    found = _locate(module.partition(".")[0])
    return found is not None and found.resolve().is_relative_to(path.resolve().parent)


def _modules(module: str, name: str | None) -> list[Path]:
    """Where what is imported as `from module import name` (None: as a module) is defined; nothing where it is silent.

    A module that only shows what others define (`bench.types`) is looked through.
    """
    if _silent(module):
        return []
    if name is not None and (inner := _locate(f"{module}.{name}")) is not None:
        return [] if _silent(f"{module}.{name}") else [inner]
    path = _locate(module)
    if path is None:
        return []
    shown = read(path).shown
    if name is not None and name in shown:
        return _modules(shown[name], name)
    return [path]


def _silent(module: str) -> bool:
    return any(module == silent or module.startswith(f"{silent}.") for silent in SILENT)


@cache
def _locate(name: str) -> Path | None:
    """The source of a module; None where there is none. No package is imported to find what lies in it."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    # What is imported already says where its parts lie: a package may add folders to itself.
    places = getattr(sys.modules.get(top), "__path__", spec.submodule_search_locations or ())
    for place in places:
        folder = Path(place, *inner)
        for path in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if path.is_file():
                return path
    return None
