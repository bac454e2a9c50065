"""`bench pull SOURCE`: what pushes brought to a folder, S3 or SFTP, checked on arrival."""

from __future__ import annotations

import argparse

from bench.cli.options import place
from bench.cli.transfer_progress import carried, told
from bench.transfer.pull import pull
from bench.transfer.target import Target


def main(options: argparse.Namespace) -> int:
    """Fetch what is missing here; 1 where anything was refused or did not arrive."""
    results = place(options).results
    source = Target.open(options.source)
    tally = carried(
        "pull", results, source, options.jobs,
        lambda crew, step: pull(results, source, crew, prefer=options.prefer, step=step),
    )  # fmt: skip
    return 1 if tally is None else told(tally, f"pulled into {results.root}")
