"""A page for each plug-in and group, read off the classes."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, cast, get_type_hints

from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.groups import Group
from bench.plugins.slug import slug
from bench.types import Evaluator, Metric, evidence_type
from docs.generator.docstrings import arguments, read
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative
from docs.generator.types import default, fields, value, words

_ELSEWHERE = ("name", "presets")  # shown as the title and as a table of their own


def title(group: Group) -> str:
    """The menu title of a group.

    >>> title("datasets")
    'Data sets'
    """
    return f"{registry.noun(group)}s".capitalize()


def folder(group: Group) -> str:
    """The folder of a group's pages."""
    return group


def path(group: Group, name: str) -> str:
    """The page of a plug-in."""
    return f"{folder(group)}/{slug(name)}.md"


def group_pages(group: Group, targets: Mapping[str, str]) -> list[Page]:
    """The page of the group and those of its plug-ins."""
    entries = {name: registry.inspect(entry) for name, entry in sorted(registry.entries(group).items())}
    return [_overview(group, entries, targets), *(_page(group, entry, targets) for entry in entries.values())]


def _overview(group: Group, entries: Mapping[str, registry.Entry], targets: Mapping[str, str]) -> Page:
    here = f"{folder(group)}/index.md"
    prose = Prose(here, targets)
    rows = []
    for name, entry in entries.items():
        link = f"[`{name}`]({relative(path(group, name), here)})"
        cls = None if entry.error else registry.load(group, name)
        said = prose.line(f"cannot be used: {entry.error}" if cls is None else about(name, cls))
        rows.append((link, said, prose.line(str(getattr(cls, "source", "")))))
    kind = registry.kind(group)
    return Page(here, title(group), join(
        f"# {title(group)}",
        prose.line(read(kind.__doc__).summary),
        table(("name", "what it is", "source"), rows),
        f"To add one: [{adding(group)}]({relative(add_path(group), here)}).",
    ), (title(group),))  # fmt: skip


def about(name: str, cls: type) -> str:
    """A plug-in in one line, from its module's or class's docstring."""
    called, mark, text = read(inspect.getdoc(inspect.getmodule(cls))).summary.partition(": ")
    if mark and re.sub(r"\W|_", "", called.lower()) == re.sub(r"\W|_", "", name):
        return text[:1].upper() + text[1:]
    return read(cls.__doc__).summary


def adding(group: Group) -> str:
    """The title of the page on adding a plug-in."""
    return f"Add {_one(group)}"


def _one(group: Group) -> str:
    """A plug-in of the group with its article."""
    noun = registry.noun(group)
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def add_path(group: Group) -> str:
    """The path of the page on adding a plug-in."""
    return f"how-to/{adding(group).lower().replace(' ', '-')}.md"


def _page(group: Group, entry: registry.Entry, targets: Mapping[str, str]) -> Page:
    here = path(group, entry.name)
    prose = Prose(here, targets)
    head = f"# {entry.name}"
    menu = (title(group),)
    if entry.error:
        return Page(here, entry.name, join(head, prose.line(f"Cannot be used here: {entry.error}")), menu)
    cls = registry.load(group, entry.name)
    doc = read(cls.__doc__)
    module = inspect.getmodule(cls)
    article, _, noun = _one(group).partition(" ")
    overview = f"{article.capitalize()} [{noun}]({relative(f'{folder(group)}/index.md', here)})"
    contract = f"[what {_one(group)} declares]({relative(add_path(group), here)}#what-to-declare)"
    return Page(here, entry.name, join(
        head,
        f"{overview} from {prose.line(entry.origin)}. **{prose.line(doc.summary)}**",
        prose.block(doc.text),
        table(("declared", "as"), [(f"**{_label(name)}**", prose.line(text)) for name, text in facts(cls).items()]),
        f"In the code: {prose.code(cls.__module__)}, class `{cls.__name__}`. What the declarations mean: {contract}.",
        "## What it does",
        prose.block(inspect.getdoc(module) or ""),
        prose.block(inspect.getdoc(vars(cls).get("__call__")) or ""),
        "## Parameters",
        _parameters(cls, prose),
        "### Sizes by preset {#sizes}" if _sizes(cls) else "",
        _sizes(cls),
        "## On the command line",
        f"```sh\nbench info {entry.name}\nbench check {entry.name}\n```",
    ), menu)  # fmt: skip


def facts(cls: type) -> dict[str, str]:
    """A class's declarations besides its parameters, in words."""
    parameters = {field.name for field in fields(cls)}
    found: dict[str, str] = {}
    for parent in cls.__mro__:
        for name in (*vars(parent).get("__annotations__", {}), *vars(parent)):
            declared = inspect.getattr_static(cls, name, None)
            if name.startswith("_") or name in (*parameters, *_ELSEWHERE) or not _plain(declared):
                continue
            found.setdefault(name, "")
            found |= _shown(name, declared) if not found[name] else {}
    if issubclass(cls, Metric):
        found["evidence"] = _text(evidence_type(cls))
    elif issubclass(cls, Evaluator):
        taking = [name for name in registry.working("metrics") if _takes(name, cls.evidence)]
        found["metrics"] = ", ".join(taking) or "none that comes with the project"
        made = cls() if cls.scores is None else cast(Any, cls)(None)
        found["keys"] = ", ".join(f"{made.keys(preset)} at {name}" for name, preset in PRESETS.items())
    return {name: text for name, text in found.items() if text}


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
    return {True: "yes", False: "no"}[declared] if isinstance(declared, bool) else value(declared)


def _label(name: str) -> str:
    return name.replace("_", " ")


def _parameters(cls: type, prose: Prose) -> str:
    given = [field for field in fields(cls) if field.init]
    if not given:
        return "None."
    hints, helps = get_type_hints(cls), arguments(cls)
    return table(("parameter", "type", "default", "what it is"), [
        (f"`{field.name}`", prose.line(words(hints[field.name])), prose.line(_default(cls, field)),
         prose.line(helps.get(field.name, "")))
        for field in given
    ])  # fmt: skip


def _default(cls: type, field: dataclasses.Field[object]) -> str:
    written = default(field)
    sized = any(field.name in sizes for sizes in getattr(cls, "presets", {}).values())
    return "by preset" if sized and written == "required" else written


def _sizes(cls: type) -> str:
    """The table of the presets' values, a column a preset."""
    presets = getattr(cls, "presets", {})
    names = list(dict.fromkeys(name for sizes in presets.values() for name in sizes))
    usual = {field.name: default(field) for field in fields(cls)}
    return table(("parameter", *PRESETS), [
        (f"`{name}`", *(value(presets.get(preset, {}).get(name, usual[name])) for preset in PRESETS)) for name in names
    ])  # fmt: skip
