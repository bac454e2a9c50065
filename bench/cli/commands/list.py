"""`bench list`: every registered plug-in with its state."""

from __future__ import annotations

import argparse
import inspect
from typing import cast

from rich.table import Table

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.runs.display import to_stdout
from bench.types import Metric


def main(options: argparse.Namespace) -> int:
    """Print one table a group; a broken plug-in is listed with the reason."""
    console = to_stdout()
    for group in (cast(Group, options.group),) if options.group else GROUPS:
        table = Table("name", "what it is", "from", "state", title=group, title_justify="left")
        for name, entry in sorted(registry.entries(group).items()):
            found = registry.inspect(entry)
            about = "" if found.error else _about(registry.load(group, name))
            table.add_row(name, about, entry.origin, found.error or "ready")
        console.print(table)
    return 0


def _about(cls: type) -> str:
    """What a table says of a plug-in: the first line of its docstring; of a metric, what pages say of it."""
    if not issubclass(cls, Metric):
        return summary(cls)
    chance = f" Chance gives {cls.column.chance}." if cls.column.chance else ""
    unit = f" ({cls.unit})" if cls.unit else ""
    return f"{cls.column.title}{unit}, {cls.better} is better; {cls.column.group}\n{cls.column.meaning}{chance}"


def summary(cls: type) -> str:
    """The first line of a plug-in's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
