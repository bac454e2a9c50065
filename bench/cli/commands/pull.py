"""`bench pull SOURCE`: what pushes brought to a folder, S3 or SFTP, checked on arrival."""

from __future__ import annotations

import argparse
import sys

from bench.cli.options import place
from bench.cli.transfer_progress import shown, told
from bench.plugins.spec import UsageError
from bench.transfer.crew import Crew
from bench.transfer.pull import pull
from bench.transfer.target import Target, TransferError


def main(options: argparse.Namespace) -> int:
    """Fetch what is missing here; 1 where anything was refused or did not arrive."""
    results = place(options).results
    source = Target.open(options.source)
    if source.inside(results.root):
        raise UsageError(f"{source.place} and {results.root} must be folders apart")
    crew = Crew(options.jobs, source.stop)
    try:
        with shown("pull") as step:
            tally = pull(results, source, crew, prefer=options.prefer, step=step)
    except TransferError as error:
        print(f"bench: {error}; the same command goes on where this one ended", file=sys.stderr)
        return 1
    return told(tally, f"pulled into {results.root}")
