"""The whole site: every page, written or generated, and the menu."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from docs.generator.command_line import command_line_pages
from docs.generator.markdown import Page, escape, join, relative, table
from docs.generator.notebook import notebook_page
from docs.generator.plugin_pages import plugin_pages
from docs.generator.reference import reference_pages
from docs.generator.settings import settings_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = (DOCS / "first_method.py",)


def notebook_path(path: Path) -> str:
    """The page of a notebook."""
    return f"{path.stem.replace('_', '-')}.md"


TOP = {
    ROOT / "README.md": "index.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    **{path: notebook_path(path) for path in NOTEBOOKS},
}
TOPS = ("methods", "attacks", "metrics", "leaderboard")
ARCHITECTURE = "architecture/index.md"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)#]+)(#[^)]*)?\)")
Menu = list[dict[str, "str | list[object]"]]


def pages() -> list[Page]:
    """Every page of the site in menu order, and further files."""
    written = {page.path: page for page in map(_written, sorted(DOCS.rglob("*.md")))}
    architecture = written.pop(ARCHITECTURE)
    how_tos = sorted(
        (path for path in written if path.startswith("how-to/")), key=lambda path: ("score" not in path, path)
    )
    body = [
        *(written[path] for path in how_tos),
        *plugin_pages(),
        *command_line_pages(),
        *settings_pages(),
        *(notebook_page(path, notebook_path(path)) for path in NOTEBOOKS),
        *reference_pages(),
        *(written[path] for path in sorted(written) if "/" not in path),
        *room_pages(architecture.text),
        Page("contributing.md", "Contributing", link_to_site(ROOT / "CONTRIBUTING.md", "contributing.md")),
        Page("changelog.md", "Changelog", link_to_site(ROOT / "CHANGELOG.md", "changelog.md")),
    ]
    return [_home(body), *body]


def navigation(some: Sequence[Page]) -> Menu:
    """The menu for MkDocs: pages under their sections, in order."""
    menu: Menu = []
    sections: dict[tuple[str, ...], Menu] = {(): menu}
    for page in some:
        if page.title:
            if page.sections not in sections:
                sections[page.sections] = []
                menu.append({page.sections[0]: sections[page.sections]})  # type: ignore[dict-item]
            sections[page.sections].append({page.title: page.path})
    return menu


def link_to_site(source: Path, page: str) -> str:
    """A file's text with links for `page`, or as plain text."""

    def rewritten(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups(default="")
        file = (source.parent / target).resolve()
        path = TOP.get(file) or (file.relative_to(DOCS).as_posix() if file.is_relative_to(DOCS) else "")
        return f"{mark}[{text}]({relative(path + anchor, page)})" if path else text

    return _LINK.sub(rewritten, source.read_text(encoding="utf-8"))


def _written(path: Path) -> Page:
    """A hand-written page, titled by its first heading."""
    name = path.relative_to(DOCS).as_posix()
    text = link_to_site(path, name)
    heading = re.match(r"# (.+)", text)
    if heading is None:
        raise ValueError(f"{path} must start with its title, a line that starts with '# '")
    return Page(name, heading[1], text, ("How to",) if name.startswith("how-to/") else ())


def _home(body: Sequence[Page]) -> Page:
    """README.md, and the contents of the site."""
    lines = []
    for section in dict.fromkeys(page.sections[0] if page.sections else page.title for page in body if page.title):
        inside = [page for page in body if section in (page.sections[:1] or (page.title,))]
        inside = inside[:1] if inside[0].path.endswith("/index.md") else inside  # which leads on to the others
        lines.append(f"- {section}: " + ", ".join(f"[{page.title}]({page.path})" for page in inside))
    readme = link_to_site(ROOT / "README.md", "index.md")
    return Page("index.md", "Overview", join(readme, "## On this site {#contents}", "\n".join(lines)))


def room_pages(introduction: str) -> list[Page]:
    """The rooms on their floors, and each one's modules."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "floors")
    floors = [[f"bench.{room.strip()}" for room in layer.split("|")] for layer in layers]
    rows, some = [], []
    for number, rooms in zip(range(len(floors), -1, -1), [[*TOPS], *floors], strict=True):
        for room in rooms:
            page = f"architecture/{room}.md"
            rows.append((str(number), f"[`{room}`]({relative(page, ARCHITECTURE)})", escape(_summary(room))))
            some.append(Page(page, room, join(f"# {room}", *map(_directive, _modules(room))), ("Architecture",)))
    index = Page(ARCHITECTURE, "Architecture", join(
        introduction,
        "## Rooms and floors {#rooms}",
        "A room is a folder of the code, or a file beside the folders. It imports only from rooms on lower floors; the "
        "checks read the same list.",
        table(("floor", "room", "what is in it"), rows),
    ), ("Architecture",))  # fmt: skip
    return [index, *some]


def _modules(room: str) -> list[str]:
    """The modules of a room, by dotted name."""
    folder = ROOT / room.replace(".", "/")
    files = sorted(folder.rglob("*.py")) if (folder / "__init__.py").is_file() else [folder.with_suffix(".py")]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]


def _directive(module: str) -> str:
    options = "heading_level: 2\n      show_root_heading: true\n      members: false\n      summary: true"
    return f"::: {module}\n    options:\n      {options}"


def _summary(room: str) -> str:
    """The first paragraph of a room's docstring."""
    path = ROOT / room.replace(".", "/")
    package = path / "__init__.py"
    source = package if package.is_file() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
