"""Renaming, moving, merging and splitting the product's files at random changes no plug-in's digest."""

from __future__ import annotations

import ast
import random
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from bench.plugins import code_digest as digests
from bench.plugins import normal_form as sources
from bench.plugins.code_digest import code_digest, definitions, forget
from bench.plugins.groups import GROUPS
from bench.plugins.normal_form import PROJECT
from bench.workbench.inputs import JUDGE, RELEASE, SPLITS

ROOT = Path(__file__).parents[2]
STEPS = 30
IMPORT = ast.Import | ast.ImportFrom


class Product:
    """A copy of the product, and the present place of each root."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random, self.count = folder, random.Random(seed), 0
        for name in PROJECT:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "suites"))
        points = [point.value for group in GROUPS for point in entry_points(group=f"bench.{group}")]
        ours = [each for each in points if each.partition(".")[0] in PROJECT]
        self.places = {each: each for each in (*ours, JUDGE, RELEASE, SPLITS)}
        self.used = {name.partition(":")[0] for each in self.places for name in definitions(each)}

    def path(self, module: str) -> Path:
        return self.folder.joinpath(*module.split(".")).with_suffix(".py")

    def locate(self, name: str) -> Path | None:
        found = [self.folder.joinpath(*name.split(".")) / "__init__.py", self.path(name)]
        return next((path for path in found if path.is_file()), None)

    def modules(self) -> list[str]:
        """The files that some digest depends on, and those that came of them."""
        return sorted(name for name in self.used if self.path(name).is_file())

    def digests(self) -> dict[str, str]:
        forget()
        return {root: code_digest(place) for root, place in self.places.items()}

    def new_name(self, room: str) -> str:
        self.count += 1
        self.used.add(name := f"{room}.file_{self.count}")
        return name

    def marked(self, module: str) -> bool:
        """If figures depend on a module."""
        forget()
        return sources.module(self.path(module)).figures

    def redirect(self, old: str, new: str) -> None:
        """Write `new` for `old` in every import, dotted name and entry point."""
        (room, _, name), (to_room, _, to_name) = old.rpartition("."), new.rpartition(".")
        for path in self.folder.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not re.search(rf"\b{re.escape(old)}\b|\bfrom {re.escape(room)} import", text):
                continue
            lines = text.split("\n")
            nodes = [each for each in ast.walk(ast.parse(text)) if isinstance(each, IMPORT)]
            for node in sorted(nodes, key=lambda each: -each.lineno):
                written = list(_redirected(node, (old, room, name), (new, to_room, to_name)))
                if written:
                    indent = " " * node.col_offset
                    assert node.end_lineno is not None
                    lines[node.lineno - 1 : node.end_lineno] = [indent + each for each in written]
            changed = re.sub(rf"\b{re.escape(old)}\b(?=[:.\"'])", new, "\n".join(lines))
            if changed != text:
                path.write_text(changed, encoding="utf-8")
        self.places = {root: re.sub(rf"^{re.escape(old)}:", f"{new}:", place) for root, place in self.places.items()}


def _redirected(
    node: ast.Import | ast.ImportFrom, old: tuple[str, str, str], new: tuple[str, str, str]
) -> Iterator[str]:
    """The statements in place of one that imports a module; none if it imports others."""
    whole, room, name = old
    to, to_room, to_name = new
    if isinstance(node, ast.Import):
        if any(alias.name == whole for alias in node.names):
            for alias in node.names:
                yield f"import {ast.unparse(alias)}".replace(whole, to)
    elif node.module == whole:
        yield f"from {to} import {', '.join(map(ast.unparse, node.names))}"
    elif node.module == room and any(alias.name == name for alias in node.names):
        for alias in node.names:
            moved = f"from {to_room} import {to_name} as {alias.asname or alias.name}"
            yield moved if alias.name == name else f"from {room} import {ast.unparse(alias)}"


def rename(product: Product) -> bool:
    """Another name in the same room."""
    old = product.random.choice(product.modules())
    return _put(product, old, product.new_name(old.rpartition(".")[0]))


def move(product: Product) -> bool:
    """Another room, of those on which figures depend, or of the others."""
    old, beside = product.random.sample(product.modules(), 2)
    if product.marked(old) != sources.module(product.path(beside).parent / "__init__.py").figures:
        return False
    return _put(product, old, product.new_name(beside.rpartition(".")[0]))


def _put(product: Product, old: str, new: str) -> bool:
    if "__file__" in product.path(old).read_text(encoding="utf-8"):
        return False
    product.path(old).rename(product.path(new))
    product.redirect(old, new)
    return True


def merge(product: Product) -> bool:
    """One file's text at the end of another's, if their names differ and neither runs anything."""
    one, other = product.random.sample(product.modules(), 2)
    first, second = (product.path(each).read_text(encoding="utf-8") for each in (one, other))
    trees = [ast.parse(text) for text in (first, second)]
    if product.marked(one) != product.marked(other) or re.search(rf"\b{other.rpartition('.')[2]}\.", first + second):
        return False
    if any(_is_module_imported(product, other) for _ in [0]) or "__file__" in first + second:
        return False
    names = [_names(tree) for tree in trees]
    if any(names[0][each] != names[1][each] for each in names[0].keys() & names[1].keys()):
        return False
    markers = r"^__(figures|messages|lookups)__ = .*$\n"
    second = re.sub(markers, "", second, flags=re.MULTILINE).replace("from __future__ import annotations\n", "")
    product.path(one).write_text(f"{first}\n\n{second}", encoding="utf-8")
    product.path(other).unlink()
    product.redirect(other, one)
    text = re.sub(rf"^ *from {re.escape(one)} import .*\n", "", product.path(one).read_text(), flags=re.MULTILINE)
    product.path(one).write_text(text, encoding="utf-8")
    return True


def _is_module_imported(product: Product, module: str) -> bool:
    room, _, name = module.rpartition(".")
    pattern = re.compile(rf"from {re.escape(room)} import [^\n]*\b{name}\b|import {re.escape(module)}\b")
    return any(pattern.search(path.read_text(encoding="utf-8")) for path in product.folder.rglob("*.py"))


def _names(tree: ast.Module) -> dict[str, str]:
    """The names that a file binds, with the import of each."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, IMPORT) and node in tree.body:
            where = node.module if isinstance(node, ast.ImportFrom) else "import"
            names |= {alias.asname or alias.name: f"{where} {alias.name}" for alias in node.names}
    for statement in tree.body:
        for name in _bound(statement):
            names[name] = f"{name} of {id(tree)}"
    return names


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return {
            each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        } - {"__figures__", "__messages__", "__lookups__", "__all__"}
    return set()


def _span(node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return first, node.end_lineno or first


def split(product: Product) -> bool:
    """Some definitions in a file of their own, with all those that they need; the old file imports them."""
    module = product.random.choice(product.modules())
    text = product.path(module).read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.split("\n")
    definitions = {name: node for node in tree.body for name in _bound(node)}
    if len(definitions) < 2 or "__file__" in text or any(
        isinstance(node, ast.Expr | ast.Assign) and not _bound(node) and "__" not in ast.unparse(node)
        and not isinstance(getattr(node, "value", None), ast.Constant) for node in tree.body
    ):  # fmt: skip
        return False
    taken: set[str] = set()
    waiting = [product.random.choice(sorted(definitions))]
    while waiting:
        name = waiting.pop()
        taken.add(name)
        used = {each.id for each in ast.walk(definitions[name]) if isinstance(each, ast.Name)}
        used |= _bound(definitions[name])
        waiting += sorted(used & definitions.keys() - taken)
    if len(taken) == len(definitions):
        return False
    new = product.new_name(module.rpartition(".")[0])
    nodes = {id(definitions[name]): definitions[name] for name in taken}.values()
    heads = [node for node in tree.body if isinstance(node, IMPORT | ast.If)]
    head = [line for node in heads for line in lines[node.lineno - 1 : node.end_lineno]]
    spans = sorted(_span(node) for node in nodes)
    product.random.shuffle(spans)
    body = [line for start, end in spans for line in lines[start - 1 : end]]
    figures = f"__figures__ = {product.marked(module)}"
    markers = re.findall(r"^__(?:messages|lookups)__ = .*$", text, flags=re.MULTILINE)
    product.path(new).write_text("\n".join([*head, figures, *markers, *body, ""]), encoding="utf-8")
    for start, end in sorted(spans, reverse=True):
        lines[start - 1 : end] = []
    last = max((node.end_lineno or 0 for node in tree.body if isinstance(node, IMPORT)), default=0)
    last -= sum(end - start + 1 for start, end in spans if end <= last)  # a merged file imports further down, too
    lines.insert(last, f"from {new} import {', '.join(sorted(taken))}")
    product.path(module).write_text("\n".join(lines), encoding="utf-8")
    ast.parse("\n".join(lines))
    return True


@pytest.mark.parametrize("seed", range(2))
def test_files_can_be_renamed_moved_merged_and_split(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = Product(tmp_path, seed)
    for place in (sources, digests):
        monkeypatch.setattr(place, "locate", product.locate)
    monkeypatch.setattr(product.locate.__func__, "cache_clear", lambda: None, raising=False)
    before = product.digests()
    done: list[str] = []
    steps: list[Callable[[Product], bool]] = [rename, move, merge, split]
    while len(done) < STEPS:
        step = product.random.choice(steps)
        if step(product):
            done.append(step.__name__)
    assert {step.__name__ for step in steps} <= set(done)
    after = product.digests()
    assert {root: before[root] for root in before if after[root] != before[root]} == {}
    names = "|".join({place.partition(":")[2] for place in product.places.values()})
    for path in product.folder.rglob("*.py"):  # a split may have moved a plug-in out of the file that its root names
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(rf"^(class|def) ({names})\b", r"@changed\n\g<0>", text, flags=re.MULTILINE), encoding="utf-8"
        )
    after = product.digests()
    assert [root for root in before if after[root] == before[root]] == []
    forget()
