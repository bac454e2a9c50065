"""Pages, tables and links of the site as Markdown."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.plugins.spec import text


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
    """Text that Markdown shows as it is, code in backticks aside.

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
