"""Classes and instances of plug-ins as specs, wherever they are defined.

Methods and attacks work in processes of their own, which build a plug-in from a spec. A class of a script or a notebook
is written to a file with all that it uses: the script itself is never run again.
"""

from __future__ import annotations

__figures__ = False

import ast
import builtins
import inspect
import re
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.disk.atomic_file import make_folder, write_atomically
from bench.plugins import registry
from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, UsageError, parameters
from bench.types import Plugin

FOLDER = "plug-ins"
"""Below the results folder: files of classes that scripts and notebooks define."""


def spec_of(group: Group, plugin: object, folder: Path) -> str:
    """A plug-in as `bench run` takes it.

    Args:
        group: Of the plug-in.
        plugin: A spec, or a class or an instance of the group.
        folder: For the files of classes that a script or a notebook defines.

    Raises:
        UsageError: It is none of the group, or its source is not known.
    """
    if isinstance(plugin, str):
        return plugin
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if not issubclass(cls, registry.kind(group)):
        noun = registry.noun(group)
        raise UsageError(
            f"expected {'an' if noun[0] in 'aeiou' else 'a'} {noun}: a spec such as 'name[a=1]', or a class or an "
            f"instance of bench.types.{registry.kind(group).__name__}; got {plugin!r:.80}"
        )
    values = {} if isinstance(plugin, type) else parameters_of(plugin, folder)
    return str(PluginSpec(_name(group, cls, folder), None, tuple(values.items())))


def parameters_of(plugin: object, folder: Path) -> dict[str, Any]:
    """An instance's parameters; plug-ins among them as specs."""
    found: dict[str, Any] = dict(parameters(plugin))
    for name in found:
        inner = getattr(plugin, name)
        if isinstance(inner, Plugin):
            kind: Group = "methods" if isinstance(inner, registry.kind("methods")) else "attacks"
            found[name] = spec_of(kind, inner, folder)
    return found


def row_spec(plugin: object) -> str:
    """A method as rows name it, without its file."""
    if isinstance(plugin, str):
        return plugin
    values = {} if isinstance(plugin, type) else parameters(plugin)
    return str(PluginSpec(str(getattr(plugin, "name", plugin)), None, tuple(values.items())))


def _name(group: Group, cls: type, folder: Path) -> str:
    """The registered name of a class, or FILE.py:CLASS."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    for name, entry in registry.entries(group).items():
        if entry.target == target and entry.error is None:
            return name
    if "." in cls.__qualname__:
        raise UsageError(f"{cls.__qualname__} is defined within another definition: define it at the top of the module")
    if cls.__module__ == "__main__":
        return f"{_written(cls.__name__, folder)}:{cls.__name__}"
    try:
        return f"{Path(inspect.getfile(cls)).resolve()}:{cls.__name__}"
    except (OSError, TypeError) as error:
        raise UsageError(f"{cls.__qualname__} has no source: write it to a file, and name FILE.py:CLASS") from error


def _written(name: str, folder: Path) -> Path:
    """The file of a script's class, with all that it uses."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    path = folder.resolve() / f"{stem}.py"
    content = f"{source_of(name, list(_cells()))}\n".encode()
    if not path.is_file() or path.read_bytes() != content:
        make_folder(path.parent)
        write_atomically(path, content)
    return path


def _cells() -> Iterator[str]:
    """The running script's source, or a notebook's cells in order."""
    main = sys.modules["__main__"]
    shell = getattr(builtins, "get_ipython", lambda: None)() or getattr(main, "get_ipython", lambda: None)()
    if shell is not None:
        yield from shell.history_manager.input_hist_parsed
    elif (file := getattr(main, "__file__", None)) is not None and Path(file).is_file():
        yield Path(file).read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Statement:
    """A top-level statement that binds names."""

    place: tuple[int, int]
    text: str
    node: ast.stmt


def source_of(name: str, cells: Sequence[str]) -> str:
    """The source of a class and of top-level definitions it uses.

    >>> print(source_of("A", ["import os, re", "N = 2", "class A:", "class A:\\n    n = N\\n    s = os.sep", "run(A)"]))
    import os
    N = 2
    class A:
        n = N
        s = os.sep

    Args:
        name: Of the class.
        cells: Source texts, in the order they were run; a later definition of a name replaces an earlier one. Texts
            that are no Python are left out.

    Raises:
        UsageError: There is no source, or the class uses what a call has computed.
    """
    known, changed, postponed = _bound(cells)
    if name not in known:
        raise UsageError(f"the source of {name} is not known here: write it to a file, and name FILE.py:{name}")
    found: dict[str, _Statement] = {}
    wanted = [(name, name)]
    while wanted:
        each, by = wanted.pop()
        if each in changed:
            raise UsageError(
                f"{by} uses {each}, which another statement sets or changes ({changed[each]:.60}): {_REMEDY}"
            )
        if each in found or each not in known:
            continue
        found[each] = statement = known[each]
        if not isinstance(statement.node, _DEFINITION | ast.Import | ast.ImportFrom) and any(
            isinstance(part, ast.Call | ast.Await) for part in ast.walk(statement.node)
        ):
            raise UsageError(
                f"{by} uses {each}, which a call has computed ({statement.text.splitlines()[0]:.60}): {_REMEDY}"
            )
        wanted += [(used, each) for used in _used(statement.text) if used != each]
    found |= {each: statement for each, statement in known.items() if each.endswith(STAR)}  # they may bind any name
    texts = dict.fromkeys(_ordered(found))
    return "\n".join([*(["from __future__ import annotations"] if postponed else []), *texts])


STAR = " import *"
_DEFINITION = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_REMEDY = (
    "a plug-in works in a process of its own, which does not run the rest of your code. Make it a field, or compute it "
    "in fit"
)


def _used(source: str) -> set[str]:
    """Names that a statement takes from its module, not its own variables."""

    def of(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_global() or (table.get_type() != "function" and symbol.is_referenced()):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from of(inner)

    return {*of(symtable.symtable(source, "", "exec"))}


def _ordered(found: Mapping[str, _Statement]) -> Iterator[str]:
    """Texts in their order; needs of a definition come before it."""
    done = set[str]()

    def visit(name: str) -> Iterator[str]:
        if name in done:
            return
        done.add(name)
        node = found[name].node
        within = [
            each for each in ast.walk(node) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        ]
        later = {id(part) for each in within for part in ast.walk(each)}
        at_once = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in later}
        for other in sorted(at_once & found.keys(), key=lambda each: found[each].place):
            yield from visit(other)
        yield found[name].text

    for name in sorted(found, key=lambda each: found[each].place):
        yield from visit(name)


def _bound(cells: Sequence[str]) -> tuple[Mapping[str, _Statement], Mapping[str, str], bool]:
    """Binding statements by name, changed names, and if annotations are postponed."""
    known: dict[str, _Statement] = {}
    changed: dict[str, str] = {}
    postponed = False
    for number, text in enumerate(cells):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        lines = re.split(r"\r\n|\r|\n", text)
        for node in _flat(tree.body):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            place = number, first
            bound: dict[str, str] = {}
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                postponed = True
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    one = ast.Import([alias]) if isinstance(node, ast.Import) else None
                    alone = one or ast.ImportFrom(getattr(node, "module", None), [alias], getattr(node, "level", 0))
                    written = ast.unparse(alone)
                    bound[written if alias.name == "*" else alias.asname or alias.name.partition(".")[0]] = written
            elif isinstance(node, _DEFINITION):
                bound[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = (part for each in targets for part in ast.walk(each) if isinstance(part, ast.Name))
                bound = {part.id: ast.unparse(node) for part in names if isinstance(part.ctx, ast.Store)}
            for name, source in bound.items():
                known[name] = _Statement(place, source, node)
                changed.pop(name, None)
            changed |= {name: ast.unparse(node).splitlines()[0] for name in _changes(node) - bound.keys()}
    return known, changed, postponed


def _changes(node: ast.stmt) -> set[str]:
    """Names that a top-level statement sets, deletes or changes a part of."""
    found = set[str]()
    parts: list[ast.AST] = [node]
    while parts:
        part = parts.pop()
        if isinstance(part, _DEFINITION | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            found |= {part.name} if isinstance(part, _DEFINITION) else set()
            continue
        if isinstance(part, ast.Name | ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            whole: ast.expr = part
            while isinstance(whole, ast.Subscript | ast.Attribute):
                whole = whole.value
            found |= {whole.id} if isinstance(whole, ast.Name) else set()
        parts += ast.iter_child_nodes(part)
    return found


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, with imports that stand within a condition."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from (part for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom))
