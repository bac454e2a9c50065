"""`bench info NAME`: a plug-in's parameters, paper, claim and requirements."""

from __future__ import annotations

import argparse

from bench.cli.about import described
from bench.plugins.spec import parse


def main(options: argparse.Namespace) -> int:
    """Print what is known about every plug-in of that name."""
    print(described(parse(options.name), options.preset))
    return 0
