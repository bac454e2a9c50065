"""Broken links of the site, and pages without a link to them."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Mapping, Set

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_TARGET = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)|<a href=\"(?!https?:|mailto:)([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.+?)(?: *\{ *#([^}\s]+) *\})?$", re.MULTILINE)


def anchors(text: str) -> list[str]:
    """The anchors of a page, explicit or from the words of headings.

    >>> anchors("# The key\\n\\n## Of a run {#run}")
    ['the-key', 'run']
    """
    return [given or _slug(title) for title, given in _HEADING.findall(_FENCED.sub("", text))]


def _slug(title: str) -> str:
    """The anchor that Python-Markdown derives from a heading."""
    plain = re.sub(r"\]\([^)]*\)|[`*\[\]\\]", "", title)
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def targets(text: str) -> list[str]:
    """The targets of a page's links, as written."""
    found = _TARGET.findall(_CODE.sub("`code`", _FENCED.sub("", text)))
    return [first or second for first, second in found]


def broken(pages: Mapping[str, str], files: Set[str]) -> list[str]:
    """Links that lead to no page, file or anchor, as "page: link".

    Args:
        pages: Markdown by path.
        files: What lies beside the pages (pictures, the schema).
    """
    known = {path: set(anchors(text)) for path, text in pages.items()}
    return [f"{page}: {link}" for page, text in pages.items() for link in targets(text)
            if not _leads(page, link, known, files)]  # fmt: skip


def _leads(page: str, link: str, known: Mapping[str, Set[str]], files: Set[str]) -> bool:
    target, anchor = _resolve(page, link)
    return target in files or (target in known and (not anchor or anchor in known[target]))


def _resolve(page: str, link: str) -> tuple[str, str]:
    path, _, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page, anchor


def orphans(pages: Mapping[str, str], start: str = "index.md") -> set[str]:
    """Pages that cannot be reached from the first one by links."""
    reached, todo = set[str](), [start]
    while todo:
        page = todo.pop()
        if page in pages and page not in reached:
            reached.add(page)
            todo += [_resolve(page, link)[0] for link in targets(pages[page])]
    return set(pages) - reached
