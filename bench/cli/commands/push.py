"""`bench push TARGET`: records and artefacts to a folder, S3 or SFTP, without what may not leave."""

from __future__ import annotations

import argparse
import sys

from bench.cli.options import place
from bench.cli.transfer_progress import shown, told
from bench.plugins.spec import UsageError
from bench.transfer.crew import Crew
from bench.transfer.push import push
from bench.transfer.target import Target, TransferError, named

STAYS = "the run secret, logs and plans (they hold paths and what plug-ins print), pages, and prepared data stay here"


def main(options: argparse.Namespace) -> int:
    """Send what may leave, and say what stays; 1 where anything was refused or did not arrive."""
    results = place(options).results
    if not any((results.root / name).is_dir() for name in ("cells", "artefacts")):
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    if options.restricted_to is not None and named(options.restricted_to) != named(options.target):
        raise UsageError(
            f"--restricted-to names {named(options.restricted_to)}, and the target is {named(options.target)}: data "
            "that may not be shared go where their owner says, and nowhere else"
        )
    target = Target.open(options.target)
    if target.inside(results.root):
        raise UsageError(f"{target.place} and {results.root} must be folders apart")
    crew = Crew(options.jobs, target.stop)
    try:
        with shown("push") as step:
            tally = push(results, target, crew, named=options.restricted_to is not None, check=options.check, step=step)
    except TransferError as error:
        print(f"bench: {error}; the same command goes on where this one ended", file=sys.stderr)
        return 1
    code = told(tally, f"pushed to {target.place}")
    print(STAYS)
    return code
