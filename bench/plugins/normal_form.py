"""The normal form of a definition: its syntax tree as text.

Other top-level definitions of the project are gaps.

The text leaves out import lines, names of modules and of top-level definitions, comments, formatting, docstrings, words
of errors, progress messages, `Column(...)` of metrics, pictures of evaluators, and `PLANNED` class variables. A
reference to a definition of the project is a gap, in whatever file it stands and however it is imported; a name of
another package is its dotted name.

Modules of the project register nothing when they are imported: `tests/plugins/test_code_digest.py` holds it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from bench.plugins.groups import GROUPS

PROJECT = ("bench", "methods", "attacks", "metrics")
WHOLE = "*"
"""Stands for all statements of a module."""
DISPLAYED = frozenset({"pictures", "samples"})
"""Methods of an evaluator that no figure comes from."""
PLANNED = frozenset({"makes_releases", "raw_like"})
"""What attacks and methods say to the planner and to `bench release` alone."""

_MARKER = re.compile(r"^__(figures|messages|lookups)__(?:: [^=\n]+)? = (.*)$", re.MULTILINE)
_DOTTED = re.compile(r"\w+(?:\.\w+)+(?::\w+)?")
_DYNAMIC = re.compile(r"~(__import__|eval|exec|globals|importlib\.import_module|runpy\.\w+|sys\.modules)\b")
"""Ways to a definition that its text does not name: everything in the module counts."""
_FILES = re.compile(r"~(__file__|__path__|__spec__|importlib\.resources|pkgutil\.get_data)\b")
_POSITIONS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_IMPORTS = ast.Import | ast.ImportFrom
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Import(NamedTuple):
    """An imported name's target; `name` is None for a whole module."""

    module: str
    name: str | None


class Reference(NamedTuple):
    """A top-level name of a module, or `WHOLE`."""

    module: Module
    name: str


class Definition(NamedTuple):
    """The digest of a definition's text, and its gaps' definitions in order."""

    digest: str
    references: tuple[Reference, ...]


Names = Mapping[str, Import | None]
"""Local names, with the targets of those that are imported."""
Target = str | tuple[Reference, tuple[str, ...]]
"""A text; a name of another package, after a tilde; or a definition of the project with the attributes that follow."""


@cache
def locate(name: str) -> Path | None:
    """A module's source file; None if missing. It is not imported."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None or not inner:
        return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
    # An imported package may have added folders to its path.
    places = getattr(sys.modules.get(top), "__path__", spec.submodule_search_locations or ())
    folders = [Path(place, *inner) for place in places]
    files = (path for folder in folders for path in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")))
    return next(filter(Path.is_file, files), None)


def package_of(path: Path) -> str:
    """The dotted package that a file lies in; empty outside any."""
    parts: list[str] = []
    for folder in path.parents:
        if not (folder / "__init__.py").exists():
            break
        parts.insert(0, folder.name)
    return ".".join(parts)


class Module:
    """A Python file and the names that it binds."""

    def __init__(self, path: Path) -> None:
        self.path, self.package = path, package_of(path)
        self.is_package = path.name == "__init__.py"
        self.name = self.package if self.is_package else f"{self.package}.{path.stem}".removeprefix(".")
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def markers(self) -> Mapping[str, Any]:
        """`__figures__`, `__messages__` and `__lookups__` of a module of the project."""
        is_ours = self.package.partition(".")[0] in PROJECT
        return {name: ast.literal_eval(value) for name, value in _MARKER.findall(self.text) if is_ours}

    @cached_property
    def figures(self) -> bool:
        """If figures depend on it: its `__figures__`, else its package's."""
        if "figures" in self.markers or self.package.partition(".")[0] not in PROJECT:
            return self.markers.get("figures") is not False
        parent = locate(self.package.rpartition(".")[0] if self.is_package else self.package)
        return parent is None or module(parent).figures

    @cached_property
    def statements(self) -> Sequence[ast.stmt]:
        """Top-level statements with those for type checkers, without scripts."""
        return list(_statements(ast.parse(self.text).body))

    @cached_property
    def bindings(self) -> Mapping[str, Sequence[ast.stmt | Import]]:
        """The statements and imports that bind each name.

        A statement that binds none counts for all definitions.
        """
        bindings: dict[str, list[ast.stmt | Import]] = {}
        acting = list[ast.stmt]()
        for node in self.statements:
            names = self.bound([node])
            for name, target in names.items():
                bindings.setdefault(name, []).append(target if target and isinstance(node, _IMPORTS) else node)
            if not names and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                acting.append(node)
        for nodes in bindings.values():
            nodes += () if isinstance(nodes[0], Import) else acting
        return bindings

    def bound(self, nodes: Iterable[ast.AST]) -> dict[str, Import | None]:
        """Names that statements bind in their scope, with imports' targets."""
        names: dict[str, Import | None] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if isinstance(node, _DEFINITIONS):
                names.setdefault(node.name)
            elif isinstance(node, _IMPORTS):
                names |= self.import_targets(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.setdefault(node.id)
            elif isinstance(node, _COMPREHENSIONS):
                stack += [each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.setdefault(node.name)
                stack += node.body
            elif not isinstance(node, ast.Lambda):
                stack += ast.iter_child_nodes(node)
        return names

    def import_targets(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Import]]:
        """Each name that an import statement binds, with its target."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, Import(alias.name if alias.asname else bound, None)
            return
        package = self.package.split(".")
        parents = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join(filter(None, [*parents, node.module]))
        for alias in node.names:
            if alias.name == WHOLE:
                yield WHOLE, Import(base, None)
            elif base == self.name:  # a package imports a module of its own
                yield alias.asname or alias.name, Import(f"{base}.{alias.name}", None)
            else:
                yield alias.asname or alias.name, Import(base, alias.name)

    def resolve(self, name: str, attributes: tuple[str, ...] = ()) -> Target:
        """The target of a name used in the module."""
        bindings = self.bindings.get(name)
        if bindings is None:
            return (Reference(self, WHOLE), ()) if WHOLE in self.bindings else ".".join([f"~{name}", *attributes])
        if isinstance(bindings[0], Import) and len(set(bindings)) == 1:
            return self.target(bindings[0], attributes)
        return Reference(self, name), attributes

    def target(self, target: Import, attributes: tuple[str, ...] = ()) -> Target:
        """The target of an import, through modules that only re-export it."""
        source = self.follow(target.module)
        rest = attributes if target.name is None else (target.name, *attributes)
        if source is None:
            return ".".join([f"~{target.module}", *rest])
        while rest:
            if rest[0] in source.bindings:
                return source.resolve(rest[0], rest[1:])
            inner = source.follow(f"{source.name}.{rest[0]}") if source.is_package else None
            if inner is None:
                break
            source, rest = inner, rest[1:]
        return Reference(source, WHOLE), rest

    def follow(self, name: str) -> Module | None:
        """An imported module of the project or of this package or folder."""
        top = name.partition(".")[0]
        if top not in PROJECT and top != self.package.partition(".")[0]:
            beside = None if self.package else locate(top)
            if beside is None or not beside.resolve().is_relative_to(self.path.resolve().parent):
                return None
        path = locate(name)
        return None if path is None else module(path)

    def named(self, text: str) -> Target:
        """The definition that `package.module:name` names; else the text itself."""
        top, *rest = re.split("[.:]", text) if _DOTTED.fullmatch(text) else [""]
        target = self.target(Import(top, None), tuple(rest)) if top in PROJECT else ""
        return ascii(text) if isinstance(target, str) or target[1] else target

    def data_files(self, names: Iterable[str]) -> list[str]:
        """Digests of the package's data files.

        Outside packages, of files beside the module with these names.
        """
        top = self.path.parents[self.package.count(".")]
        beside = [self.path.parent / name for name in names if name and "\0" not in name]
        paths = {path for path in (top.rglob("*") if self.package else beside) if path.is_file()}
        data = [path for path in paths if path.suffix != ".py" and path.parent.name != "__pycache__"]
        return sorted(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in data)


@cache
def module(path: Path) -> Module:
    """The module in a file."""
    return Module(path)


@cache
def definition(reference: Reference) -> Definition:
    """The normal form of a name's definition, or of `WHOLE`."""
    module, name = reference
    return normal_form(module, module.statements if name == WHOLE else module.bindings[name])


def normal_form(module: Module, nodes: Sequence[ast.stmt | Import]) -> Definition:
    """The normal form of a module's top-level statements and imports."""
    writer = _Writer(module)
    for node in nodes:
        if isinstance(node, Import):
            writer.put(module.target(node))
        elif writer.counts(node):
            writer.write(node)
    foreign = [token for token in writer.text if token.startswith("~")]
    references = writer.references
    if any(map(_DYNAMIC.match, foreign)):
        references.append(Reference(module, WHOLE))
    if any(map(_FILES.match, foreign)):
        writer.text += module.data_files(writer.strings)
    searches = any(each.name in each.module.markers.get("lookups", ()) for each in references)
    if searches or "~importlib.metadata.entry_points" in foreign:
        references += own_plugins()
    digest = hashlib.sha256("\x1f".join(writer.text).encode()).hexdigest()
    return Definition(digest, tuple(references))


@cache
def own_plugins() -> Sequence[Reference]:
    """The classes of the project's plug-ins, in the order of their names."""
    points = sorted((point.name, point.value) for group in GROUPS for point in entry_points(group=f"bench.{group}"))
    names = [value.partition(":") for _, value in points if value.partition(".")[0] in PROJECT]
    return [Reference(module(path), attribute) for name, _, attribute in names if (path := locate(name)) is not None]


class _Scope(NamedTuple):
    names: Names
    outer: Names
    """What a function within sees: not the names of a class."""


class _Writer:
    """Writes statements of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.text: list[str] = []
        self.references: list[Reference] = []
        self.strings: list[str] = []
        self.root = self.scope = _Scope({}, {})
        self.is_error = False

    def write(self, value: object) -> None:
        if isinstance(value, list):
            self.text.append("[")
            for each in value:
                self.write(each)
            self.text.append("]")
        elif isinstance(value, ast.AST):
            _WRITERS.get(value.__class__, _Writer.node)(self, value)
        else:
            self.text.append("-" if value is None else ascii(value))

    def node(self, node: ast.AST) -> None:
        """A node by class and fields, without empty ones.

        So versions of Python agree.
        """
        self.text.append(f"({node.__class__.__name__}")
        for field in node._fields:
            value = getattr(node, field, None)
            if value.__class__ is list:
                value = [each for each in value if self.counts(each)] or None
            if value is not None and field not in _POSITIONS:
                self.text.append(field)
                self.write(value)
        self.text.append(")")

    def counts(self, node: object) -> bool:
        """If a statement is more than a docstring, message or import.

        Imports are followed by their names, unless a name has other meanings.
        """
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            root, attributes = _chain(node.value.func)
            target = self.find(root.id, attributes) if isinstance(root, ast.Name) else ""
            return isinstance(target, str) or target[0].name not in target[0].module.markers.get("messages", ())
        if isinstance(node, _IMPORTS):
            names = self.scope.names
            return self.scope is self.root or any(
                names.get(name) != to for name, to in self.module.import_targets(node)
            )
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        return not is_text and not isinstance(node, ast.Pass)

    def find(self, name: str, attributes: tuple[str, ...] = ()) -> Target:
        """The target of a name in the present scope."""
        if name not in self.scope.names:
            return self.module.resolve(name, attributes)
        target = self.scope.names[name]
        return ".".join([name, *attributes]) if target is None else self.module.target(target, attributes)

    def put(self, target: Target) -> None:
        """Write a target: a gap for definitions of the project."""
        if isinstance(target, str):
            self.text.append(target)
        else:
            self.references.append(target[0])
            self.text.append(".".join(["\N{WHITE SQUARE}", *target[1]]))

    def bind(self, name: str) -> None:
        """A bound name: a gap at the top level, else local."""
        self.put(self.find(name) if self.scope is self.root else name)

    def name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.put(self.find(node.id))
        else:
            self.bind(node.id)

    def attribute(self, node: ast.Attribute) -> None:
        """A chain of attributes, or its target in a module."""
        root, attributes = _chain(node)
        if isinstance(root, ast.Name):
            self.put(self.find(root.id, attributes))
        else:
            self.write([root, *attributes])

    def import_(self, node: ast.Import | ast.ImportFrom) -> None:
        for _, target in self.module.import_targets(node):
            self.put(self.module.target(target))

    def try_(self, node: ast.Try) -> None:
        """Imports that may fail count."""
        for each in ast.walk(node):
            if isinstance(each, _IMPORTS):
                self.import_(each)
        self.node(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A function: decorators, defaults and annotations belong to the scope around it."""
        self.text.append(f"({type(node).__name__}")
        self.write(node.args)
        if not isinstance(node, ast.Lambda):
            self.write([*node.decorator_list, node.returns])
            self.bind(node.name)
        body: list[Any] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        groups = (node.args.posonlyargs, node.args.args, node.args.kwonlyargs, [node.args.vararg, node.args.kwarg])
        parameters = {each.arg: None for group in groups for each in group if each}
        self.inner({**self.module.bound(body), **parameters}, body)

    def inner(self, names: Names, nodes: list[Any]) -> None:
        """Nodes in a scope of their own, which binds these names."""
        scope = self.scope
        names = {**scope.outer, **names}
        self.scope = _Scope(names, names)
        self.write([each for each in nodes if self.counts(each)])
        self.scope = scope

    def class_(self, node: ast.ClassDef) -> None:
        """A class without metrics' columns and pictures of evaluators.

        A name is local once it is bound.
        """
        self.text.append("(ClassDef")
        self.write([*node.decorator_list, *node.bases, *node.keywords])
        self.bind(node.name)
        fields = [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
        scope, names = self.scope, dict(self.scope.outer)
        self.scope = _Scope(names, scope.outer)
        for each in node.body:
            if self.counts(each) and not _is_display(each, evaluator="evidence" in fields):
                self.write(each)
            if not isinstance(each, ast.AnnAssign) or each.value is not None:
                names |= self.module.bound([each])
        self.scope = scope

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """A comprehension: its first iterable belongs to the scope around it."""
        first, *more = node.generators
        self.text.append(f"({type(node).__name__}")
        self.write(first.iter)
        nodes = [first.target, *first.ifs, first.is_async, *more]
        nodes += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.inner(self.module.bound(each.target for each in node.generators), nodes)

    def constant(self, node: ast.Constant) -> None:
        """A constant; a string may name a definition. Errors have none."""
        if isinstance(node.value, str) and not self.is_error:
            self.strings.append(node.value)
            self.put(self.module.named(node.value))
        else:
            self.text.append("''" if isinstance(node.value, str) else ascii(node.value))

    def joined(self, node: ast.JoinedStr) -> None:
        """An f-string with neighbouring constants joined, as versions differ."""
        text = ""
        for each in () if self.is_error else node.values:
            if isinstance(each, ast.Constant):
                text += str(each.value)
            else:
                self.constant(ast.Constant(text))
                self.node(each)
                text = ""
        self.constant(ast.Constant(text))

    def raise_(self, node: ast.Raise) -> None:
        self.is_error, before = True, self.is_error
        self.node(node)
        self.is_error = before


_WRITERS: Mapping[type, Callable[..., None]] = {
    ast.AsyncFunctionDef: _Writer.function, ast.Attribute: _Writer.attribute, ast.ClassDef: _Writer.class_,
    ast.Constant: _Writer.constant, ast.DictComp: _Writer.comprehension, ast.FunctionDef: _Writer.function,
    ast.GeneratorExp: _Writer.comprehension, ast.Import: _Writer.import_, ast.ImportFrom: _Writer.import_,
    ast.JoinedStr: _Writer.joined, ast.Lambda: _Writer.function, ast.ListComp: _Writer.comprehension,
    ast.Name: _Writer.name, ast.Raise: _Writer.raise_, ast.SetComp: _Writer.comprehension, ast.Try: _Writer.try_,
    ast.TryStar: _Writer.try_,
}  # fmt: skip


def _is_display(node: ast.stmt, *, evaluator: bool) -> bool:
    """If a class statement counts for no figure.

    That is `column = Column(...)`, an evaluator's picture, or one of `PLANNED`.
    """
    if isinstance(node, ast.FunctionDef):
        return node.name in PLANNED or (evaluator and node.name in DISPLAYED)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if {ast.unparse(each) for each in targets} <= PLANNED:
            return True
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Column"


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if isinstance(node, ast.If) and test.rpartition(".")[2] == "TYPE_CHECKING":
            yield from _statements([*node.body, *node.orelse])
        elif not test.startswith("__name__ =="):
            yield node


def _chain(node: ast.expr) -> tuple[ast.expr, tuple[str, ...]]:
    """The root of a chain of attributes, and the attributes."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    return node, tuple(attributes)
