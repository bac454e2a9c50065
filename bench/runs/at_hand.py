"""Data that a run opens by itself: where every record is there, and only the data could say that it is not of today's.

A worker for that alone starts a fork server, which imports what takes as long as all the rest of such a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from bench.progress import forward_progress
from bench.results.results import Results
from bench.runs.backend import Job, Outcome
from bench.runs.ours import opened_by_us
from bench.runs.tasks import OpenTask
from bench.workbench.cell import Cell, Planned


def opened(
    job: Job,
    planned: Mapping[Cell, Sequence[Planned]],
    results: Results,
    progress: Callable[[str, str, int, int], None],
) -> Outcome | None:
    """What opening the data of these cells came to; None where a worker must do it, or say why it cannot be done.

    A worker opens what is somebody else's code, what may not be shared (it says what failed, and nothing more) and what
    is to be prepared, within its limits of time and memory.
    """
    task = cast(OpenTask, job.argument)
    there = all(results.holds(cell.folder, each.name) for cell, evaluators in planned.items() for each in evaluators)
    if not there or job.restricted or not opened_by_us(task.choice) or not _costs_little(task):
        return None
    start, worked = time.perf_counter(), time.process_time()
    try:
        with forward_progress(partial(progress, job.name)):
            value = job.work(job.argument)
    except Exception:  # the worker meets it once more, and has its text, its code and its log
        return None
    return Outcome("ok", value, None, None, None, time.perf_counter() - start, time.process_time() - worked)


def _costs_little(task: OpenTask) -> bool:
    """Whether nothing is computed on the way: rows were prepared before, and no extractor reads them."""
    sources = [each.plugin.name for each in (task.choice.dataset, task.choice.beside) if each is not None]
    return task.choice.extractor is None and all(any(task.place.cache.glob(f"{name}-*")) for name in sources)
