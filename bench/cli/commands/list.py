"""`bench list`: every registered plug-in with its state."""

from __future__ import annotations

import argparse
from typing import cast

from rich.table import Table

from bench.cli.about import rows
from bench.cli.terminal import to_stdout
from bench.plugins.groups import GROUPS, Group


def main(options: argparse.Namespace) -> int:
    """Print one table a group; a broken plug-in is listed with the reason."""
    console = to_stdout()
    for group in (cast(Group, options.group),) if options.group else GROUPS:
        table = Table("name", "what it is", "from", "state", title=group, title_justify="left")
        for row in rows(group):
            table.add_row(*row)
        console.print(table)
    return 0
