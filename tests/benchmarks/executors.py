"""What workers cost beside the jobs that they do: a run at `smoke` by executors and numbers of workers.

python tests/benchmarks/executors.py [--executors local,slurm,ray] [--workers 1,2,4,8] [--methods 4] prints
a table in Markdown: seconds on the wall and of the processor, and the overhead a job against `local` with one job at
a time. `slurm` is the SLURM of this machine, `slurm-local` the tasks of submitit without one; `ray` starts a cluster
here. Where other work keeps the machine busy, only seconds of the processor can be compared; what SLURM's daemons
start is not in them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.runs.worker import adopt_orphans

WORDS = {
    "local": (),
    "slurm": ("--executor", "slurm", "--engine", "time=30"),
    "slurm-local": ("--executor", "slurm", "--engine", "cluster=local"),
    "ray": ("--executor", "ray"),
}
METHODS = ("identity", "mosaic", "blur", "dp-simple", "noise", "dauntless", "k-same", "instahide")
ASKED = ("--attack", "none", "--metric", "max-dispersion", "--dataset", "digits", "--preset", "smoke", "--limit", "60",
         "--device", "cpu", "--isolation", "none", "--no-site")  # fmt: skip


def jobs(methods: int) -> int:
    """Of a run: the data are opened once, and every method is fitted and measured."""
    return 1 + 2 * methods


def timed(executor: str, workers: int, methods: int) -> tuple[float, float]:
    """Seconds of a run on the wall, and of the processor in all that it started."""
    with tempfile.TemporaryDirectory(prefix="executors-") as made:
        named = [word for method in METHODS[:methods] for word in ("--method", method)]
        command = [sys.executable, "-m", "bench", "run", *named, *ASKED, "--results", f"{made}/results"]
        environment = {**os.environ, "XDG_CACHE_HOME": f"{made}/cache", "OMP_NUM_THREADS": "1"}
        command += ["--jobs", str(workers), *WORDS[executor]]
        began, before = time.perf_counter(), _spent()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        _reap()
        records = len(list(Path(made).glob("results/cells/*/*/*.json")))
        if done.returncode or records != methods:
            raise RuntimeError(f"{executor}: ended with {done.returncode} and {records} records: {done.stderr[-2000:]}")
        return seconds, _spent() - before


def _reap() -> None:
    """Take leave of all that the run left, whose time is known only then."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", default="local,slurm-local,ray", help=f"of {', '.join(WORDS)}")
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--methods", type=int, default=4, choices=range(1, len(METHODS) + 1))
    options = parser.parse_args()
    adopt_orphans()
    count = jobs(options.methods)
    print("| executor | workers | jobs | seconds | of the processor | overhead a job: seconds | of the processor |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    wall, spent = timed("local", 1, options.methods)
    print(f"| local | 1 | {count} | {wall:.1f} | {spent:.1f} | | |", flush=True)
    for executor in options.executors.split(","):
        for workers in map(int, options.workers.split(",")):
            if (executor, workers) != ("local", 1):
                found = timed(executor, workers, options.methods)
                more = " | ".join(
                    f"{(mine - its) / count:+.1f}" for mine, its in zip(found, (wall, spent), strict=True)
                )
                print(f"| {executor} | {workers} | {count} | {found[0]:.1f} | {found[1]:.1f} | {more} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
