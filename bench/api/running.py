"""Functions of runs and plug-ins, one a command."""

from __future__ import annotations

__figures__ = False

import importlib.util
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import platformdirs
from pydantic import JsonValue

from bench.data.raw_files import config_path, resolve
from bench.disk.atomic_file import PRIVATE
from bench.plugins import catalogue
from bench.plugins.groups import GROUPS, Group, New
from bench.plugins.spec import UsageError, parse
from bench.progress import forward_progress, report
from bench.results.records import Record
from bench.results.results import Results
from bench.results.signing_key import SigningKey, read_public
from bench.workbench.place import Place

if TYPE_CHECKING:  # each function imports what it needs: a list of plug-ins needs no pages
    from bench.runs.cost import EvaluatorCost, Forecast, Usual
    from bench.runs.display import Display
    from bench.runs.engine import Engine, Executing
    from bench.runs.plan import Plan as ComparedPlan
    from bench.runs.plan import Standing
    from bench.runs.request import Request
    from bench.runs.run import Summary
    from bench.runs.run_spec import RunSpec
    from bench.sandbox import Isolation


def open_place(
    results: Path = Path("results"), data_roots: Sequence[Path] = (), trusted: Sequence[Path] = ()
) -> Place:  # fmt: skip
    """The folders of a command: results, prepared data, and raw data.

    Args:
        results: The results folder, which need not exist yet.
        data_roots: Folders above raw data, before those of BENCH_DATA and of the configuration file.
        trusted: Files of public keys: records that none of them signed are refused; without any, none is.

    Raises:
        UsageError: `results` is a file, lies below one, or has a name that is no UTF-8.
    """
    folder = results.resolve()
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UsageError(f"--results {results!r}: the name is no UTF-8, and records could not tell it") from None
    if results.exists() and not results.is_dir():
        raise UsageError(f"--results {results}: expected a folder, found a file")
    above = next((place for place in results.absolute().parents if place.exists()), results)
    if not above.is_dir():
        raise UsageError(f"--results {results}: {above} is not a folder; choose another place")
    keys = frozenset(map(read_public, trusted)) if trusted else None
    content = Results(folder, trusted=keys)
    if (folder / "rows").is_dir():
        from leaderboard.packed_rows import published_results

        content = published_results(folder, keys)
    return Place(content, cache_folder(), resolve(data_roots))


def cache_folder() -> Path:
    """The folder of prepared data and of features."""
    return Path(platformdirs.user_cache_dir("veil-bench")) / "data"


@dataclass(frozen=True)
class Planned:
    """A job of a plan: its part from 1, and its state."""

    part: int
    dataset: str
    method: str
    seed: int
    evaluator: str
    standing: Standing
    runs: bool


@dataclass(frozen=True)
class Plan:
    """A run's parts and jobs, idle attacks, and a forecast."""

    specs: Sequence[RunSpec]
    jobs: Sequence[Planned]
    idle: Sequence[str]
    absent: Mapping[str, str]
    forecast: Forecast


def plan(request: Request, place: Place) -> Plan:
    """The jobs that a run would do or keep. Raises as `run`."""
    from bench.runs.cost import Forecast, Work
    from bench.runs.plan import to_run

    specs, absent = _present(request, place)
    jobs, work = list[Planned](), list[Work]()
    for number, (compared, earlier) in enumerate(_parts(specs, place), 1):
        work += compared.work(besides=earlier)
        for cell, states in compared.cells.items():
            for state in states:
                evaluator = state.planned.name
                if (cell.folder, evaluator) not in earlier:
                    names = str(cell.choice.dataset), str(cell.method), cell.choice.seed, evaluator
                    jobs.append(Planned(number, *names, state, to_run(state, compared.spec.overwrite)))
    sizes = [path.stat().st_size for path in (place.results.root / "cells").glob("*/*/*.json")]
    forecast = Forecast.of(work, usual(specs[0], place), sizes, specs[0].jobs)
    return Plan(specs, jobs, idle_attacks(specs), absent, forecast)


def _parts(specs: Sequence[RunSpec], place: Place) -> Iterator[tuple[ComparedPlan, Set[tuple[str, str]]]]:
    """Each part beside the records, and the jobs of earlier ones."""
    from bench.runs.plan import plan_run

    earlier = frozenset[tuple[str, str]]()
    for spec in specs:
        compared = plan_run(spec, place.results)
        yield compared, earlier
        earlier |= compared.names


def usual(spec: RunSpec, place: Place) -> Usual:
    """Usual seconds of a run's jobs, by the records of its folder."""
    from bench.runs.cost import Usual

    return Usual(records_of(place.results), (spec.preset, spec.device))


def foresee(part: object, request: Request, place: Place, display: Display) -> None:
    """Count the jobs of a later request until it begins.

    Raises as `run`.
    """
    specs, _ = _present(request, place)
    jobs = [job for compared, earlier in _parts(specs, place) for job in compared.work(besides=earlier)]
    display.foresee(part, usual(specs[0], place).by_kind(jobs))


@dataclass
class RunResult:
    """The outcome of a run.

    `absent` holds the reason for each data set that was left out; `unsigned` counts records that the key did not sign;
    `page` is the index of the pages, if any were written; `seconds` are of wall time.
    """

    parts: list[tuple[RunSpec, Summary]]
    summary: Summary
    absent: Mapping[str, str]
    unsigned: int = 0
    page: Path | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Observer:
    """Hears a run: its lines, absent data, and each part's records."""

    display: Display
    absent: Callable[[str, str], None] = field(default=lambda name, reason: None)
    part: Callable[[RunSpec, Summary], None] = field(default=lambda spec, summary: None)


def run(
    request: Request, place: Place, observer: Observer, *, signer: SigningKey | None = None,
    secret: Path | None = None, draw: Path | None = None, site: Path | None = None, executor: Executing = "local",
    engine: Sequence[str] = (),
) -> RunResult:  # fmt: skip
    """Do what is missing of a run, and write its pages.

    Args:
        request, place: The wanted run, and its folders.
        observer: Hears the run.
        signer: Signs new records.
        secret: A file with the run secret; None for the folder's own.
        draw: The board's draw that gives it; the request has its seed (`seed_of_draw`).
        site: Folder of the pages; None writes none.
        executor, engine: The engine, and its options as NAME=VALUE.

    Raises:
        UsageError: An option that cannot be taken, or none of the data is here.
    """
    from bench.results.run_secret import given
    from bench.runs.plan import plan_run, work
    from bench.runs.run import Summary
    from bench.runs.run import run as run_spec

    key = None if secret is None else given(secret)
    specs, absent = _present(request, place)
    if draw is not None:
        from bench.exchange import draws
        from bench.isolation import require_sandbox

        isolation = require_sandbox("--draw")
        if weaker := [spec.isolation for spec in specs if spec.isolation != isolation]:
            raise UsageError(
                f"--draw goes with --isolation sandbox, got {weaker[0]}: without one a method can read keys"
            )
        draws.begin(draw, specs, place.results)
    for name, reason in absent.items():
        observer.absent(name, reason)
    start = time.perf_counter()
    result = RunResult([], Summary(), absent)
    is_counting_announced = False
    with observer.display as display, _engine(request, place, display, executor, engine) as jobs_engine:
        for text in announcements(specs, place):
            display.message(text)
        if key is not None:
            place.results.keep_secret(key)
        seconds = usual(specs[0], place)
        for number, (compared, earlier) in enumerate(_parts(specs, place) if len(specs) > 1 else (), 1):
            if number > 1:
                display.foresee(number, seconds.by_kind(compared.work(besides=earlier)))
        for number, spec in enumerate(specs, 1):
            if result.summary.stopped is not None:
                result.summary.planned += sum(map(len, work(spec).values()))
                continue
            if len(specs) > 1:
                display.message(part_title(number, specs))
            display.begin(number)
            plan = plan_run(spec, place.results)
            if not is_counting_announced and any(map(plan.again, plan.cells)):
                is_counting_announced = True
                for text in itertools.chain(slow_counting(), slow_starts(spec.isolation)):
                    display.message(text)
            summary = run_spec(plan, place, display, signer, jobs_engine, seconds)
            result.parts.append((spec, summary))
            result.summary.add(summary)
    for spec, summary in result.parts:
        if summary.records:
            observer.part(spec, summary)
    records = result.summary.records
    result.unsigned = 0 if signer is None else sum(not record.signed_by(signer.public) for record in records)
    if site is not None and any(record.limit is None for record in records):
        from leaderboard.site import build

        with observer.display as display, forward_progress(partial(display.progress, "pages")):
            result.page = build(place.results, site, report=report)
    result.seconds = time.perf_counter() - start
    return result


def seed_of_draw(path: Path) -> int:
    """The seed that a board's draw gives. Raises UsageError."""
    from bench.exchange import draws

    try:
        return draws.read(path).draw.seed
    except draws.DrawError as error:
        raise UsageError(str(error)) from error


@contextmanager
def _engine(
    request: Request, place: Place, display: Display, executor: Executing, options: Sequence[str]
) -> Iterator[Engine | None]:
    """The engine on other machines; None for this machine."""
    from bench.runs.engine import Launch, remote_engine
    from bench.runs.request import engine_options

    if executor == "local":
        yield None
        return
    jobs, memory = (cast("float | None", request.options.get(name)) for name in ("jobs", "memory"))
    launch = Launch(
        place.results, engine_options(options, request.config), None if jobs is None else int(jobs),
        None if memory is None else int(memory * 2**30), display.progress,
    )  # fmt: skip
    with closing(remote_engine(executor, launch)) as jobs_engine:
        yield jobs_engine


def _present(request: Request, place: Place) -> tuple[Sequence[RunSpec], Mapping[str, str]]:
    from bench.runs.plan import present
    from bench.runs.request import run_specs

    return present(run_specs(request), place)


def announcements(specs: Sequence[RunSpec], place: Place) -> Iterator[str]:
    """Lines on what all parts of a run share."""
    from bench.plugins.third_party import is_outside
    from bench.sandbox import remedy, why_not, why_whispers

    first = specs[0]
    presets = ", ".join(dict.fromkeys(spec.preset for spec in specs))
    device = "CUDA device" if first.device == "cuda" else "CPU"
    jobs = f"{first.jobs} job{'' if first.jobs == 1 else 's'}"
    yield f"preset {presets} on the {device}, {jobs} at a time; records in {place.results.root}"
    if first.isolation == "none":
        yield "methods and attacks run in the judge's own process: trust them, and keep the records off leaderboards"
    elif first.isolation != "sandbox":
        reason = f"{why}; {remedy()}" if (why := why_not()) is not None else "asked for"
        yield f"methods and attacks run in processes of their own, with your rights and no sandbox ({reason})"
    elif (whispers := why_whispers()) is not None and any(
        is_outside("methods", method.spec) for spec in specs for method in spec.methods
    ):
        yield f"sandboxes of one method can pass on to each other what they have seen: {whispers}"
    yield from idle_attacks(specs)


def slow_counting() -> Iterator[str]:
    """A line if pair scores are counted without numba, which it imports."""
    from bench.pairs.sweep import engine

    if engine() == "torch":
        yield "pair scores are counted by torch, which is slower: numba is not installed, or cannot be imported"


def slow_starts(isolation: Isolation) -> Iterator[str]:
    """A line if each process of a plug-in compiles torch's source anew.

    Such a process writes no bytecode, and in a sandbox it could not.
    """
    found = importlib.util.find_spec("torch")
    if isolation == "none" or found is None or found.origin is None:
        return
    folder = Path(found.origin).parent
    if (folder / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc").exists():
        return
    if sys.dont_write_bytecode or sys.pycache_prefix is not None or not os.access(folder, os.W_OK):
        yield (
            f"torch has no bytecode here and Python may write none, so that each process of a method or an attack "
            f"compiles its source anew, which doubles its start: run python -m compileall -q {folder.parent}"
        )


def idle_attacks(specs: Sequence[RunSpec]) -> list[str]:
    """A line for each attack that was chosen and does not run."""
    from bench.runs.plan import idle

    names = dict.fromkeys(name for spec in specs for name in idle(spec))
    return [f"the attack {name} does not run: none of the chosen metrics reads what it scores" for name in names]


def part_title(number: int, specs: Sequence[RunSpec]) -> str:
    """A part of a run in words: its number and its data."""
    choices = specs[number - 1].choices
    data = (f"{choice.dataset} at {choice.size} pixels" if choice.size else str(choice.dataset) for choice in choices)
    return f"part {number} of {len(specs)}: {', '.join(dict.fromkeys(data))}"


@dataclass(frozen=True)
class JobState:
    """The state of a job of a results folder, and the reason.

    `taken`: a command works on its cell now.
    """

    dataset: str
    cell: str
    evaluator: str
    state: str
    reason: str
    taken: bool


def status(results: Results, *, files: bool = False) -> list[JobState]:
    """Every job of a results folder.

    `files` also runs files of Python that plans name.

    Raises:
        UsageError: There are no cells, or only the folder's owner may read the plans.
    """
    folders = list(results.journal.plans())
    private = results.root / PRIVATE
    if private.exists() and not os.access(private, os.R_OK | os.X_OK):
        raise UsageError(
            f"{private}: no permission to read it; plans stand there beside the run secret, for the account that runs "
            "the benchmark alone. Records can be read: `bench table`, `bench compare`, `bench leaderboard build`"
        )
    if not folders:
        raise UsageError(f"no cells in {results.root}: run something first, or name the folder with --results")
    return [state for folder in folders for state in _states(folder, results, files=files)]


def _states(folder: str, results: Results, *, files: bool) -> Iterator[JobState]:
    from bench.isolation import find_isolation
    from bench.results.records import RecordError
    from bench.runs.plan import FROM_A_FILE, data_key, read_plan, standing

    dataset, _, name = folder.partition("/")
    try:
        cell, planned = read_plan(results.journal.plan(folder) or "", files=files)
        data = results.journal.data(data_key(cell.choice))
        states = {
            evaluator: ("unknown", str(job))
            if isinstance(job, UsageError)
            else ((stands := standing(results, cell, job, data, find_isolation("auto"))).state, stands.reason)
            for evaluator, job in planned.items()
        }
    except (UsageError, RecordError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error)
        states = {"all": ("unknown", why if why == FROM_A_FILE else f"the plan cannot be read any more: {why}")}
    taken = results.is_taken(folder)
    for evaluator, (state, reason) in states.items():
        yield JobState(dataset, name, evaluator, state, reason, taken)


def costs(results: Results, rows: int) -> list[EvaluatorCost]:
    """Hours of each evaluator at another number of private rows.

    Raises:
        UsageError: There are no records with seconds.
    """
    from bench.runs import cost

    estimates = cost.costs(records_of(results), rows)
    if not estimates:
        raise UsageError(f"no records with seconds in {results.root}: run some at a small size first")
    return estimates


def records_of(results: Results) -> Iterator[Record]:
    """The records of a folder that can be read."""
    return (record for _, record in results.records() if isinstance(record, Record))


def list_plugins(group: Group | None = None) -> dict[Group, list[catalogue.Listed]]:
    """Every plug-in by group, or of one; a broken one's reason."""
    return {name: catalogue.listed(name) for name in ((group,) if group else GROUPS)}


def info(name: str, preset: str = "quick") -> str:
    """A description of every plug-in of that name. Raises UsageError."""
    return catalogue.described(parse(name), preset, _expected)


def machine_facts() -> dict[str, JsonValue]:
    """Versions, device, isolation and folders that a run would use here."""
    from bench.isolation import find_isolation
    from bench.plugins import environments
    from bench.sandbox import why_not
    from bench.workbench.machine import choose_device, git_state, hardware, usable_memory, usual_jobs, versions

    device, isolation = choose_device("auto"), find_isolation("auto")
    jobs = usual_jobs(device.type)
    return {
        **versions(),
        "commit": git_state(),
        **hardware(device),
        "isolation": isolation,
        "no_sandbox_because": why_not(),
        "jobs": jobs,
        "memory_of_a_job_gib": round(usable_memory() / jobs / 2**30, 1),
        "data_roots": [str(root) for root in resolve()],
        "cache": str(cache_folder()),
        "configuration": str(config_path()),
        "plugins_of_others": str(environments.root()),
    }


def details(name: str, preset: str = "quick") -> list[catalogue.Details]:
    """Every plug-in of that name, as data. Raises UsageError."""
    return catalogue.details(parse(name), preset)


def _expected(method: str, preset: str) -> Iterator[str]:
    """The ledger's figures of a method, each with its preset."""
    from leaderboard.reproduction import shipped, stated

    quotes = shipped().of(method)
    if quotes:
        yield "  expected, of the papers' claims (`bench leaderboard ledger`):"
    figures = [figure for _, _, row in quotes for figure in row.ours if figure.value is not None]
    if figures and not any(figure.at(preset) for figure in figures):
        yield f"    none of the figures is of the preset {preset}; each says what it was measured with"
    for paper, table, row in quotes:
        yield f"    {paper.cited}, {table.place}, {row.what}: the paper says {row.says}: {row.verdict}"
        yield from (f"      here {stated(figure)}" for figure in row.ours)


def class_name(name: str) -> str:
    """The class that `new` writes for a plug-in of that name."""
    from bench.plugins import skeleton

    return skeleton.class_name(name)


def new(kind: New, name: str, into: Path = Path()) -> dict[Path, bytes]:
    """Write a plug-in to start from, and its test; contents by path.

    Of the kind release-folder, write an example of a release by another tool.

    Raises:
        UsageError: The name cannot be taken, or a file of that name exists.
    """
    from bench.disk.atomic_file import make_folder, write_new

    if kind == "release-folder":
        from bench.contract.evaluator import NAME
        from bench.data import example_release

        if NAME.fullmatch(name) is None:
            raise UsageError(f"a folder's name must be of a-z, 0-9 and single hyphens, got {name!r}")
        texts = {into / name / path: content for path, content in example_release.files().items()}
    else:
        from bench.plugins import skeleton

        texts = {into / path: text.encode() for path, text in skeleton.files(kind, name).items()}
    if existing := [path for path in texts if path.exists() or path.is_symlink()]:
        raise UsageError(f"{existing[0]} exists and is not overwritten: name another folder with --into")
    for path, text in texts.items():
        make_folder(path.parent)
        write_new(path, text, mode=0o644)
    return texts
