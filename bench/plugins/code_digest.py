"""Code identity: a digest of what a plug-in's code defines and uses, wherever it stands.

A digest covers the plug-in's class and all top-level definitions of the project that it refers to, in turn, each in its
normal form (`bench.plugins.normal_form`). Renaming, moving, merging or splitting files does not change it. Rooms whose
`__figures__` is False compute nothing that a record holds: what they do shows in no figure, or is in a record's key as
a value. The contract's plain types are among them; if their meaning changes, `bench.workbench.inputs.PROTOCOL` rises.

Of methods and attacks of other authors every byte of their package and of their data files counts as well.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.plugins.installation import brought
from bench.plugins.normal_form import definition
from bench.plugins.outside import StandIn
from bench.plugins.parsed_module import PROJECT, WHOLE, Module, Reference, chain, locate, module, package_of
from bench.plugins.spec import UsageError
from bench.types import Plugin

PLAIN_DECORATORS = frozenset({
    "abc.abstractmethod", "contextlib.contextmanager", "dataclasses.dataclass", "enum.unique", "functools.cache",
    "functools.lru_cache", "functools.singledispatch", "functools.total_ordering", "functools.wraps", "numba.jit",
    "numba.njit", "numba.vectorize", "torch.inference_mode", "torch.no_grad", "typing.final", "typing.overload",
    "typing.runtime_checkable",
})  # fmt: skip
"""Decorators that register their function nowhere; any other counts as a statement that runs at import."""
TYPING = ("typing.", "collections.abc.", "typing_extensions.")

Root = type | Callable[..., object] | str
"""A class, a function, or `package.module:name` of either, which is not imported."""


def code_digest(*roots: Root) -> str:
    """16 hex digits for the code behind classes and functions.

    Code of other authors counts by every byte of its package or file.
    """
    references = [_reference(root) for root in roots]
    theirs = [each for each in references if each.module.package.partition(".")[0] not in PROJECT]
    ours = _digest_of(tuple(each for each in references if each not in theirs))
    if not theirs:
        return ours
    codes = [ours, *(third_party_digest(each.module.path) for each in theirs)]
    return hashlib.sha256("".join(codes).encode()).hexdigest()[:16]


def registered_digest(group: Group, name: str) -> str:
    """The same for the class of a plug-in by its name, which is not imported unless it is a `FILE.py:CLASS`."""
    entry = None if ".py:" in name else registry.entries(group).get(name)
    return code_digest(registry.load(group, name) if entry is None else entry.target)


def plugin_digest(plugin: Plugin) -> str:
    """16 hex digits for the code behind a plug-in and behind those that it holds."""
    held = [value for value in vars(plugin).values() if isinstance(value, Plugin)]
    if isinstance(plugin, StandIn):
        own = third_party_digest(_source(plugin), _data_files(plugin))
    else:
        own = code_digest(type(plugin))
    if not held:
        return own
    codes = [own, *(plugin_digest(inner) for inner in held)]
    return hashlib.sha256("".join(codes).encode()).hexdigest()[:16]


def definitions(*roots: Root) -> frozenset[str]:
    """The definitions behind a digest, as `package.module:name`."""
    order, _ = _reach(tuple(_reference(root) for root in roots))
    return frozenset(f"{each.module.name}:{each.name}" for each in order)


def forget() -> None:
    """Forget all digests: files may have changed."""
    for kept in (_digest_of, _effects, _order, _plugin_names, definition, locate, module, third_party_digest):
        kept.cache_clear()
    _imported.clear()
    importlib.invalidate_caches()


def _reference(root: Root) -> Reference:
    if isinstance(root, str):
        name, _, attribute = root.partition(":")
        path = locate(name)
        if path is None:
            raise UsageError(f"the module {name} has no Python source")
        found = module(path)
    else:
        found, attribute = module(Path(inspect.getfile(root))), root.__qualname__.partition(".")[0]
    if not found.has(attribute):
        return Reference(found, WHOLE)
    target = found.resolve(attribute)
    return Reference(found, WHOLE) if isinstance(target, str) else target[0]


@cache
def _digest_of(roots: tuple[Reference, ...]) -> str:
    order, silent = _reach(roots)
    whole = hashlib.sha256()
    for each in order:
        known = definition(each)
        gaps = [silent[to] if to in silent else str(order[to]) for to in known.references]
        whole.update(f"{known.digest} {' '.join(gaps)}\n".encode())
    return whole.hexdigest()[:16]


def _reach(roots: Sequence[Reference]) -> tuple[dict[Reference, int], dict[Reference, str]]:
    """The definitions behind some, each with its number in the order of first reference; and names in silent rooms."""
    enabled = gc.isenabled()
    gc.disable()  # trees are many objects and no garbage: collections took as long as the rest
    try:
        return _numbered(roots)
    finally:
        if enabled:
            gc.enable()


def _numbered(roots: Sequence[Reference]) -> tuple[dict[Reference, int], dict[Reference, str]]:
    order: dict[Reference, int] = {}
    silent: dict[Reference, str] = {}
    homes = {root.module for root in roots}
    waiting: Sequence[Reference] = roots
    while waiting:
        for each in waiting:
            order.setdefault(each, len(order))
        queue = list(waiting)
        for each in queue:
            for to in definition(each).references:
                if to in order or to in silent:
                    continue
                if not to.module.figures and to.module not in homes:
                    silent[to] = f"silent:{to.name}"
                else:
                    order[to] = len(order)
                    queue.append(to)
        found = {*_looked_up(order), *_at_import(order)} - order.keys()
        waiting = sorted(found, key=_order)
    return order, silent


@cache
def _order(start: Reference) -> tuple[str, str, str]:
    """Sort key: own code, then all code behind it. Names decide between definitions that are alike in both."""
    behind = sorted(definition(each).digest for each in _behind(start))
    return definition(start).digest, hashlib.sha256("".join(behind).encode()).hexdigest(), start.name


_imported: dict[Module, bool] = {}
"""Modules that were seen to be imported, in turn, by those of definitions; with whether one of them may act then."""


def _at_import(order: dict[Reference, int]) -> Iterator[Reference]:
    """Statements that act when a module of these definitions or one that it imports is imported, and subclasses."""
    modules = {each.module for each in order}
    hooks = set[Reference]()
    for each in order:
        known = definition(each)
        if known.hook:
            hooks |= {each, *known.references}
    _close(modules, _imported)
    if not hooks and not any(_imported.values()):
        return
    closure: dict[Module, bool] = {}
    _close(modules, closure)
    for source, acts in closure.items():
        yield from (_effects(source) if acts else ())
    before = -1
    while len(hooks) != before:
        before = len(hooks)
        hooks |= {derived for source in closure for derived in source.subclasses(hooks)} if hooks else set()
    yield from (each for each in hooks if each.module.figures)


@cache
def _effects(source: Module) -> tuple[Reference, ...]:
    """Statements of a module that act at import, beyond the definitions that they change."""
    return tuple(
        Reference(source, f"#{number}") for number, node in enumerate(source.acting) if not _is_plain(source, node)
    )


def _is_plain(source: Module, node: ast.stmt) -> bool:
    """If a statement only defines names: its decorators register it nowhere."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return all(_is_plain_decorator(source, each) for each in node.decorator_list)
    acts = ast.Call | ast.Subscript | ast.Attribute | ast.Delete | ast.Assert
    return isinstance(node, ast.Pass | ast.AnnAssign) or not any(isinstance(each, acts) for each in ast.walk(node))


def _is_plain_decorator(source: Module, node: ast.expr) -> bool:
    root, attributes = chain(node.func if isinstance(node, ast.Call) else node)
    if not isinstance(root, ast.Name):
        return False
    target = source.resolve(root.id, attributes)
    if isinstance(target, str):
        return target.removeprefix("~") in PLAIN_DECORATORS
    return not target[1] and not any(_is_state(each) for each in _behind(target[0]))


def _behind(start: Reference) -> Iterator[Reference]:
    """A definition and all that it refers to, in turn."""
    seen, waiting = {start}, [start]
    while waiting:
        yield (each := waiting.pop())
        new = set(definition(each).references) - seen
        seen |= new
        waiting += new


def _is_state(reference: Reference) -> bool:
    """If a name is a variable that code may write to: no function, class, number, text or type."""
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    for node in reference.module.bindings.get(reference.name, ()):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for each in ast.walk(value) if value is not None else ():
            root, attributes = chain(each.func) if isinstance(each, ast.Call) else (None, ())
            target = reference.module.resolve(root.id, attributes) if isinstance(root, ast.Name) else "~"
            typed = isinstance(target, str) and target[1:].startswith(TYPING)
            if isinstance(each, displays) or (isinstance(each, ast.Call) and not typed):
                return True
    return reference.name == WHOLE


def _close(modules: set[Module], seen: dict[Module, bool]) -> None:
    """Add to `seen` these modules and those that they import, in turn, but for silent rooms."""
    waiting = [each for each in modules if each not in seen]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen[each] = each.may_act
            waiting += [inner for inner in each.imports if inner.figures]


def _looked_up(order: dict[Reference, int]) -> Iterator[Reference]:
    """Plug-ins whose names stand in code that finds plug-ins by name."""
    searching = {each for each in order if definition(each).looks_up}
    before = 0
    while len(searching) != before:
        before = len(searching)
        searching |= {each for each in order if not searching.isdisjoint(definition(each).references)}
    for each in searching:
        known = definition(each)
        texts = [*known.strings]
        for to in known.references:
            texts += definition(to).strings if to in order else ()
        for text in texts:
            yield from _plugin_names().get(re.split(r"[:\[]", text)[0], ())


@cache
def _plugin_names() -> dict[str, list[Reference]]:
    """The classes of this project's plug-ins by name."""
    found: dict[str, list[Reference]] = {}
    for group in GROUPS:
        for point in entry_points(group=f"bench.{group}"):
            if point.value.partition(".")[0] in PROJECT and locate(point.value.partition(":")[0]) is not None:
                found.setdefault(point.name, []).append(_reference(point.value))
    return found


def _source(plugin: StandIn) -> Path:
    """The file with the class that a stand-in stands for."""
    name = plugin.written.name
    if ".py:" in name:
        return Path(name.rpartition(":")[0])
    target = registry.entries(plugin.group)[name].target
    found = locate(target.partition(":")[0])
    if found is None:
        raise UsageError(f"{name} cannot be used: its module {target.partition(':')[0]} has no Python source")
    return found


def _data_files(plugin: StandIn) -> tuple[Path, ...]:
    """The files that a stand-in's parameters name, and those that were installed with its package."""
    spec = plugin.written
    named = [
        Path(value) for value in (spec.argument, *(value for _, value in spec.parameters)) if isinstance(value, str)
    ]
    files = [path for path in named if path.is_absolute() and path.exists()]
    if ".py:" not in spec.name:
        with contextlib.suppress(PackageNotFoundError):
            files += brought(distribution(registry.entries(plugin.group)[spec.name].origin))
    return tuple(files)


@cache
def third_party_digest(start: Path, data: tuple[Path, ...] = ()) -> str:
    """16 hex digits for every byte of a file, or of the package that it lies in, and for what it uses of the project.

    `data` are files and folders that count as well, each by its content.
    """
    package = package_of(start)
    top = start.parents[package.count(".")] if package else start.parent
    own = _files(top) if package else [start]
    sources = [path for path in own if path.suffix == ".py"] if package else [start]
    whole = hashlib.sha256(_digest_of(tuple(Reference(module(path), WHOLE) for path in sources)).encode())
    for path in own:
        name = path.relative_to(top).as_posix() if package else ""  # the place and name of a lone file do not count
        whole.update(hashlib.sha256(name.encode()).digest() + _bytes_digest(path))
    for each in data:
        for path in _files(each) if each.is_dir() else [each]:
            if path.is_file() and path not in own:
                whole.update(hashlib.sha256(path.name.encode()).digest() + _bytes_digest(path))
    return whole.hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _bytes_digest(path: Path) -> bytes:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()
