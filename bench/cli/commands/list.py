"""`bench list`: every registered plug-in with its state."""

from __future__ import annotations

import argparse
import inspect
from typing import cast

from rich.table import Table

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.runs.display import to_stdout


def main(options: argparse.Namespace) -> int:
    """Print one table a group; a broken plug-in is listed with the reason."""
    console = to_stdout()
    for group in (cast(Group, options.group),) if options.group else GROUPS:
        table = Table("name", "what it is", "from", "state", title=group, title_justify="left")
        for name, entry in sorted(registry.entries(group).items()):
            found = registry.inspect(entry)
            about = "" if found.error else summary(registry.load(group, name))
            table.add_row(name, about, entry.origin, found.error or "ready")
        console.print(table)
    return 0


def summary(cls: type) -> str:
    """The first line of a plug-in's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
