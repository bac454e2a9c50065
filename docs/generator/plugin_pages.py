"""A page for each plug-in, each group of plug-ins, and for adding one to a group."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, cast, get_type_hints

from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.types import Evaluator, Metric, evidence_type
from bench.wire.text import slug
from docs.generator.markdown import Page, arguments, default, escape, join, relative, shown, table, words

WRITING = "how-to/write-a-plug-in.md"
_ELSEWHERE = ("name", "presets")  # shown as the title and as a table of their own


def plugin_pages() -> list[Page]:
    """The pages of every group: how to add a plug-in, the overview, and a page each."""
    pages = [_adding(group) for group in GROUPS]
    for group in GROUPS:
        entries = [registry.inspect(entry) for _, entry in sorted(registry.entries(group).items())]
        pages += [_overview(group, entries), *(_page(group, entry) for entry in entries)]
    return pages


def path(group: Group, name: str) -> str:
    """The page of a plug-in."""
    return f"{group}/{slug(name)}.md"


def _one(group: Group) -> str:
    """A plug-in of the group with its article."""
    noun = registry.noun(group)
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _add_path(group: Group) -> str:
    return f"how-to/add-{_one(group).replace(' ', '-')}.md"


def _adding(group: Group) -> Page:
    here, title, kind = _add_path(group), f"Add {_one(group)}", registry.kind(group)
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
        cls = None if entry.error else registry.load(group, entry.name)
        about = f"cannot be used: {entry.error}" if cls is None else _summary(cls)
        link = f"[`{entry.name}`]({relative(path(group, entry.name), here)})"
        rows.append((link, escape(about), escape(str(getattr(cls, "source", "")))))
    return Page(here, title, join(
        f"# {title}",
        escape(_summary(registry.kind(group))),
        table(("name", "what it is", "source"), rows),
        f"To add one: [Add {_one(group)}]({relative(_add_path(group), here)}).",
    ), (title,))  # fmt: skip


def _summary(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n\n")[0]


def _page(group: Group, entry: registry.Entry) -> Page:
    here, menu = path(group, entry.name), (f"{registry.noun(group)}s".capitalize(),)
    if entry.error:
        return Page(here, entry.name, f"# {entry.name}\n\nCannot be used here: {escape(entry.error)}\n", menu)
    cls = registry.load(group, entry.name)
    sizes = _sizes(cls)
    article, _, noun = _one(group).partition(" ")
    link = f"{article.capitalize()} [{noun}]({relative(f'{group}/index.md', here)})"
    declared = [(f"**{name.replace('_', ' ')}**", escape(text)) for name, text in facts(cls).items()]
    return Page(here, entry.name, join(
        f"# {entry.name}",
        f"{link} from {escape(entry.origin)}. **{escape(_summary(cls))}**",
        table(("declared", "as"), declared),
        f"What the declarations mean: [Add {_one(group)}]({relative(_add_path(group), here)}).",
        "## Parameters",
        _parameters(cls),
        "### Sizes by preset {#sizes}" if sizes else "",
        sizes,
        "## On the command line",
        f"```sh\nbench info {entry.name}\nbench check {entry.name}\n```",
        "## In the code {#code}",
        f"::: {cls.__module__}\n    options:\n      members: [{cls.__name__}]\n      show_root_toc_entry: false",
    ), menu)  # fmt: skip


def facts(cls: type) -> dict[str, str]:
    """A class's declarations besides its parameters, in words."""
    parameters = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    texts: dict[str, str] = {}
    for parent in cls.__mro__:
        for name in (*vars(parent).get("__annotations__", {}), *vars(parent)):
            declared = inspect.getattr_static(cls, name, None)
            if name.startswith("_") or name in (*parameters, *_ELSEWHERE) or name in texts or not _plain(declared):
                continue
            texts |= {} if any(known.startswith(f"{name}: ") for known in texts) else _shown(name, declared)
    if issubclass(cls, Metric):
        texts["evidence"] = _text(evidence_type(cls))
    elif issubclass(cls, Evaluator):
        taking = [name for name in registry.working("metrics") if _takes(name, cls.evidence)]
        texts["metrics"] = ", ".join(taking) or "none that comes with the project"
        evaluator = cls() if cls.scores is None else cast(Any, cls)(None)
        texts["keys"] = ", ".join(f"{evaluator.keys(preset)} at {name}" for name, preset in PRESETS.items())
    return {name: text for name, text in texts.items() if text}


def _takes(metric: str, evidence: type) -> bool:
    return evidence_type(registry.load("metrics", metric)) is evidence


def _plain(declared: object) -> bool:
    machinery = isinstance(declared, staticmethod | classmethod | property) or inspect.isroutine(declared)
    return declared is not None and not machinery and not inspect.ismemberdescriptor(declared)


def _shown(name: str, declared: object) -> dict[str, str]:
    """A declaration in words; a dataclass gives a line a field."""
    if dataclasses.is_dataclass(declared) and not isinstance(declared, type):
        return {f"{name}: {field.name}": _text(getattr(declared, field.name)) for field in dataclasses.fields(declared)}
    return {name: _text(declared)}


def _text(declared: object) -> str:
    if isinstance(declared, type):
        return f"`{declared.__module__}.{declared.__qualname__}`"
    return {True: "yes", False: "no"}[declared] if isinstance(declared, bool) else shown(declared)


def _parameters(cls: type) -> str:
    given = [field for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else []
    hints, helps = get_type_hints(cls), arguments(cls)
    rows = [
        (f"`{field.name}`", escape(words(hints[field.name])), escape(_default(cls, field)),
         escape(helps.get(field.name, "")))
        for field in given
    ]  # fmt: skip
    return table(("parameter", "type", "default", "what it is"), rows) or "None."


def _default(cls: type, field: dataclasses.Field[object]) -> str:
    written = default(field)
    sized = any(field.name in sizes for sizes in getattr(cls, "presets", {}).values())
    return "by preset" if sized and written == "required" else written


def _sizes(cls: type) -> str:
    """The table of the presets' values, a column a preset."""
    presets = getattr(cls, "presets", {})
    names = list(dict.fromkeys(name for sizes in presets.values() for name in sizes))
    usual = {field.name: default(field) for field in dataclasses.fields(cls)} if names else {}
    return table(("parameter", *PRESETS), [
        (f"`{name}`", *(shown(presets.get(preset, {}).get(name, usual[name])) for preset in PRESETS)) for name in names
    ])  # fmt: skip
