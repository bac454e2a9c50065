"""Pages of plug-ins, of their groups, and of adding one."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, cast

from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.types import Evaluator, Metric, evidence_type
from bench.wire.text import slug
from docs.generator.markdown import Page, escape, join, relative, shown, table

WRITING = "how-to/write-a-plug-in.md"
DECLARED = ("source", "title", "meaning", "chance", "unit", "better", "claims", "knowledge", "requires", "public",
            "licence", "obtain", "role", "shareable")  # fmt: skip


def plugin_pages() -> list[Page]:
    """The pages of every group: a how-to, an overview, a page each."""
    pages = [_adding(group) for group in GROUPS]
    for group in GROUPS:
        entries = [registry.inspect(entry) for _, entry in sorted(registry.entries(group).items())
                   if entry.environment is None]  # fmt: skip
        pages += [_overview(group, entries), *(_page(group, entry) for entry in entries)]
    return pages


def path(group: Group, name: str) -> str:
    """The page of a plug-in."""
    return f"{group}/{slug(name)}.md"


def _one(group: Group) -> str:
    """A plug-in of the group with its article."""
    noun = registry.noun(group)
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def add_path(group: Group) -> str:
    """The page on adding a plug-in to a group."""
    return f"how-to/add-{_one(group).replace(' ', '-')}.md"


def _adding(group: Group) -> Page:
    here, title, kind = add_path(group), f"Add {_one(group)}", registry.kind(group)
    section = _one(group).replace(" ", "-")
    return Page(here, title, join(
        f"# {title}",
        f"An example, and how to check and ship it: [Write a plug-in]({relative(WRITING, here)}#{section}).",
        f"::: {kind.__module__}.{kind.__qualname__}\n    options:\n      show_root_heading: true\n"
        "      inherited_members: true\n      heading_level: 2\n      filters: ['!^_(?!_call__)']",
    ), ("How to",))  # fmt: skip


def _overview(group: Group, entries: list[registry.Entry]) -> Page:
    here, title = f"{group}/index.md", f"{registry.noun(group)}s".capitalize()
    rows = []
    for entry in entries:
        cls = registry.load(group, entry.name)
        link = f"[`{entry.name}`]({relative(path(group, entry.name), here)})"
        rows.append((link, escape(_summary(cls)), escape(str(getattr(cls, "source", "")))))
    return Page(here, title, join(
        f"# {title}",
        escape(_summary(registry.kind(group))),
        table(("name", "what it is", "source"), rows),
        f"To add one: [Add {_one(group)}]({relative(add_path(group), here)}).",
    ), (title,))  # fmt: skip


def _summary(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n\n")[0]


def _page(group: Group, entry: registry.Entry) -> Page:
    here, menu = path(group, entry.name), (f"{registry.noun(group)}s".capitalize(),)
    if entry.error:
        raise ValueError(f"the {registry.noun(group)} {entry.name!r} cannot be imported: {entry.error}")
    cls = registry.load(group, entry.name)
    sizes = _sizes(cls)
    article, _, noun = _one(group).partition(" ")
    link = f"{article.capitalize()} [{noun}]({relative(f'{group}/index.md', here)})"
    declared = [(f"**{name.replace('_', ' ')}**", escape(text)) for name, text in facts(cls).items()]
    return Page(here, entry.name, join(
        f"# {entry.name}",
        f"{link} from {escape(entry.origin)}. **{escape(_summary(cls))}**",
        table(("declared", "as"), declared),
        f"What the declarations mean: [Add {_one(group)}]({relative(add_path(group), here)}).",
        "## Sizes by preset {#sizes}" if sizes else "",
        sizes,
        "## On the command line",
        f"```sh\nbench info {entry.name}\nbench check {entry.name}\n```",
        "## Parameters {#parameters}",
        f"::: {cls.__module__}.{cls.__qualname__}\n    options:\n      members: false\n      heading_level: 3\n"
        "      show_root_heading: true",
        "## How it works {#how}",
        f"::: {cls.__module__}\n    options:\n      members: false\n      heading_level: 3",
    ), menu)  # fmt: skip


def facts(cls: type) -> dict[str, str]:
    """The declarations of a class that a user asks for, in words."""
    column = getattr(cls, "column", None)  # metrics have one
    texts = {name: shown(getattr(cls, name, None) or getattr(column, name, None) or "") for name in DECLARED}
    if issubclass(cls, Metric):
        texts["evidence"] = f"`{evidence_type(cls).__qualname__}`"
    elif issubclass(cls, Evaluator):
        takes = [name for name in registry.working("metrics")
                 if evidence_type(registry.load("metrics", name)) is cls.evidence]  # fmt: skip
        texts["metrics"] = ", ".join(takes) or "none that comes with the project"
        evaluator = cls() if cls.scores is None else cast(Any, cls)(None)
        texts["keys"] = ", ".join(f"{evaluator.keys(preset)} at {name}" for name, preset in PRESETS.items())
    return {name: text for name, text in texts.items() if text not in ("", '""', "none")}


def _sizes(cls: type) -> str:
    """The table of the presets' values, a column a preset."""
    presets = getattr(cls, "presets", {})
    names = list(dict.fromkeys(name for sizes in presets.values() for name in sizes))
    usual = {field.name: field.default for field in dataclasses.fields(cls)} if names else {}
    return table(("parameter", *PRESETS), [
        (f"`{name}`", *(shown(presets.get(preset, {}).get(name, usual[name])) for preset in PRESETS)) for name in names
    ])  # fmt: skip
