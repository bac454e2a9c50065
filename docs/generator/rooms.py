"""The architecture as pages: rooms, their floors, and their modules.

Nothing is imported: docstrings and imports are read from the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from docs.generator.docstrings import read
from docs.generator.markdown import Prose, escape, join, table
from docs.generator.page import Page, relative
from docs.generator.repository import ROOT

MENU = ("Architecture",)
INDEX = "architecture/index.md"
TOPS = ("bench", "methods", "attacks", "metrics", "leaderboard")


@dataclass(frozen=True)
class Module:
    """A module as its source shows it.

    Args:
        name: Dotted.
        doc: Its docstring.
        members: Docstrings of its public classes and functions, by name.
        imports: Modules of this project that it imports.
    """

    name: str
    doc: str
    members: Mapping[str, str]
    imports: frozenset[str]

    @property
    def room(self) -> str:
        """The room of the module: a package or module below `bench`."""
        parts = self.name.replace("__main__", "cli").split(".")  # the same command by another name
        return ".".join(parts[:2]) if parts[0] == "bench" and len(parts) > 1 else parts[0]


def modules() -> dict[str, Module]:
    """Every module of the project by name."""
    files = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
    return {name: _module(name, path) for path in files if (name := _name(path))}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _module(name: str, path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    members = {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    }
    return Module(name, ast.get_docstring(tree) or "", members, frozenset(_imports(tree)))


def _imports(tree: ast.Module) -> Iterable[str]:
    """The imports at run time, without those for type checkers."""
    for node in _running(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in TOPS:
            yield node.module
            yield from (f"{node.module}.{part.name}" for part in node.names)
        elif isinstance(node, ast.Import):
            yield from (part.name for part in node.names if part.name.split(".")[0] in TOPS)


def _running(node: ast.AST) -> Iterable[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)):
            yield from _running(child)


def doors(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    found: dict[str, set[str]] = {module.room: set() for module in known.values()}
    for module in known.values():
        found[module.room] |= {known[name].room for name in module.imports if name in known} - {module.room}
    return found


def floors(open_to: Mapping[str, set[str]]) -> list[list[str]]:
    """The rooms floor by floor, each above all that it imports from.

    Rooms that import from each other, directly or through others, lie on one floor.

    >>> floors({"ground": set(), "roof": {"first"}, "first": {"ground"}})
    [['ground'], ['first'], ['roof']]
    """
    below = {room: _reached(room, open_to) for room in open_to}
    level: dict[str, int] = {}
    while len(level) < len(open_to):
        for room in sorted(open_to, key=lambda each: (len(below[each]), each)):
            under = {each for each in below[room] if room not in below[each]}
            if room not in level and all(each in level for each in under):
                level[room] = 1 + max((level[each] for each in under), default=-1)
    circles = {room: max(level[each] for each in {room, *_together(room, below)}) for room in level}
    return [sorted(room for room in circles if circles[room] == at) for at in sorted(set(circles.values()))]


def _reached(room: str, open_to: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(open_to[room])
    while todo:
        if (each := todo.pop()) not in found:
            found.add(each)
            todo += open_to[each]
    return found


def _together(room: str, below: Mapping[str, set[str]]) -> set[str]:
    return {each for each in below[room] if room in below[each]}


def room_path(room: str) -> str:
    """The page of a room."""
    return f"architecture/{room}.md"


def room_pages(known: Mapping[str, Module], targets: Mapping[str, str], introduction: str) -> list[Page]:
    """The page on rooms and floors, and a page for each room."""
    open_to = doors(known)
    prose = Prose(INDEX, targets)
    levels = floors(open_to)
    rows = []
    for level in reversed(range(len(levels))):
        for room in levels[level]:
            rows.append((
                str(level), f"[`{room}`]({relative(room_path(room), INDEX)})", prose.line(_summary(known, room)),
                ", ".join(f"`{each.removeprefix('bench.')}`" for each in sorted(open_to[room])),
            ))  # fmt: skip
    index = Page(INDEX, MENU[0], join(
        introduction,
        "## Rooms and floors {#rooms}",
        "A room is a folder of the code, or a file beside the folders. It imports from rooms on floors below it; rooms "
        "on one floor that import from each other are named in each other's last column. This table is read off the "
        "imports.",
        table(("floor", "room", "what is in it", "imports from"), rows),
    ), MENU)  # fmt: skip
    return [index, *(_room_page(room, known, open_to, targets) for room in sorted(open_to))]


def _summary(known: Mapping[str, Module], room: str) -> str:
    return read(known[room].doc).summary if room in known else ""


def _room_page(
    room: str, known: Mapping[str, Module], open_to: Mapping[str, set[str]], targets: Mapping[str, str]
) -> Page:
    here = room_path(room)
    prose = Prose(here, targets)
    inside = [module for module in known.values() if module.room == room and module.name != room]
    own = [known[room]] if room in known else []
    above = sorted(each for each, below in open_to.items() if room in below)
    return Page(here, room, join(
        f"# {room}",
        *(prose.block(module.doc) for module in own),
        _members(own[0], prose) if own else "",
        f"Imports from: {_rooms(open_to[room], here)}. Imported by: {_rooms(above, here)}.",
        *(join(f"## {escape(module.name)} {{#{module.name}}}", prose.block(module.doc), _members(module, prose))
          for module in inside),
    ), MENU)  # fmt: skip


def _rooms(names: Iterable[str], here: str) -> str:
    return ", ".join(f"[`{name}`]({relative(room_path(name), here)})" for name in sorted(names)) or "none"


def _members(module: Module, prose: Prose) -> str:
    rows = [(f"`{name}`", prose.line(read(doc).summary)) for name, doc in module.members.items()]
    return table(("name", "what it is or gives"), rows)


def module_targets(known: Mapping[str, Module]) -> dict[str, str]:
    """Links to modules, by name."""
    return {
        name: room_path(module.room) + ("" if name == module.room else f"#{name}") for name, module in known.items()
    }
