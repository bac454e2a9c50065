"""Many workers on one results folder: a simulation of claims, with jobs that take no time.

python tests/benchmarks/many_workers.py [--jobs 10000] [--workers 10,50,200] [--processes 4] [--folder DIR] prints a
table in Markdown: claims a second, overall and by quarters of the jobs, seconds from a worker's start to its first
job, jobs that were done twice, and the files that are left. Every worker holds the whole plan and claims as `bench
worker` does; only what a job does is left out, so that the folder alone sets the pace. On a network file system, name
a folder there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.queues import Queue as Pipe
from pathlib import Path
from statistics import median

from bench.results import process_id
from bench.results.queue import Queue
from bench.runs.answers import Evaluation
from bench.runs.backend import Job, Outcome
from bench.runs.offer import Offer
from bench.runs.shared import Shared

PLAN = "simulated"
Done = list[tuple[float, str]]  # when a worker did what


class Nothing:
    """Does a job in no time, and notes it."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._job: Job | None = None

    def submit(self, job: Job) -> None:
        self._job = job

    def next(self) -> tuple[Job, Outcome] | None:
        job = self._job
        assert job is not None
        self._done.append((time.monotonic(), job.key))
        return job, Outcome("ok", Evaluation(), None, None, None, 0.0)

    def close(self) -> None:
        self._job = None


def work(folder: Path, jobs: list[Job], began: list[float], done: Done) -> None:
    """A worker's life: go through the plan, and do what nobody else is at."""
    began.append(time.monotonic())
    told = {"host": "simulated", "hardware": process_id.hardware()}
    offer = Offer(frozenset({"cpu"}), False, told, 120.0, None, lambda seconds: True)

    def inner(look: Callable[[], None]) -> Nothing:
        return Nothing(done)

    with closing(Shared(Queue(folder), PLAN, offer, inner, lambda key: None)) as shared:
        for job in jobs:
            shared.submit(job)
        while shared.next() is not None:
            pass


def some_workers(folder: Path, count: int, workers: int, pipe: Pipe[object]) -> None:
    """So many workers as threads of this process; what they did goes into the pipe."""
    jobs = [Job(f"{n}", print, None, Evaluation, 60.0, Path("log"), key=f"evaluate {n}") for n in range(count)]
    lives: list[tuple[list[float], Done]] = [([], []) for _ in range(workers)]
    threads = [threading.Thread(target=work, args=(folder, jobs, began, done)) for began, done in lives]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.put([(began[0], done) for began, done in lives])


def files(folder: Path) -> int:
    """How many files lie below a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


def simulated(jobs: int, workers: int, processes: int, folder: Path) -> str:
    """A line of the table."""
    pipe: Pipe[object] = multiprocessing.Queue()
    shares = [(workers + number) // processes for number in range(processes)]
    started = [multiprocessing.Process(target=some_workers, args=(folder, jobs, share, pipe)) for share in shares]
    for process in started:
        process.start()
    lives = [life for _ in started for life in pipe.get()]  # type: ignore[attr-defined]
    for process in started:
        process.join()
    when = sorted(at for _, done in lives for at, _ in done)
    keys = [key for _, done in lives for _, key in done]
    first = sorted(done[0][0] - began for began, done in lives if done)
    seconds = when[-1] - min(began for began, _ in lives)
    halves = [when[part * len(when) // 4] for part in (1, 2, 3)]
    rates = [len(when) / 4 / (end - begin) for begin, end in zip([when[0], *halves], [*halves, when[-1]], strict=True)]
    return (
        f"| {workers} | {jobs} | {len(keys) / seconds:.0f} | {', '.join(f'{rate:.0f}' for rate in rates)} | "
        f"{median(first):.2f} s, {first[-1]:.2f} s | {len(keys) - len(set(keys))} | {jobs - len(set(keys))} | "
        f"{files(folder)} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", default="200", help="how many, or several numbers with commas: a line each")
    parser.add_argument("--processes", type=int, default=4, help="that the workers are threads of")
    parser.add_argument("--folder", type=Path, help="where to make the simulated queue (default: a temporary folder)")
    options = parser.parse_args()
    print(
        "| workers | jobs | claims a second | by quarters of the jobs | first job after (median, worst) | done twice | "
        "never done | files |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for workers in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(simulated(options.jobs, workers, options.processes, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
