"""A run from its options to what it prints: records, tables, pages, and the exit code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.cli.dry_run import dry_run
from bench.cli.expected import expected
from bench.cli.figure_tables import interim
from bench.cli.hand_out import hand_out
from bench.cli.options import place, run_specs, site
from bench.cli.stop import code
from bench.cli.suite import engine_options, part_title
from bench.pairs.sweep import engine
from bench.plugins.spec import UsageError
from bench.results.reason import ABSENT
from bench.results.records import Record
from bench.results.run_secret import given
from bench.results.signing_key import SigningKey
from bench.runs.display import Display
from bench.runs.executor import EXECUTORS
from bench.runs.plan import Condition, idle, work
from bench.runs.present import present
from bench.runs.run import run
from bench.runs.run_spec import RunSpec
from bench.runs.summary import Summary
from bench.sandbox import Isolation, why_not
from bench.workbench.place import Place
from leaderboard.site import build

KEPT: Mapping[Condition, str] = {
    "stale": "were computed by earlier code and stay; --overwrite stale computes them again",
    "changed": "speak of other data, sizes, versions or metrics and stay, as --overwrite never asks",
    "unreadable": "cannot be read and stay, as --overwrite never asks: `bench status` says why",
    "newer": "were written by a later version and stay, whatever --overwrite says: read them with that version",
}


def perform(options: argparse.Namespace, show: Callable[[RunSpec, Summary, Place], None]) -> int:
    """Run what is missing, `show` it, and build the pages; 1 if anything failed. A dry run shows the plan alone."""
    where, signer = place(options), _checked(options)
    specs, absent = present(run_specs(options), where)
    for name, reason in absent.items():
        print(f"left out {name}. {reason}", file=sys.stderr)
    if options.dry_run:
        for text in _idle(specs):
            print(text)
        return dry_run(specs, where)
    if options.executor != "local":
        return hand_out(options, specs, where)
    start = time.perf_counter()
    whole, done = Summary(), list[tuple[RunSpec, Summary]]()
    with Display(figures=interim) as display:
        for text in _announced(specs, where):
            display.message(text)
        if options.secret is not None:
            where.results.keep_secret(given(options.secret))
        for number, spec in enumerate(specs, 1):
            if whole.stopped is not None:
                whole.planned += sum(len(planned) for planned in work(spec).values())
                continue
            if len(specs) > 1:
                display.message(part_title(number, specs))
            summary = run(spec, where, display, signer)
            done.append((spec, summary))
            whole.add(summary)
    for spec, summary in done:
        if summary.records:
            show(spec, summary, where)
    others = [] if signer is None else [found for found in whole.records if not found.signed_by(signer.public)]
    if others:
        print(f"{len(others)} are not signed by this key and stay; --overwrite always computes them again")
    if not options.no_site and any(record.limit is None for record in whole.records):
        print(f"Page:    {build(where.results, site(options)).as_uri()}")
    return _conclude(whole, where, time.perf_counter() - start)


def _checked(options: argparse.Namespace) -> SigningKey | None:
    """The key to sign with; raises UsageError for what a run would refuse, so that a dry run refuses it too."""
    if options.executor not in EXECUTORS and (options.engine or options.detach):
        raise UsageError(f"--engine and --detach speak of executors that start workers: {', '.join(EXECUTORS)}")
    if options.executor != "local":
        if options.sign:
            raise UsageError("records are signed by whoever makes them: give --sign to `bench worker`")
        engine_options(options)
    if options.secret is not None:
        given(options.secret)
    return SigningKey.read(options.sign) if options.sign else None


def _announced(specs: Sequence[RunSpec], where: Place) -> Iterator[str]:
    """What all parts of a run share, said before any of it starts."""
    presets = ", ".join(dict.fromkeys(spec.preset for spec in specs))
    device = "CUDA device" if specs[0].device == "cuda" else "CPU"
    yield f"preset {presets} on the {device}, {specs[0].jobs} job(s) at a time; records in {where.results.root}"
    if specs[0].isolation != "sandbox":
        yield _unprotected(specs[0].isolation)
    if engine() == "torch":
        yield "pair scores are counted by torch, which is slower: numba is not installed"
    yield from _idle(specs)
    for name, preset in dict.fromkeys((method.name, spec.preset) for spec in specs for method in spec.methods):
        yield from expected(name, preset)


def _idle(specs: Sequence[RunSpec]) -> Iterator[str]:
    """The attacks that were asked for, and that nothing needs."""
    for name in dict.fromkeys(name for spec in specs for name in idle(spec)):
        yield f"the attack {name} does not run: none of the chosen metrics reads what it scores"


def _unprotected(isolation: Isolation) -> str:
    """What a run without a sandbox leaves open."""
    if isolation == "none":
        return "methods and attacks run in the judge's own process: trust them, and keep the records off leaderboards"
    reason = why_not() or "asked for"
    return f"methods and attacks run in processes of their own, with your rights and no sandbox ({reason})"


def _conclude(summary: Summary, where: Place, seconds: float) -> int:
    failures = summary.failures
    if summary.records:
        there = len(summary.records) - summary.computed
        print(f"Records: {where.results.root / 'cells'}")
        print(f"{summary.computed} computed, {there} already there, {len(failures)} failed; {seconds:.0f} s")
    for condition, said in KEPT.items():
        if summary.kept[condition]:
            print(f"{summary.kept[condition]} {said}")
    for record in failures:
        print(_failure(record, where), file=sys.stderr)
    for name in summary.unopened:
        print(f"not run: {name}, whose data could not be opened; the reason stands above", file=sys.stderr)
    if summary.stopped is not None:
        left = summary.planned - len(summary.records)
        said = f"bench: stopped; {left} of {summary.planned} are left: the same command goes on with them"
        print(said, file=sys.stderr)
        return code(summary.stopped)
    if ABSENT & set(summary.unopened.values()):
        return 2
    return 1 if failures or summary.unopened or summary.kept["unreadable"] or summary.kept["newer"] else 0


def _failure(record: Record, where: Place) -> str:
    log = where.results.log(record.cell, "fit" if record.phase == "fit" else record.evaluator)
    known = f" (log: {log})" if log.exists() else ""
    return f"{record.status}: {record.cell}/{record.evaluator} in {record.phase}: {record.reason}{known}"
