"""A page of the site."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of the site, or a file beside the pages.

    Args:
        path: Where it lies, relative to the site's root, with its ending (`.md` for pages).
        title: What the menu calls it; empty keeps a file out of the menu.
        text: Its Markdown, or the content of the file.
        sections: The menus it lies in, from the outermost; none for the top.
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
