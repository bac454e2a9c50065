"""Pages on adding a plug-in of each kind."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import get_type_hints

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from docs.generator.docstrings import read
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative
from docs.generator.plugin_pages import add_path, adding
from docs.generator.types import value, words

MENU = ("How to",)
WRITING = "how-to/write-a-plug-in.md"


def adding_pages(targets: Mapping[str, str]) -> list[Page]:
    """A page for each group of plug-ins."""
    return [_page(group, Prose(add_path(group), targets)) for group in GROUPS]


def _page(group: Group, prose: Prose) -> Page:
    path, title = add_path(group), adding(group)
    section = title.removeprefix("Add ").lower().replace(" ", "-")
    return Page(path, title, join(
        f"# {title}",
        f"An example, and how to check and ship it: [Write a plug-in]({relative(WRITING, path)}#{section}).",
        *_contract(registry.kind(group), prose),
    ), MENU)  # fmt: skip


def _contract(kind: type, prose: Prose) -> list[str]:
    """The declarations and methods that a base class asks for."""
    doc = read(kind.__doc__)
    hints = get_type_hints(kind)
    declared = [(f"`{name}`", prose.line(words(*_inner(hint))), _usual(kind, name)) for name, hint in hints.items()]
    methods = [
        (name, member)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") or name == "__call__"
    ]
    required: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
    return [
        "## What to declare {#what-to-declare}",
        f"The base class is `{kind.__name__}` of {prose.code(kind.__module__)}. {prose.line(doc.summary)}",
        *(prose.block(read(parent.__doc__).text) for parent in kind.__mro__ if "bench" in parent.__module__),
        table(("class variable", "type", "default"), declared),
        "## What to write {#what-to-write}",
        *(_method(name, member, name in required, prose) for name, member in methods),
    ]


def _inner(hint: object) -> tuple[object]:
    return getattr(hint, "__args__", (hint,))[:1] if "ClassVar" in str(hint) else (hint,)


def _usual(kind: type, name: str) -> str:
    return value(getattr(kind, name)) if hasattr(kind, name) else "required"


def _method(name: str, member: object, required: bool, prose: Prose) -> str:
    signature = str(inspect.signature(member)).replace("'", "")  # type: ignore[arg-type]
    doc = inspect.getdoc(member) or ""
    return join(
        f"### `{name}` {{#{name.strip('_')}}}",
        f"```python\ndef {name}{signature}\n```",
        ("Required. " if required else "Optional. ") + prose.block(doc),
    )
