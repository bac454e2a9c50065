"""How-tos for adding plug-ins: what CONTRIBUTING.md says of each kind, and what its base class asks for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import get_type_hints

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from docs.generator.docstrings import read
from docs.generator.markdown import Prose, join, table
from docs.generator.page import Page, relative
from docs.generator.plugin_pages import add_path, adding
from docs.generator.repository import CONTRIBUTING, link_to_site
from docs.generator.types import value, words

MENU = ("How to",)


def adding_pages(targets: Mapping[str, str]) -> list[Page]:
    """A page for each group, and for each further kind of thing that CONTRIBUTING.md says how to add."""
    written = sections()
    grouped = {add_path(group): group for group in GROUPS}
    found = []
    for group in GROUPS:
        title = adding(group)
        found.append(_page(add_path(group), title, written.get(title, ""), group, targets))
    for title, text in written.items():
        path = f"how-to/{title.lower().replace(' ', '-')}.md"
        if path not in grouped:
            found.append(_page(path, title, text, None, targets))
    return found


def sections() -> dict[str, str]:
    """The sections of CONTRIBUTING.md on one kind of plug-in, by the titles of their pages."""
    parts = re.split(r"^## (An? .*)\n", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    # What follows the last of them under a heading of its own belongs to the page on contributing.
    ends = [re.split(r"^## ", text, flags=re.MULTILINE)[0] for text in parts[2::2]]
    return {f"Add {head[0].lower()}{head[1:]}": text for head, text in zip(parts[1::2], ends, strict=True)}


def _page(path: str, title: str, text: str, group: Group | None, targets: Mapping[str, str]) -> Page:
    prose = Prose(path, targets)
    return Page(path, title, join(
        f"# {title}",
        f"How to try it, check it and ship it stands in [Contributing]({relative('contributing.md', path)}).",
        prose.linked(link_to_site(text, CONTRIBUTING, path)),
        *([] if group is None else _contract(registry.kind(group), prose)),
    ), MENU)  # fmt: skip


def _contract(kind: type, prose: Prose) -> list[str]:
    """What a base class asks for: declarations with what they mean, and methods with their signatures."""
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
