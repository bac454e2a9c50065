"""`bench run --executor`: plan a run in its results folder, and have workers started for it."""

from __future__ import annotations

import argparse
import shlex
import time
from collections import Counter
from collections.abc import Sequence

from bench.cli.queue_table import counts, tallies
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.queue import job_file
from bench.results.run_secret import given
from bench.runs.executor import EXECUTORS, Executor, Started, executor
from bench.runs.needs import Needs
from bench.runs.planned_run import PlannedRun, plan_run
from bench.runs.run_spec import RunSpec
from bench.workbench.place import Place

_LOOK_SECONDS = 1.0


def hand_out(options: argparse.Namespace, specs: Sequence[RunSpec], where: Place) -> int:
    """Plan, and start workers if that was asked for; 1 where a job failed or is left."""
    if options.sign:
        raise UsageError("records are signed by whoever makes them: give --sign to `bench worker`")
    if options.secret is not None:
        where.results.keep_secret(given(options.secret))
    memory = None if options.memory is None else int(options.memory * 2**30)
    plans = [plan_run(spec, where, memory=memory) for spec in specs]
    wanted = missing(plans, where)
    for needs, count in sorted(wanted.items()):
        print(f"planned: {count} jobs for {_words(needs)}")
    if not wanted:
        print("planned: nothing is left to do")
    if options.executor not in EXECUTORS:
        print(f"start any number, anywhere: bench worker --results {shlex.quote(str(where.results.root))}")
        print(f"and look at them with:      bench status --watch --results {shlex.quote(str(where.results.root))}")
        return 0
    started = Started(where.results.root, where.roots, where.results.log("workers", "all").parent, options.jobs, {})
    workers = executor(options.executor, started)
    try:
        for needs, count in sorted(wanted.items()):
            workers.start(needs, count)
        _wait(workers)
    except KeyboardInterrupt:
        workers.stop()
        raise
    return _conclude(where)


def missing(plans: Sequence[PlannedRun], where: Place) -> Counter[Needs]:
    """How many jobs of some plans have not ended, by what they need."""
    found: Counter[Needs] = Counter()
    for planned in plans:
        ended = where.results.queue.ended(planned.name)
        found.update(each.needs for each in planned.jobs if job_file(each.job) not in ended)
    return found


def _wait(workers: Executor) -> None:
    while workers.counts().living:
        time.sleep(_LOOK_SECONDS)


def _conclude(where: Place) -> int:
    found = counts(where.results.queue)
    to_stdout().print(tallies(found))
    print(f"Records: {where.results.root / 'cells'}; `bench status` says why of each")
    return 0 if all(each.states.keys() <= {"done"} for each in found) else 1


def _words(needs: Needs) -> str:
    alone = " alone on a machine" if needs.alone else ""
    memory = "" if needs.memory is None else f", {needs.memory / 2**30:.0f} GiB"
    return f"{needs.device}{alone}, {needs.minutes} minutes at most{memory}"
