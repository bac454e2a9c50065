"""`bench push TARGET`: records and artefacts to a folder, S3 or SFTP, without what may not leave."""

from __future__ import annotations

import argparse

from bench.cli.options import place
from bench.cli.transfer_progress import carried, told
from bench.plugins.spec import UsageError
from bench.transfer.push import push
from bench.transfer.target import Target, named

STAYS = "the run secret, logs and plans (they hold paths and what plug-ins print), pages, and prepared data stay here"


def main(options: argparse.Namespace) -> int:
    """Send what may leave, and say what stays; 1 where anything was refused or did not arrive."""
    results = place(options).results
    if not results.begun:
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    if options.restricted_to is not None and named(options.restricted_to) != named(options.target):
        raise UsageError(
            f"--restricted-to names {named(options.restricted_to)}, and the target is {named(options.target)}: data "
            "that may not be shared go where their owner says, and nowhere else"
        )
    target, named_so = Target.open(options.target), options.restricted_to is not None
    tally = carried(
        "push", results, target, options.jobs,
        lambda crew, step: push(results, target, crew, named=named_so, check=options.check, step=step),
    )  # fmt: skip
    if tally is None:
        return 1
    code = told(tally, f"pushed to {target.place}")
    print(STAYS)
    return code
