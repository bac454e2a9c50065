"""The arguments of the verbs that run methods: what to run, and how."""

from __future__ import annotations

import argparse
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import get_args

from bench.cli.arguments import positive, results_folder, share
from bench.plugins.option import add_flags, options
from bench.runs.executor import Executing
from bench.runs.run_spec import RunSpec
from bench.workbench.choice import Choice

SIZES = ("preset", "limit")
FILES = ("size", "skip_corrupt", "max_pixels")
SUITES = Path(__file__).parents[1] / "suites"
CHOICE = frozenset(options(Choice)) - {*SIZES, *FILES}
SCORED = frozenset({"keys"})
"""Of the choice, what speaks of attacks alone, and does nothing where none is scored."""


def run(parser: argparse.ArgumentParser) -> None:
    """Of `bench run`."""
    what = parser.add_argument_group("what to run (repeatable; parameters as 'dp-simple[scale=20]')")
    _cells(what)
    attacks = what.add_mutually_exclusive_group()
    add_flags(attacks, RunSpec, ("attacks",))
    attacks.add_argument("--attacks", choices=("all", "none"), help="shorthand for all attacks or none")
    add_flags(what, RunSpec, ("metrics", "evaluators", "controls"))
    _how(parser)


def audit(parser: argparse.ArgumentParser) -> None:
    """Of `bench audit`."""
    what = parser.add_argument_group("what to audit (repeatable; the preset sets the trials)")
    _cells(what)
    what.add_argument("--confidence", type=share, default=0.95, metavar="C",
                      help="of the bounds in the table (default: 0.95, as in records)")  # fmt: skip
    _how(parser)
    # The rest of what `bench run` takes: the audit's metric alone, which no attack has a part in.
    parser.set_defaults(metric=["empirical-epsilon"], attack=None, attacks="none", controls=False)


def release(parser: argparse.ArgumentParser) -> None:
    """Of `bench release`."""
    what = parser.add_argument_group("what to release (one method, one data set, one seed of the splits)")
    _cells(what, CHOICE - SCORED)
    _sizes(what)
    where = parser.add_argument_group("where to put it; nothing is ever overwritten")
    where.add_argument("--out", type=Path, metavar="DIR", required=True, help="a new folder, to be published whole")
    where.add_argument("--key-out", type=Path, metavar="FILE", help="the secret (default: DIR-key.safetensors)")
    results_folder(where)
    _measure_nothing(parser)


def show(parser: argparse.ArgumentParser) -> None:
    """Of `bench show`."""
    what = parser.add_argument_group("what to show (methods are repeatable; one data set, one seed)")
    _cells(what, CHOICE - SCORED)
    what.add_argument("--rows", type=positive, metavar="N",
                      help="private images, spread over labels (default: 4, or one a class)")  # fmt: skip
    _sizes(what)
    where = parser.add_argument_group("where to put it")
    where.add_argument("--out", type=Path, metavar="FILE.png", required=True, help="the picture")
    where.add_argument("--confidential", action="store_true",
                       help="draw data that may not be shared: the file must stay on this machine")  # fmt: skip
    results_folder(where)
    _measure_nothing(parser)


def _measure_nothing(parser: argparse.ArgumentParser) -> None:
    """The rest of what `bench run` takes."""
    nothing = dict.fromkeys(
        ("metric", "attack", "controls", "jobs", "timeout", "memory", "overwrite", "keep_releases", "skip_absent")
    )
    parser.set_defaults(attacks="none", **nothing)


def _cells(what: argparse._ArgumentGroup, choice: AbstractSet[str] = CHOICE) -> None:
    what.add_argument(
        "--suite",
        metavar="NAME",
        help=f"a named set of cells: {', '.join(sorted(path.stem for path in SUITES.glob('*.yaml')))}",
    )
    what.add_argument("--config", type=Path, metavar="FILE", help="a YAML with these options; the command line wins")
    add_flags(what, RunSpec, ("methods",))
    add_flags(what, Choice, choice)
    sources(what)


def sources(parser: argparse._ActionsContainer) -> None:
    """Where raw data lie, and how they are read."""
    parser.add_argument("--data-root", type=Path, action="append", metavar="DIR",
                        help="folder above the data sets (or BENCH_DATA, or data_roots in config.yaml)")  # fmt: skip
    add_flags(parser, Choice, FILES)


def _sizes(how: argparse._ArgumentGroup) -> None:
    add_flags(how, Choice, SIZES)
    add_flags(how, RunSpec, ("device", "isolation"))


def _how(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how to run it")
    _sizes(how)
    add_flags(how, RunSpec, ("jobs", "timeout", "memory", "overwrite", "keep_releases", "skip_absent"))
    how.add_argument("--dry-run", action="store_true", help="print the cells and how they stand, and stop")
    results_folder(how)
    how.add_argument("--executor", choices=get_args(Executing), default="local",
                     help="who does the jobs: this process's own workers (local), those that you start with `bench "
                     "worker` (none: only plans), or workers that it starts: here (processes), as arrays of a SLURM "
                     "cluster (slurm), or on a Ray cluster (ray)")  # fmt: skip
    how.add_argument("--engine", action="append", metavar="NAME=VALUE",
                     help="for SLURM or Ray, as partition=gpu, time=24:00:00, alone.constraint=epyc (repeatable; "
                     "or engine: in the configuration)")  # fmt: skip
    how.add_argument("--detach", action="store_true", help="start workers, and leave them to themselves")
    how.add_argument("--secret", type=Path, metavar="FILE",
                     help="the run secret: 32 bytes or 64 hex digits (default: RESULTS's own)")  # fmt: skip
    how.add_argument("--site", type=Path, metavar="DIR", help="folder of the pages (default: RESULTS/site)")
    how.add_argument("--sign", type=Path, metavar="FILE", help="sign new records with this key (see `bench keys new`)")
    how.add_argument("--no-site", action="store_true", help="write records only")
