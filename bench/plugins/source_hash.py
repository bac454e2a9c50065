"""A hash of what a plug-in's code means: its module and every module of this project that it imports.

Comments, formatting, docstrings and the columns of metrics do not count, so that a reworded sentence does not
invalidate a day of results. Nor does the contract itself, which grows: `bench.workbench.cell.PROTOCOL` rises where its
meaning changes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from functools import cache
from pathlib import Path

from bench import types
from bench.types import Plugin

PROJECT = frozenset({"bench", "methods", "attacks", "metrics"})
CONTRACT = Path(types.__file__)


def source_hash(cls: type) -> str:
    """16 hex digits for the code behind a plug-in class."""
    return modules_hash(Path(inspect.getfile(cls)))


def plugin_hash(plugin: Plugin) -> str:
    """16 hex digits for the code behind a plug-in and behind those that it holds."""
    held = [value for value in vars(plugin).values() if isinstance(value, Plugin)]
    if not held:
        return source_hash(type(plugin))
    codes = [source_hash(type(plugin)), *(plugin_hash(inner) for inner in held)]
    return hashlib.sha256("".join(codes).encode()).hexdigest()[:16]


@cache
def modules_hash(start: Path) -> str:
    """16 hex digits for the module at `start` and, in turn, what it imports from this project and its own package."""
    seen: dict[Path, str] = {}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in seen or path == CONTRACT:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        package = _package(path)
        own = PROJECT | {package.partition(".")[0]} if package else PROJECT
        names = {name for name in _imports(tree, package) if name.partition(".")[0] in own}
        waiting += [found for name in names if (found := _locate(name)) is not None]
        seen[path] = _meaning(tree)
    return hashlib.sha256("".join(sorted(seen.values())).encode()).hexdigest()[:16]


def _package(path: Path) -> str:
    """The dotted package a file lies in; empty outside any."""
    parts: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _imports(tree: ast.Module, package: str) -> set[str]:
    """Every imported name, as a module or as an attribute of one; relative ones resolved in `package`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


@cache
def _locate(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # an imported attribute, not a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def _meaning(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
        if isinstance(node, ast.ClassDef):
            node.body = [statement for statement in node.body if not _is_column(statement)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_column(statement: ast.stmt) -> bool:
    """Whether it is a metric's `column = Column(...)`, which says how a figure is shown and not what it is."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Column"
