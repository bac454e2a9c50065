"""Top-level definitions of Python files: a normal form of the code of each, and the definitions that it refers to.

The normal form leaves out import lines, module names, names of top-level definitions, comments, formatting, docstrings,
words of error messages, progress messages, `Column(...)` of metrics and pictures of evaluators. A reference to a
top-level definition of the project is a numbered gap, wherever the definition stands and however it was imported; a
name of another package is its full dotted name.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, cast

PROJECT = ("bench", "methods", "attacks", "metrics")
WHOLE = "*"
"""Stands for all definitions of a module: one of them was reached by a name that is computed."""

_MARKER = re.compile(r"^__(figures|messages|lookups)__(?:: [^=\n]+)? = (.*)$", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:from\s+(\.*[\w.]*)\s+import\s+(\([^)]*\)|[^\n#;]*)|import\s+([^\n#;]*))", re.MULTILINE)
_DOCSTRING = re.compile(r'\A(?:\s|#.*\n)*r?"""[\s\S]*?"""')
_EFFECT = re.compile(
    r"^(?:@(?!(?:dataclass|cache|contextmanager|overload|njit|numba\.njit|functools\.cache)\b)"
    r"|(?!def |class |async def |from |import |@|[#\"'\s)\]}]|if TYPE_CHECKING|if __name__"
    r"|[\w ,]+(?::[^\n=]*)?=[^=])\S)",
    re.MULTILINE,
)
"""A line outside functions and classes that may do more than define a name."""
_DOTTED = re.compile(r"\w+(?:\.\w+)+(?::\w+)?")


class Reference(NamedTuple):
    """A top-level name of a module, or `WHOLE`."""

    module: Module
    name: str


Resolved = str | tuple[Reference, tuple[str, ...]]
"""A dotted name, marked by a tilde; or a definition of the project with the attributes that follow."""


class Import(NamedTuple):
    """The target of an imported name; `name` is None for a module as such."""

    module: str
    name: str | None


@cache
def locate(name: str) -> Path | None:
    """The source file of a module; None if there is none. No package is imported in order to look into it."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    # An imported package may have added folders to its path.
    for place in getattr(sys.modules.get(top), "__path__", spec.submodule_search_locations or ()):
        folder = Path(place, *inner)
        for path in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if path.is_file():
                return path
    return None


def package_of(path: Path) -> str:
    """The dotted package that a file lies in; empty outside any."""
    parts: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


@cache
def module(path: Path, name: str = "") -> Module:
    """The module in a file. `name` is its dotted name, if its folder does not tell it."""
    package = package_of(path)
    own = package if path.name == "__init__.py" else f"{package}.{path.stem}" if package else path.stem
    return Module(path, name or own, package)


class Module:
    """A Python file: the names that it binds and the statements that it runs when it is imported."""

    def __init__(self, path: Path, name: str, package: str) -> None:
        self.path, self.name, self.package = path, name, package
        self.text = path.read_text(encoding="utf-8")
        self._resolved: dict[tuple[str, ...], Resolved] = {}

    @cached_property
    def markers(self) -> Mapping[str, object]:
        """`__figures__`, `__messages__` and `__lookups__` of a module of the project; others have none."""
        if self.package.partition(".")[0] not in PROJECT:
            return {}
        return {name: ast.literal_eval(value) for name, value in _MARKER.findall(self.text)}

    @property
    def messages(self) -> Sequence[str]:
        """Functions whose calls only show where a job is."""
        return cast("Sequence[str]", self.markers.get("messages", ()))

    @property
    def lookups(self) -> Sequence[str]:
        """Functions that find plug-ins by name."""
        return cast("Sequence[str]", self.markers.get("lookups", ()))

    @cached_property
    def figures(self) -> bool:
        """If figures depend on the module's code: its own `__figures__`, else that of the nearest package."""
        if "figures" in self.markers or self.package.partition(".")[0] not in PROJECT:
            return self.markers.get("figures") is not False
        parent = self.package if self.path.name != "__init__.py" else self.package.rpartition(".")[0]
        path = locate(parent) if parent else None
        return path is None or module(path).figures

    def follow(self, name: str) -> Module | None:
        """A module that is imported here, if it belongs to the project or to this module's own package or folder."""
        top = name.partition(".")[0]
        if top not in PROJECT and top != self.package.partition(".")[0]:
            found = locate(top) if not self.package else None
            if found is None or not found.resolve().is_relative_to(self.path.resolve().parent):
                return None
        path = locate(name)
        return None if path is None else module(path)

    @cached_property
    def imports(self) -> frozenset[Module]:
        """Modules that are imported anywhere in the file; found without parsing it."""
        modules: set[Module | None] = set()
        for base, names, plain in _IMPORT.findall(self.text):
            if plain:
                modules |= {self.follow(each.split()[0]) for each in plain.split(",") if each.strip()}
                continue
            name = self._absolute(base.lstrip("."), len(base) - len(base.lstrip(".")))
            modules.add(package := self.follow(name))
            if package is not None and package.path.name == "__init__.py":
                bare = re.sub(r"#.*", "", names).strip("() \n\t")
                modules |= {self.follow(f"{name}.{each.split()[0]}") for each in bare.split(",") if each.strip()}
        return frozenset(each for each in modules if each is not None)

    def _absolute(self, name: str, level: int) -> str:
        parents = self.package.split(".")[: len(self.package.split(".")) - level + 1] if level else []
        return ".".join([*parents, *([name] if name else [])])

    def import_targets(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Import]]:
        """Each name that an import statement binds, with its target."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, Import(alias.name if alias.asname else bound, None)
            else:
                yield alias.asname or alias.name, Import(self._absolute(node.module or "", node.level), alias.name)

    @property
    def bindings(self) -> Mapping[str, Sequence[ast.stmt | Import]]:
        """The statements and imports that bind each name."""
        return self._index[0]

    @property
    def acting(self) -> Sequence[ast.stmt]:
        """Statements that may act at import, beyond a definition of this module."""
        return self._index[1]

    @property
    def stars(self) -> Iterator[Module]:
        """The modules of star imports."""
        return (found for name in self._index[2] if (found := self.follow(name)) is not None)

    @cached_property
    def _index(self) -> tuple[dict[str, list[ast.stmt | Import]], list[ast.stmt], list[str]]:
        """Bindings by name, statements that may act at import, and modules of star imports."""
        tree = ast.parse(self.text)
        bindings: dict[str, list[ast.stmt | Import]] = {}
        acting: list[ast.stmt] = []
        stars: list[str] = []
        for node in _statements(tree.body):
            names: list[str] = []
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, target in self.import_targets(node):
                    if name == "*":
                        stars.append(target.module)
                    else:
                        bindings.setdefault(name, []).append(target)
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
                if node.decorator_list:
                    acting.append(node)
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                names = sorted(set(self._bound_in(node)))
                if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or not names:
                    acting.append(node)
            for name in names:
                bindings.setdefault(name, []).append(node)
        for node in acting.copy():
            subject = _subject(node)
            if subject in bindings and not any(isinstance(each, Import) for each in bindings[subject]):
                if node not in bindings[subject]:
                    bindings[subject].append(node)
                acting.remove(node)
        return bindings, acting, stars

    def _bound_in(self, node: ast.stmt) -> Iterator[str]:
        """The names that a statement binds, other than an import, a function or a class."""
        stack: list[ast.AST] = [node]
        while stack:
            each = stack.pop()
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield each.name
            elif isinstance(each, ast.Import | ast.ImportFrom):
                yield from (name for name, _ in self.import_targets(each))
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each.id
            elif not isinstance(each, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                stack += ast.iter_child_nodes(each)

    def has(self, name: str) -> bool:
        """If the module binds that name."""
        return name in self.bindings

    @cached_property
    def may_act(self) -> bool:
        """If a line at the margin may do more than define a name; told without parsing."""
        return self.figures and _EFFECT.search(_DOCSTRING.sub("", self.text, count=1)) is not None

    def subclasses(self, bases: set[Reference]) -> Iterator[Reference]:
        """The classes of the module that derive from one of these."""
        for name, nodes in self.bindings.items():
            for node in nodes:
                for base in node.bases if isinstance(node, ast.ClassDef) else ():
                    root, attributes = chain(base.value if isinstance(base, ast.Subscript) else base)
                    found = self.resolve(root.id, attributes) if isinstance(root, ast.Name) else ""
                    if not isinstance(found, str) and found[0] in bases:
                        yield Reference(self, name)

    def resolve(self, name: str, attributes: Sequence[str] = ()) -> Resolved:
        """A name used in the module: a definition of the project with the attributes that follow, or a dotted name."""
        key = (name, *attributes)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(name, tuple(attributes), frozenset())
        return self._resolved[key]

    def _resolve(self, name: str, attributes: tuple[str, ...], seen: frozenset[tuple[str, str]]) -> Resolved:
        bindings = self.bindings.get(name)
        if bindings is None:
            return ".".join([f"~{name}", *attributes])
        last = bindings[-1]
        if isinstance(last, Import) and all(isinstance(each, Import) for each in bindings):
            return self.target(last, attributes, seen | {(self.name, name)})
        return Reference(self, name), attributes

    def target(
        self, target: Import, attributes: tuple[str, ...] = (), seen: frozenset[tuple[str, str]] = frozenset()
    ) -> Resolved:
        """The definition that an import of this module leads to, through modules that only re-export it."""
        found = self.follow(target.module)
        rest = attributes if target.name is None else (target.name, *attributes)
        if found is None:
            return "~" + ".".join([target.module, *rest])
        while rest:
            name, rest = rest[0], rest[1:]
            if not found.figures and found.defines(name):
                return Reference(found, name), rest
            if found.has(name) and (found.name, name) not in seen:
                return found._resolve(name, rest, seen)
            inner = found.follow(f"{found.name}.{name}") if found.path.name == "__init__.py" else None
            if inner is None:
                return Reference(found, WHOLE), rest
            found = inner
        return Reference(found, WHOLE), ()

    def defines(self, name: str) -> bool:
        """If a line at the margin defines that name; told without parsing."""
        return (
            re.search(rf"^(?:(?:async )?def |class )?{re.escape(name)}\b(?! import)", self.text, re.MULTILINE)
            is not None
        )

    def named(self, text: str) -> Reference | None:
        """What a string names, if it is `package.module` or `package.module:name` of the project."""
        if text.partition(".")[0] not in PROJECT or not _DOTTED.fullmatch(text):
            return None
        parts = re.split("[.:]", text)
        for cut in (len(parts), len(parts) - 1):
            found = self.follow(".".join(parts[:cut]))
            if found is None:
                continue
            if cut == len(parts):
                return Reference(found, WHOLE)
            target = found.resolve(parts[cut]) if found.has(parts[cut]) else ""
            return None if isinstance(target, str) else target[0]
        return None

    def data_files(self, names: Sequence[str]) -> list[str]:
        """Digests of the data files beside the module, and of those of its whole package with one of these names.

        If none has such a name, the name is computed: all count.
        """
        if not self.package:
            files = [self.path.parent / name for name in names if name and "\0" not in name]
        else:
            top = self.path.parents[self.package.count(".")]
            last = {name.rpartition("/")[2] for name in names}
            every = [path for path in top.rglob("*") if path.suffix not in {".py", ".pyc"}]
            named = [path for path in every if path.name in last]
            files = [path for path in every if not named or path.is_relative_to(self.path.parent)] + named
        found = {path for path in files if path.is_file() and path.suffix not in {".py", ".pyc"}}
        return sorted(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in found)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at the margin, with those for type checkers and without those of a script."""
    for node in body:
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if isinstance(node, ast.If) and test.rpartition(".")[2] == "TYPE_CHECKING":
            yield from _statements([*node.body, *node.orelse])
        elif not test.startswith("__name__ =="):
            yield node


def _subject(node: ast.stmt) -> str | None:
    """The name that a statement changes: X of `X.append(1)`, `X[0] = 1`, `del X.a` and `@X.register`."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        targets = [node.value.func]
    elif isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
        targets = [each for each in called if isinstance(each, ast.Attribute)]
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            return target.id
    return None


def chain(node: ast.expr) -> tuple[ast.expr, tuple[str, ...]]:
    """The root of a chain of attributes, and the attributes."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    return node, tuple(attributes)
