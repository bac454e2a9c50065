"""Plain text, docstrings and tables as Markdown, with markup escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docs.generator.page import relative

_CODE = re.compile(r"(?<!\[)(`[^`]+`)")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"(Raises|Returns|Differences[^:]*|Attributes):")


@dataclass(frozen=True)
class Prose:
    """The code's text on one page; known names become links.

    Args:
        page: The page that the text stands on.
        targets: Where a name leads, by what stands in backticks.
    """

    page: str
    targets: Mapping[str, str]

    def line(self, text: str) -> str:
        """Text in one line, with links, and with markup escaped."""
        parts = _CODE.split(" ".join(text.split()))
        return "".join(self.code(part[1:-1]) if _CODE.fullmatch(part) else escape(part) for part in parts)

    def code(self, text: str) -> str:
        """A name as code, linked if another page explains it."""
        target = self.targets.get(text) or _module(text, self.targets)
        shown = f"`{text}`"
        if target is None or target.partition("#")[0] == self.page:
            return shown
        return f"[{shown}]({relative(target, self.page)})"

    def linked(self, markdown: str) -> str:
        """Markdown with links for names in backticks; code blocks stay."""
        parts = _FENCED.split(markdown)
        return "".join(
            part if _FENCED.fullmatch(part) else _CODE.sub(lambda match: self.code(match[0][1:-1]), part)
            for part in parts
        )

    def block(self, text: str) -> str:
        """A docstring as Markdown: paragraphs, lists, code and doctests."""
        found = ""
        for part in map(self._paragraph, _paragraphs(text)):
            listed = part.startswith("- ") and found.rpartition("\n")[2].startswith("- ")
            found += ("\n" if listed else "\n\n") + part
        return found.strip("\n")

    def _paragraph(self, lines: Sequence[str]) -> str:
        if lines[0].startswith((">>>", "    ")):
            return "\n".join(("```python" if lines[0].startswith(">>>") else "```text", *lines, "```"))
        if lines[0].startswith("- "):
            return "- " + self.line(" ".join(lines)[2:])
        return self.line(" ".join(lines))


def _paragraphs(text: str) -> list[list[str]]:
    """The lines of each paragraph, list item and code block."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        code = line.startswith((">>>", "    ")) and not found[-1]
        if not line.strip():
            found.append([])
        elif line.startswith("- ") or code or _SECTION.match(line):
            found.append([line])
        else:
            found[-1].append(line)
    return [part for part in found if part]


def _module(name: str, targets: Mapping[str, str]) -> str | None:
    """The target of a dotted name: the longest known module."""
    while "." in name:
        name = name.rpartition(".")[0]
        if name in targets and "." in name:
            return targets[name]
    return None


def escape(text: str) -> str:
    """Plain text that Markdown shows as it is.

    >>> escape("a * b_i < [0, 1]")
    'a \\\\* b\\\\_i &lt; \\\\[0, 1\\\\]'
    """
    marked = re.sub(r"([\\`*_{}\[\]#|])", r"\\\1", text.replace("&", "&amp;"))
    return marked.replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; none without rows."""
    if not rows:
        return ""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join("| " + " | ".join(cell.replace("\n", " ") or " " for cell in line) + " |" for line in lines)


def join(*parts: str) -> str:
    """The non-empty parts of a page with blank lines between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
