"""The whole site: every page, written or generated, and the menu."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from bench.plugins import registry
from bench.plugins.groups import GROUPS
from docs.generator import adding, command_line, configuration, cost, plugin_pages, records, repository, rooms, sizes
from docs.generator.markdown import Prose, join
from docs.generator.page import Page

Menu = list[dict[str, "str | list[object]"]]


def pages() -> list[Page]:
    """Every page of the site in menu order, and further files."""
    known = rooms.modules()
    targets = {**rooms.module_targets(known), **command_line.command_targets(), **_plugin_targets()}
    written = {page.path: page for page in _written(targets)}
    architecture = written.pop(rooms.INDEX)
    body = [
        *(written[path] for path in sorted(written, key=_first_steps_first) if path.startswith("how-to/")),
        *adding.adding_pages(targets),
        *(page for group in GROUPS for page in plugin_pages.group_pages(group, targets)),
        *command_line.command_line_pages(targets),
        configuration.configuration_page(targets),
        sizes.presets_page(targets),
        sizes.suites_page(targets),
        cost.cost_page(targets),
        *records.record_pages(targets),
        *(written[path] for path in sorted(written) if "/" not in path),
        *rooms.room_pages(known, targets, architecture.text),
        repository.contributing(),
        repository.changelog(),
    ]
    return [_home(body), *body]


def _first_steps_first(path: str) -> tuple[bool, str]:
    return "score" not in path, path


def navigation(found: Sequence[Page]) -> Menu:
    """The menu for MkDocs: pages under their sections, in order."""
    menu: Menu = []
    for page in found:
        if not page.title:
            continue
        level = menu
        for section in page.sections:
            level = _below(level, section)
        level.append({page.title: page.path})
    return menu


def _below(level: Menu, section: str) -> Menu:
    for item in level:
        if isinstance(inner := item.get(section), list):
            return inner  # type: ignore[return-value]
    inner = []
    level.append({section: inner})
    return inner  # type: ignore[return-value]


def _home(body: Sequence[Page]) -> Page:
    """README.md, and what is on the site."""
    lines = []
    for section in dict.fromkeys(page.sections[0] if page.sections else page.title for page in body):
        inside = [page for page in body if section in (page.sections[:1] or (page.title,)) and page.title]
        if not inside:
            continue
        rest = inside if inside[0].sections else []
        # The page of a group leads on to those of its plug-ins.
        if rest and rest[0].path.endswith("/index.md"):
            inside, rest = inside[:1], []
        lines.append(f"- {section}: " + ", ".join(f"[{page.title}]({page.path})" for page in rest or inside))
    return Page("index.md", "Overview", join(repository.readme(), "## On this site {#contents}", "\n".join(lines)))


def _written(targets: Mapping[str, str]) -> list[Page]:
    """The hand-written pages, titled by their first heading."""
    found = []
    for path in sorted(repository.DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        heading = re.match(r"# (.+)", text)
        if heading is None:
            raise ValueError(f"{path} must start with its title, a line that starts with '# '")
        name = path.relative_to(repository.DOCS).as_posix()
        shown = Prose(name, targets).linked(repository.link_to_site(text, path, name))
        sections = adding.MENU if name.startswith("how-to/") else ()
        found.append(Page(name, heading[1], shown, sections))
    return found


def _plugin_targets() -> dict[str, str]:
    """Links to plug-ins by name; ambiguous names have none."""
    named = [(name, plugin_pages.path(group, name)) for group in GROUPS for name in registry.entries(group)]
    times = Counter(name for name, _ in named)
    return {name: path for name, path in named if times[name] == 1}
