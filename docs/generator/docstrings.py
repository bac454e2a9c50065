"""Docstrings in parts: summary, text, and help of each argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass

_ENTRY = re.compile(r"    (?! )(?P<names>[\w, *]+): (?P<help>.*)")


@dataclass(frozen=True)
class Docstring:
    """A docstring in parts.

    Args:
        summary: Its first line.
        text: What follows, without the arguments.
        arguments: The help text by argument; arguments that share one have it each.
        shared: The names that share a help text, by name.
    """

    summary: str
    text: str
    arguments: Mapping[str, str]
    shared: Mapping[str, tuple[str, ...]]


def read(text: str | None) -> Docstring:
    """The docstring in parts.

    >>> read("Blurs.\\n\\nSlowly.\\n\\nArgs:\\n    a, b: Of the\\n        kernel.").arguments
    {'a': 'Of the kernel.', 'b': 'Of the kernel.'}
    """
    summary, _, rest = inspect.cleandoc(text or "").partition("\n")
    # A first sentence may run on into a second line.
    while rest and not rest.startswith("\n"):
        line, _, rest = rest.partition("\n")
        summary += " " + line
    before, found, after = _split(rest)
    arguments: dict[str, str] = {}
    shared: dict[str, tuple[str, ...]] = {}
    names: tuple[str, ...] = ()
    for line in found.splitlines():
        if entry := _ENTRY.fullmatch(line):
            names = tuple(name.strip(" *") for name in entry["names"].split(","))
            arguments |= dict.fromkeys(names, entry["help"])
            shared |= dict.fromkeys(names, names)
        elif line.strip() and names:
            arguments |= dict.fromkeys(names, f"{arguments[names[0]]} {line.strip()}")
    return Docstring(summary, f"{before.strip()}\n\n{after.strip()}".strip(), arguments, shared)


def _split(text: str) -> tuple[str, str, str]:
    """The text before the arguments, the arguments, and the text after."""
    before, mark, rest = text.partition("Args:\n")
    if not mark:
        return text, "", ""
    lines = rest.splitlines()
    end = next((at for at, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return before, "\n".join(lines[:end]), "\n".join(lines[end:])


def arguments(cls: type) -> dict[str, str]:
    """The help of every field of a dataclass, inherited ones too."""
    found: dict[str, str] = {}
    for parent in reversed(cls.__mro__):
        if "__doc__" in vars(parent):
            found |= read(parent.__doc__).arguments
    return found
