"""The root's Markdown files as pages of the site."""

from __future__ import annotations

import re
from pathlib import Path

from docs.generator.page import Page, relative

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CHANGELOG = ROOT / "CHANGELOG.md"
_PAGES = {README: "index.md", CONTRIBUTING: "contributing.md", CHANGELOG: "changelog.md"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


def link_to_site(text: str, source: Path, page: str) -> str:
    """A file's text with links rewritten for `page`; others become plain text.

    >>> link_to_site("[all](docs/glossary.md#key), [a](LICENSE)", README, "how-to/x.md")
    '[all](../glossary.md#key), a'
    """

    def rewritten(match: re.Match[str]) -> str:
        mark, shown, target, anchor = match.groups(default="")
        found = _page((source.parent / target).resolve(), anchor)
        return f"{mark}[{shown}]({relative(found, page)})" if found else shown

    return _LINK.sub(rewritten, text)


def _page(file: Path, anchor: str) -> str:
    """The page of a file, with the anchor; empty if none."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix() + anchor
    return _PAGES[file] + anchor if file in _PAGES else ""


def contributing() -> Page:
    """CONTRIBUTING.md."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    return Page("contributing.md", "Contributing", link_to_site(text, CONTRIBUTING, "contributing.md"))


def changelog() -> Page:
    """CHANGELOG.md."""
    text = CHANGELOG.read_text(encoding="utf-8")
    return Page("changelog.md", "Changelog", link_to_site(text, CHANGELOG, "changelog.md"))


def readme() -> str:
    """README.md, for the first page."""
    return link_to_site(README.read_text(encoding="utf-8"), README, "index.md")
