"""`bench run --executor`: plan a run in its results folder, and have workers started for it."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.cli.queue_table import counts, tallies
from bench.cli.terminal import to_stdout
from bench.results.queue import job_file
from bench.results.run_secret import given
from bench.runs.engine_options import EngineOptions
from bench.runs.executor import EXECUTORS, Executing, Executor, Started, Wanted, executor
from bench.runs.needs import Needs
from bench.runs.planned_run import PlannedRun, plan_run
from bench.runs.run_spec import RunSpec
from bench.wire.text import line
from bench.workbench.place import Place

_LOOK_SECONDS = 2.0
_SAY_SECONDS = 60.0
_FRUITLESS = 2
"""So often workers may come and go, and do nothing, before no more are started: their logs say why."""
_PRINTED, _ERROR, _MOST_LOGS = (".err", ".log"), "bench: ", 100
_LINGER_SECONDS = 60.0
"""So long workers may tidy up when all jobs have ended; what still waits for a machine then is taken back."""


def hand_out(
    name: Executing, specs: Sequence[RunSpec], where: Place, engine: EngineOptions, *, secret: Path | None,
    memory: float | None, jobs: int | None, detach: bool,
) -> int:  # fmt: skip
    """Plan, and start workers if that was asked for; 1 where a job failed or is left."""
    if secret is not None:
        where.results.keep_secret(given(secret))
    limit = None if memory is None else int(memory * 2**30)
    plans = [plan_run(spec, where, memory=limit) for spec in specs]
    left = wanted(plans, where)
    for each in left:
        print(f"planned: {each.jobs} jobs for {each.needs.name} ({_words(each.needs)})")
    if not left:
        print("planned: nothing is left to do")
    folder = shlex.quote(str(where.results.root))
    if name not in EXECUTORS:
        print(f"start any number, anywhere: bench worker --results {folder}")
        print(f"and look at them with:      bench status --watch --results {folder}")
        return 0
    if not left:
        return _conclude(where)
    logs = where.results.log("workers", "all").parent
    started = Started(where.results.root, where.roots, logs, jobs, detach, engine)
    workers = executor(name, started)
    print(f"what workers print: {logs}")
    if detach:
        workers.start(left)
        print(f"look at them with:  bench status --watch --results {folder}")
        return 0
    try:
        tries = _FRUITLESS
        while left and tries:
            workers.start(left)
            _wait(workers, plans, where)
            before, left = left, wanted(plans, where)
            tries = _FRUITLESS if _sum(left) < _sum(before) else tries - 1
    finally:
        workers.stop()
    if left:
        print(_why_left(logs), file=sys.stderr)
    return _conclude(where)


def wanted(plans: Sequence[PlannedRun], where: Place) -> list[Wanted]:
    """The jobs of some plans that have not ended, by what they need."""
    measuring, preparing = Counter[Needs](), Counter[Needs]()
    for planned in plans:
        ended = where.results.queue.ended(planned.name)
        for each in planned.jobs:
            if job_file(each.job) not in ended:
                (preparing if each.prepares else measuring)[each.needs] += 1
    classes = sorted({*measuring, *preparing}, key=lambda needs: (needs.alone, needs.name))
    return [Wanted(needs, measuring[needs], preparing[needs]) for needs in classes]


def _sum(left: Sequence[Wanted]) -> int:
    return sum(each.jobs for each in left)


def _wait(workers: Executor, plans: Sequence[PlannedRun], where: Place) -> None:
    """Wait until all workers have ended, or have nothing to do any more."""
    said, idle, left, away = 0.0, None, 1, False
    while (found := workers.counts()).living:
        now = time.monotonic()
        try:
            left, away = _sum(wanted(plans, where)), False
        except OSError as error:  # what is out of reach for us may not be for workers: they are left alone
            if not away:
                print(f"the folder is out of reach: {error}; looking on", file=sys.stderr, flush=True)
            away = True
        if left:
            idle = None
        elif idle is None:
            idle = now
        elif now - idle > _LINGER_SECONDS:
            return
        if now - said >= _SAY_SECONDS:
            said = now
            waiting = f", {found.waiting} wait" if found.waiting else ""
            print(f"{left} jobs left; {found.running} workers{waiting}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_SECONDS)


def _why_left(logs: Path) -> str:
    """That workers came and went, with what the last of them said that ended in error."""
    said = ""
    with contextlib.suppress(OSError):
        printed = [path for path in logs.rglob("*") if path.suffix in _PRINTED]
        for path in sorted(printed, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_LOGS]:
            errors = [each for each in path.read_text(errors="replace").splitlines() if each.startswith(_ERROR)]
            if errors:
                said = f"; the last error ({path}): {line(errors[-1].removeprefix(_ERROR))}"
                break
    return f"bench: jobs are left, and workers did no more of them: what they print says why{said}"


def _conclude(where: Place) -> int:
    found = counts(where.results.queue)
    to_stdout().print(tallies(found))
    print(f"Records: {where.results.root / 'cells'}; `bench status` says why of each")
    return 0 if all(each.states.keys() <= {"done"} for each in found) else 1


def _words(needs: Needs) -> str:
    alone = " alone on a machine" if needs.alone else ""
    memory = "" if needs.memory is None else f", {needs.memory / 2**30:.0f} GiB"
    return f"{needs.device}{alone}, {needs.minutes} minutes at most{memory}"
