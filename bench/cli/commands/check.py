"""`bench check NAME`: run the contract suite over a plug-in."""

from __future__ import annotations

import argparse

from rich.table import Table

from bench.cli.about import groups_of
from bench.cli.terminal import to_stdout
from bench.conformance import conform
from bench.plugins.spec import parse
from bench.workbench.machine import choose_device


def main(options: argparse.Namespace) -> int:
    """Print a line a check; 1 if any failed."""
    device = choose_device(options.device)
    failed = 0
    for text in options.name:
        for group in groups_of(parse(text).name):
            table = Table("check", "result", "detail", title=f"{text} ({group})", title_justify="left")
            for result in conform(group, text, device):
                failed += result.status == "failed"
                table.add_row(result.check, result.status, result.detail)
            to_stdout().print(table)
    print(f"{failed} failed" if failed else "all checks passed")
    return 1 if failed else 0
