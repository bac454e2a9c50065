"""`bench merge DIR... --into DIR`: results folders joined into one."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.cli.transfer_progress import shown, told
from bench.results.results import Results
from bench.results.signing_key import read_public
from bench.transfer.merge import merge


def main(options: argparse.Namespace) -> int:
    """Join the folders; 1 where anything was refused."""
    trusted = frozenset(read_public(path) for path in options.trusted) if options.trusted else None

    def results(path: Path) -> Results:
        return Results(path.resolve(), trusted=trusted)

    into, secret_of = results(options.into), None if options.secret_of is None else results(options.secret_of)
    with shown("merge") as step:
        sources = [results(path) for path in dict.fromkeys(options.source)]
        tally = merge(sources, into, prefer=options.prefer, secret_of=secret_of, step=step)
    return told(tally, f"joined in {into.root}")
