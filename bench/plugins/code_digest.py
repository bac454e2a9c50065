"""Code identity: a digest of the definitions that a plug-in uses.

A digest covers the plug-in's class and all top-level definitions of the project that it refers to, in turn, each in its
normal form (`bench.plugins.normal_form`). Renaming, moving, merging or splitting files does not change it. Rooms whose
`__figures__` is False compute nothing that a record holds: what they do shows in no figure, or is in a record's key as
a value. The contract's plain types are among them; if their meaning changes, `bench.workbench.inputs.PROTOCOL` rises.
Code that finds plug-ins by name depends on all of the project's.

Of methods and attacks of other authors every byte of their file or environment, and of their data files, counts as
well.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from bench.plugins import registry
from bench.plugins.environments import Environment
from bench.plugins.groups import Group
from bench.plugins.normal_form import (
    PROJECT,
    WHOLE,
    Module,
    Reference,
    definition,
    locate,
    module,
    own_plugins,
    package_of,
)  # fmt: skip
from bench.plugins.spec import UsageError
from bench.plugins.third_party import StandIn, environment_of
from bench.types import Plugin

Root = type | Callable[..., object] | str
"""A class, a function, or `package.module:name` of either, which is not imported."""


def code_digest(*roots: Root) -> str:
    """16 hex digits for the code behind classes and functions.

    Code of other authors counts by every byte of its package or file.
    """
    references = [_reference(root) for root in roots]
    theirs = [each for each in references if each.module.package.partition(".")[0] not in PROJECT]
    ours = _digest_of(tuple(each for each in references if each not in theirs))
    return _joined([ours, *(third_party_digest(each.module.path) for each in theirs)])


def registered_digest(group: Group, name: str) -> str:
    """The digest of a registered plug-in's class, without importing it.

    A `FILE.py:CLASS` is imported.
    """
    entry = None if ".py:" in name else registry.entries(group).get(name)
    return code_digest(registry.load(group, name) if entry is None else entry.target)


def plugin_digest(plugin: Plugin) -> str:
    """The digest of a plug-in and of those that it holds."""
    if isinstance(plugin, StandIn):
        environment = environment_of(plugin.group, plugin.written)
        files = _data_files(plugin)
        own = (
            third_party_digest(Path(plugin.written.name.rpartition(":")[0]), files)
            if environment is None
            else environment_digest(environment, files)
        )
    else:
        own = code_digest(type(plugin))
    return _joined([own, *(plugin_digest(value) for value in vars(plugin).values() if isinstance(value, Plugin))])


def definitions(*roots: Root) -> frozenset[str]:
    """The definitions behind a digest, as `package.module:name`."""
    order, _ = _reach(tuple(_reference(root) for root in roots))
    return frozenset(f"{each.module.name}:{each.name}" for each in order)


def forget() -> None:
    """Forget all digests: files may have changed."""
    for function in (_digest_of, definition, environment_digest, locate, module, own_plugins, third_party_digest):
        function.cache_clear()
    importlib.invalidate_caches()


def _joined(digests: Sequence[str]) -> str:
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def _module(name: str) -> Module:
    path = locate(name)
    if path is None:
        raise UsageError(f"the module {name} has no Python source")
    return module(path)


def _reference(root: Root) -> Reference:
    if isinstance(root, str):
        name, _, attribute = root.partition(":")
        source = _module(name)
    else:
        source, attribute = module(Path(inspect.getfile(root))), root.__qualname__.partition(".")[0]
    target = source.resolve(attribute)
    return Reference(source, WHOLE) if isinstance(target, str) else target[0]


@cache
def _digest_of(roots: tuple[Reference, ...]) -> str:
    order, silent = _reach(roots)
    whole = hashlib.sha256()
    for each in order:
        gaps = [f"silent:{to.name}" if to in silent else str(order[to]) for to in definition(each).references]
        whole.update(f"{definition(each).digest} {' '.join(gaps)}\n".encode())
    return whole.hexdigest()[:16]


def _reach(roots: Sequence[Reference]) -> tuple[dict[Reference, int], set[Reference]]:
    """Definitions by order of first reference, and those in silent rooms."""
    order = {root: number for number, root in enumerate(dict.fromkeys(roots))}
    silent = set[Reference]()
    homes = {root.module for root in roots}
    queue = list(order)
    enabled = gc.isenabled()
    gc.disable()  # trees are many objects and no garbage: collections took as long as the rest
    try:
        for each in queue:
            for to in definition(each).references:
                if not to.module.figures and to.module not in homes:
                    silent.add(to)
                elif to not in order:
                    order[to] = len(order)
                    queue.append(to)
    finally:
        if enabled:
            gc.enable()
    return order, silent


def _data_files(plugin: StandIn) -> tuple[Path, ...]:
    """Files that a stand-in's parameters name."""
    spec = plugin.written
    values = [spec.argument, *(value for _, value in spec.parameters)]
    return tuple(Path(value) for value in values if isinstance(value, str) and Path(value).is_absolute())


_IMPORTS = re.compile(rb"^\s*(from|import)\s+(%s)\b" % b"|".join(name.encode() for name in PROJECT), re.MULTILINE)


def _is_python(path: Path) -> bool:
    """If this Python can read a file, which may be for others."""
    try:
        definition(Reference(module(path), WHOLE))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@cache
def environment_digest(environment: Environment, data: tuple[Path, ...] = ()) -> str:
    """16 hex digits for an environment and its plug-in's data files.

    Definitions of the project that its packages use count as well, if it finds the project's own packages.
    """
    manifest = environment.manifest
    places = [*manifest.sites, *manifest.files] if manifest.shared else []
    sources = [path for place in places for path in _files(place) if path.suffix == ".py"]
    using = [path for path in sources if _IMPORTS.search(path.read_bytes()) and _is_python(path)]
    whole = hashlib.sha256(manifest.digest.encode())
    whole.update(_digest_of(tuple(Reference(module(path), WHOLE) for path in using)).encode())
    for name, path in [(path.name, path) for each in data for path in _files(each)]:
        with path.open("rb") as content:
            whole.update(hashlib.sha256(name.encode()).digest() + hashlib.file_digest(content, "sha256").digest())
    return whole.hexdigest()[:16]


@cache
def third_party_digest(start: Path, data: tuple[Path, ...] = ()) -> str:
    """16 hex digits for all bytes of a file or package.

    Definitions of the project that it uses count as well.

    `data` are files and folders that count as well, each by its content.
    """
    package = package_of(start)
    top = start.parents[package.count(".")]
    # The place and name of a lone file do not count.
    own = {path: path.relative_to(top).as_posix() for path in _files(top)} if package else {start: ""}
    code = tuple(Reference(module(path), WHOLE) for path in own if path.suffix == ".py" or path == start)
    beside = [(path.name, path) for each in data for path in _files(each) if path not in own]
    whole = hashlib.sha256(_digest_of(code).encode())
    for name, path in [*((name, path) for path, name in own.items()), *beside]:
        with path.open("rb") as content:
            whole.update(hashlib.sha256(name.encode()).digest() + hashlib.file_digest(content, "sha256").digest())
    return whole.hexdigest()[:16]


def _files(place: Path) -> list[Path]:
    """A file, or those of a folder."""
    paths = place.rglob("*") if place.is_dir() else [place]
    return sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts)
