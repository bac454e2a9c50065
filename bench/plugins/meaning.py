"""What the text of a module says: what it imports, and a hash of what its code computes.

Comments, formatting, docstrings, the columns of metrics, the texts of errors and of progress do not count, so that a
reworded sentence does not invalidate a day of results.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

SAID = frozenset({"stage", "report"})  # what they are given is shown while a job runs, and nowhere else
UNJUDGED = frozenset({"pictures", "samples"})  # methods of an evaluator that no figure comes from


class Reading(NamedTuple):
    """What the text of a module says.

    Args:
        imports: (module, name) of every import, the name None for a module as such.
        shown: The names that a module without code of its own takes from others, with the module of each; else nothing.
        meaning: Hex digits for what its code computes.
    """

    imports: Sequence[tuple[str, str | None]]
    shown: Mapping[str, str]
    meaning: str


READ: dict[str, Reading] = {}
"""What was read, by digests of all that it follows from: to parse what stands behind a run takes two seconds."""


@cache
def read(path: Path) -> Reading:
    """The reading of a file of Python. Raises SyntaxError where it is none."""
    text, package = path.read_text(encoding="utf-8"), package_of(path)
    key = hashlib.sha256("\0".join((_reader(), package, text)).encode()).hexdigest()
    if key not in READ:
        tree = ast.parse(text)
        imports = _imports(tree, package)
        said = {name for module, name in imports if module == "bench.progress" and name in SAID}
        found = sorted(imports, key=lambda each: (each[0], each[1] or ""))
        shown = _shown(tree, package)
        meaning = hashlib.sha256(_dump(_Meaning(said).visit(tree)).encode()).hexdigest()
        READ[key] = Reading(found, shown, meaning)
    return READ[key]


@cache
def _reader() -> str:
    """What reads: this module, and the parser of this Python."""
    return f"{sys.version_info[:2]} {Path(__file__).read_text(encoding='utf-8')}"


def _shown(tree: ast.Module, package: str) -> dict[str, str]:
    shown: dict[str, str] = {}
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        public = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if not (isinstance(node, ast.ImportFrom) or docstring or (public and _is_all(node))):
            return {}
        shown |= {name: module for module, name in _imports(node, package) if name is not None}  # the last one holds
    return shown


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"


def package_of(path: Path) -> str:
    """The dotted package a file lies in; empty outside any."""
    parts: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _imports(tree: ast.AST, package: str) -> set[tuple[str, str | None]]:
    """Every import as (module, name), the name None for a module as such; relative ones resolved in `package`."""
    found: set[tuple[str, str | None]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found |= {(base, alias.name) for alias in node.names}
    return found


def _dump(node: object) -> str:
    """A syntax tree as text that does not hang on the version of Python: what is empty is left out."""
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in fields)})"


class _Meaning(ast.NodeTransformer):
    """Takes out of a module what no figure depends on: strings that stand alone, texts of errors and of progress.

    `said` are the names by which the module says where it is (`bench.progress`).
    """

    def __init__(self, said: set[str]) -> None:
        self._said = said

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in self._said:
            return None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return cast(ast.AST, _Wordless().visit(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        judged = any(isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "evidence" for each in node.body)
        node.body = [each for each in node.body if not _is_shown(each, evaluator=judged)]
        return self.generic_visit(node)


class _Wordless(ast.NodeTransformer):
    """Takes the words out of a message."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


def _is_shown(statement: ast.stmt, *, evaluator: bool) -> bool:
    """Whether it says how something is shown: an evaluator's pictures, a metric's `column = Column(...)`."""
    if isinstance(statement, ast.FunctionDef):
        return evaluator and statement.name in UNJUDGED
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Column"
