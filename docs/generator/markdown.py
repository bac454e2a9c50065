"""Pages, tables and links of the site as Markdown, and types in words."""

from __future__ import annotations

import dataclasses
import inspect
import posixpath
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Union, get_args, get_origin

from bench.plugins import registry
from bench.plugins.groups import GROUPS
from bench.plugins.spec import holds_plugin, text

_ENTRY = re.compile(r"    (?! )(?P<names>[\w, *]+): (?P<help>.*)")
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "none"}


@dataclass(frozen=True)
class Page:
    """A page of the site, or a file beside the pages.

    Args:
        path: Relative to the site's root, with its ending (`.md` for pages).
        title: Its name in the menu; empty keeps a file out of the menu.
        text: Its Markdown, or the content of the file.
        sections: Its menus, from the outermost; none for the top.
    """

    path: str
    title: str
    text: str
    sections: tuple[str, ...] = ()


def relative(target: str, page: str) -> str:
    """The link to `target` as written on `page`.

    >>> relative("methods/blur.md#parameters", "attacks/chance.md")
    '../methods/blur.md#parameters'
    """
    path, mark, anchor = target.partition("#")
    return posixpath.relpath(path, posixpath.dirname(page) or ".") + mark + anchor


def escape(plain: str) -> str:
    """Plain text that Markdown shows as it is, but for code in backticks.

    >>> escape("a * b_i < [0, 1], `k_1`")
    'a \\\\* b\\\\_i &lt; \\\\[0, 1\\\\], `k_1`'
    """
    parts = re.split(r"(`[^`]+`)", " ".join(plain.split()))
    marked = (re.sub(r"([\\`*_{}\[\]#|])", r"\\\1", part.replace("&", "&amp;")) for part in parts[::2])
    prose = [part.replace("<", "&lt;").replace(">", "&gt;") for part in marked]
    return "".join(part for pair in zip(prose, [*parts[1::2], ""], strict=True) for part in pair)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; none without rows."""
    if not rows:
        return ""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join("| " + " | ".join(cell.replace("\n", " ") or " " for cell in line) + " |" for line in lines)


def join(*parts: str) -> str:
    """The non-empty parts of a page with blank lines between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def arguments(cls: type) -> dict[str, str]:
    """The help of every field of a dataclass, from the docstrings of its class and parents."""
    helps: dict[str, str] = {}
    for parent in reversed(cls.__mro__):
        names: list[str] = []
        _, _, rest = inspect.cleandoc(vars(parent).get("__doc__") or "").partition("Args:\n")
        for line in re.split(r"\n(?=\S)", rest)[0].splitlines():
            if entry := _ENTRY.fullmatch(line):
                names = [name.strip(" *") for name in entry["names"].split(",")]
                helps |= dict.fromkeys(names, entry["help"])
            elif line.strip() and names:
                helps |= dict.fromkeys(names, f"{helps[names[0]]} {line.strip()}")
    return helps


def words(hint: object) -> str:
    """A type in words.

    >>> words(float | None), words(Literal["a", "b"])
    ('number or none', 'a, b')
    """
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(str(value) for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(part) for part in inner))
    if origin is typing.Annotated:
        return words(inner[0])
    if holds_plugin(hint):
        group = next((group for group in GROUPS if issubclass(hint, registry.kind(group))), None)  # type: ignore[arg-type]
        return f"another {registry.noun(group)}" if group else str(hint)
    if origin in (list, tuple, frozenset, set):
        return f"list of {' or '.join(dict.fromkeys(words(part) for part in inner if part is not Ellipsis))}"
    if origin is not None and issubclass(origin, Mapping):
        return "mapping"
    return hint.__name__ if isinstance(hint, type) else str(hint)


def default(field: dataclasses.Field[object]) -> str:
    """The default of a dataclass field in words."""
    if field.default is not dataclasses.MISSING:
        return shown(field.default)
    return "required" if field.default_factory is dataclasses.MISSING else shown(field.default_factory())


def shown(value: object) -> str:
    """A value as the command line writes it."""
    if value is None or isinstance(value, bool | int | float | str):
        return text(value) if value != "" else '""'
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Iterable):
        inner = sorted(value) if isinstance(value, frozenset | set) else value
        return ", ".join(shown(part) for part in inner) or "none"
    return str(value)
