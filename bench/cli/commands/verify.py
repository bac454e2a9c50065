"""`bench verify`: every file of a results folder that is not what was written, by name."""

from __future__ import annotations

import argparse
import sys

from bench.cli.options import place
from bench.plugins.spec import UsageError
from leaderboard.site import altered


def main(options: argparse.Namespace) -> int:
    """Read everything; 1 if anything is refused."""
    results = place(options).results
    if not results.root.is_dir():
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    problems = [*results.problems(), *((f"site/{name}", reason) for name, reason in altered(results.root / "site"))]
    for name, reason in problems:
        print(f"{name}: {reason.removeprefix(f'{results.root / name}: ')}", file=sys.stderr)
    known = "" if results.trusted is not None else "; who wrote them is not asked: name public keys with --trusted"
    print(f"{len(problems)} files are not what was written" if problems else f"all files are what was written{known}")
    return 1 if problems else 0
