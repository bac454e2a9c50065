"""`bench run`: score methods on data sets, write records, print a table, build the pages."""

from __future__ import annotations

import argparse

from bench.cli.run_table import print_table
from bench.cli.scored_run import perform


def main(options: argparse.Namespace) -> int:
    """Run what is missing; 1 if anything failed."""
    return perform(options, lambda spec, summary, where: print_table(summary, where))
