"""`bench info NAME`: a plug-in's parameters, paper, claim and requirements."""

from __future__ import annotations

import argparse

from bench.cli.remembered import remembered


def main(options: argparse.Namespace) -> int:
    """Print what is known about every plug-in of that name."""

    def found() -> str:
        from bench.cli.about import described
        from bench.plugins.spec import parse

        return described(parse(options.name), options.preset)

    if ".py:" in options.name:  # a file that may say anything the next time
        print(found())
    else:
        print(remembered(f"info {options.name} {options.preset}", found))
    return 0
