"""A run from its options to what it prints: records, tables, pages, and the exit code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.cli.dry_run import dry_run
from bench.cli.expected import expected
from bench.cli.figure_tables import interim
from bench.cli.hand_out import hand_out
from bench.cli.options import place, run_specs, site
from bench.cli.readings import kept_readings
from bench.cli.settled import Overheard, Settled, asked, keep_settled, records_at, tally
from bench.cli.stop import code
from bench.cli.suite import engine_options, part_title
from bench.contract.source import DataError
from bench.pairs.sweep import engine
from bench.plugins import registry
from bench.plugins.chosen import Chosen
from bench.plugins.spec import UsageError, parameters, parse
from bench.results.reason import ABSENT
from bench.results.records import Record
from bench.results.run_secret import given
from bench.results.signing_key import SigningKey
from bench.runs.display import MESSAGE, Display, there
from bench.runs.executor import EXECUTORS
from bench.runs.plan import Condition, data_key, idle, work
from bench.runs.planned_run import title as cell_title
from bench.runs.present import present
from bench.runs.run import opened_text, run
from bench.runs.run_spec import RunSpec
from bench.runs.summary import Summary
from bench.sandbox import Isolation, why_not
from bench.types import Source
from bench.wire.text import plain
from bench.workbench.place import Place
from leaderboard.site import build

KEPT: Mapping[Condition, str] = {
    "stale": "were computed by earlier code and stay; --overwrite stale computes them again",
    "changed": "speak of other data, sizes, versions or metrics and stay, as --overwrite never asks",
    "unreadable": "cannot be read and stay, as --overwrite never asks: `bench status` says why",
    "newer": "were written by a later version and stay, whatever --overwrite says: read them with that version",
}


@kept_readings()
def perform(options: argparse.Namespace, show: Callable[[RunSpec, Summary, Place], None]) -> int:
    """Run what is missing, `show` it, and build the pages; 1 if anything failed. A dry run shows the plan alone."""
    question = asked(options)  # files may be written to while the run is on
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
    read = _read(specs, where)
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
    before = where.results.fingerprint()
    with Overheard() as heard:
        for spec, summary in done:
            if summary.records:
                show(spec, summary, where)
        others = [] if signer is None else [found for found in whole.records if not found.signed_by(signer.public)]
        if others:
            print(f"{len(others)} are not signed by this key and stay; --overwrite always computes them again")
        if not options.no_site and any(record.limit is None for record in whole.records):
            print(f"Page:    {build(where.results, site(options)).as_uri()}")
    keeps = not absent and _settles(whole) and where.results.fingerprint() == before
    if question is not None and read is not None and heard.text is not None and keeps:
        found = _settled(specs, whole, where, site(options), heard.text, read)
        keep_settled(question, read.values(), found)
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


def _found_there(specs: Sequence[RunSpec], where: Place) -> Iterator[str]:
    """What a run says as it finds all that it was asked for."""
    for number, spec in enumerate(specs, 1):
        if len(specs) > 1:
            yield part_title(number, specs)
        planned = work(spec)
        for choice in dict.fromkeys(cell.choice for cell in planned):
            data = where.results.journal.data(data_key(choice))
            if data is not None:
                yield opened_text(choice, data)
        yield from (there(f"{cell_title(cell)} {each.name}") for cell, asked in planned.items() for each in asked)


def _read(specs: Sequence[RunSpec], where: Place) -> Mapping[Chosen[Source], str] | None:
    """The data sets with files, and the stamp of each; None where they are not there, or code from outside takes part.

    Such code may change unseen.
    """
    if not all(map(_ours, specs)):
        return None
    read = (each for spec in specs for choice in spec.choices for each in (choice.dataset, choice.beside) if each)
    with suppress(DataError, OSError):
        return {each: stamp for each in read if (stamp := each.plugin.stamp(where.roots))}
    return None


def _settles(summary: Summary) -> bool:
    """Whether nothing is left to do."""
    left = summary.planned - len(summary.records) or summary.failures or summary.unopened or summary.stopped
    return not left and not summary.kept.keys() - {"done"}


def _ours(spec: RunSpec) -> bool:
    choices, metrics = spec.choices, {registry.origin("metrics", parse(name).name) for name in spec.metrics}
    plugins = [*spec.methods, *spec.attacks, *(each for choice in choices for each in (choice.dataset, choice.beside))]
    readers = [choice.extractor for choice in choices if choice.extractor is not None]
    return (
        not spec.evaluators
        and metrics <= {registry.HOME}
        and all(
            reader.origin == registry.HOME and reader.plugin.side is None for reader in readers
        )  # it has no weights
        and all(plugin is None or plugin.origin == registry.HOME for plugin in plugins)
        and not any(
            ".py:" in str(plugin) or plugin.shown != plugin.spec.shown for plugin in spec.methods + spec.attacks
        )
    )


def _settled(
    specs: Sequence[RunSpec], summary: Summary, where: Place, pages: Path, printed: str, read: Iterable[Chosen[Source]]
) -> Settled:
    lines = [plain(text, MESSAGE) for text in (*_announced(specs, where), *_found_there(specs, where))]
    return Settled(
        lines=lines, printed=printed, records=str(where.results.root), secret=str(where.results.secret_file),
        site=str(pages), count=len(summary.records),
        sources=[(each.name, parameters(each.plugin)) for each in read],
    )  # fmt: skip


def _unprotected(isolation: Isolation) -> str:
    """What a run without a sandbox leaves open."""
    if isolation == "none":
        return "methods and attacks run in the judge's own process: trust them, and keep the records off leaderboards"
    reason = why_not() or "asked for"
    return f"methods and attacks run in processes of their own, with your rights and no sandbox ({reason})"


def _conclude(summary: Summary, where: Place, seconds: float) -> int:
    failures = summary.failures
    if summary.records:
        print(records_at(where.results.root))
        print(tally(summary.computed, len(summary.records) - summary.computed, len(failures), seconds))
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
