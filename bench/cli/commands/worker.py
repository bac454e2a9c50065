"""`bench worker`: do jobs of planned runs in a results folder that others share, until none is left."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.api import open_place
from bench.cli.stop import code
from bench.plugins.spec import UsageError
from bench.results.signing_key import SigningKey
from bench.runs.display import Display
from bench.runs.serve import Served, serve
from bench.runs.terms import Terms
from bench.workbench.machine import choose_device


def main(options: argparse.Namespace) -> int:
    """Do jobs; 0 where the worker came to its end, whatever they came to: records say that."""
    devices = {choose_device(options.device).type} | ({"cpu"} if options.device == "auto" else set())
    terms = Terms(
        devices=frozenset(devices), alone=options.alone, minutes=options.limit_minutes,
        idle_minutes=options.idle_minutes, seconds=options.lost_after, cores=options.cores,
        memory=None if options.memory is None else int(options.memory * 2**30), only=options.only,
        prepares=options.prepare,
    )  # fmt: skip
    where = open_place(
        options.results or Path("results"), getattr(options, "data_root", ()), getattr(options, "trusted", ())
    )
    if not where.results.root.is_dir():
        raise UsageError(
            f"expected a results folder, and there is no {where.results.root}: `bench run --executor none` plans one"
        )
    signer = SigningKey.read(options.sign) if options.sign else None
    with Display() as display:
        kinds = " and ".join(sorted(terms.devices))
        display.message(f"worker for {kinds} jobs of {where.results.root}{', alone here' if terms.alone else ''}")
        served = serve(terms, where, display, signer)
    print(_said(served), file=sys.stderr)
    return 0 if served.stopped is None else code(served.stopped)


def _said(served: Served) -> str:
    why = "time is up" if served.time_up else "stopped" if served.stopped is not None else "nothing is left to do here"
    left = f"; {served.left} jobs need another worker (a device, a machine alone, more time)" if served.left else ""
    return f"{served.done} jobs done: {why}{left}"
