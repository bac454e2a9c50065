"""Processor seconds and wall seconds of a job whose method and attack live in rooms.

`python tests/campaigns/price_of_rooms.py [--python PATH ...]` runs copies of built-in methods and of nearest-neighbour
as files, which are another author's, on digits. Each interpreter has its own commit of this project installed, and the
runs of all are interleaved, so that other work on the machine slows them alike. A row is the median over rounds.

- processor: seconds a job, as the records say: the run looks at all living processes of a job twice a second. (The sum
  of the system lacks what a killed sandbox spent.)
- wall: seconds of the whole run, a job.
- own: processor seconds a job within calls of the method and of the attack.
- harness: 1 - own / processor. Bob's training counts as the harness's, and nearest-neighbour learns nothing.
- fit and others: wall seconds of each kind of job, as the records say.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

COPY = '''"""Copies of {method} and nearest-neighbour that print the processor seconds of their calls."""

import functools
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import attacks.nearest_neighbour as attack
import methods.{method} as method

WITHIN = []


def timed(function):
    @functools.wraps(function)
    def call(*values, **named):
        if WITHIN:
            return function(*values, **named)
        WITHIN.append(function)
        start = time.process_time()
        try:
            return function(*values, **named)
        finally:
            WITHIN.pop()
            print(f"[own] {{time.process_time() - start:.6f}}", file=sys.stderr, flush=True)

    return call


for module in (method, attack):
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name in ("fit", "load", "sample_key", "transform", "release", "query", "score", "block"):
                if name in vars(value):
                    setattr(value, name, timed(vars(value)[name]))


@dataclass(frozen=True)
class MethodCopy(method.{cls}):
    """{cls}."""

    name: ClassVar[str] = "{method}-copy"
    role: ClassVar = None


@dataclass(frozen=True)
class AttackCopy(attack.NearestNeighbour):
    """NearestNeighbour."""

    name: ClassVar[str] = "nearest-neighbour-copy"
'''
METHODS = {"noise": ("Noise", ""), "identity": ("Identity", ""), "dauntless": ("Dauntless", "[patch_size=4]")}
METRICS = ("reid-auc", "utility-auc", "throughput", "broken-promises")
OWN = re.compile(r"^\[own\] ([0-9.]+)$", re.MULTILINE)


def measured(python: str, isolation: str, preset: str, method: str) -> dict[str, float]:
    """Seconds of one run, by column and by kind of job."""
    cls, values = METHODS[method]
    with tempfile.TemporaryDirectory() as folder:
        file, results = Path(folder, "copies.py"), Path(folder, "results")
        file.write_text(COPY.format(method=method, cls=cls), encoding="utf-8")
        command = [
            python, "-m", "bench", "run", "--method", f"{file}:MethodCopy{values}", "--attack", f"{file}:AttackCopy",
            "--dataset", "digits", "--preset", preset, "--no-controls", "--no-site", "--isolation", isolation,
            "--jobs", "1", "--results", str(results),
        ]  # fmt: skip
        for metric in METRICS:
            command += ["--metric", metric]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
        records = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("cells/*/*/*.json")]
        if done.returncode or not records or any(record["status"] != "ok" for record in records):
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        logs = [
            path.read_text(encoding="utf-8", errors="replace")
            for path in results.rglob("*.log")
            if path.name not in ("fit.log", "data-digits.log")
        ]  # these have no record
    jobs = len(records)
    own = sum(float(seconds) for log in logs for seconds in OWN.findall(log))
    processor = sum(record["seconds"]["cpu"] for record in records)
    kinds = {record["kind"]: record["seconds"]["wall"] for record in records}
    return {
        "processor": processor / jobs, "wall": wall / jobs, "own": own / jobs, "harness": 1 - own / processor,
        "fit": records[0]["seconds"]["fit"], **kinds,
    }  # fmt: skip


def _commit(python: str) -> str:
    place = "import bench, pathlib; print(pathlib.Path(bench.__file__).parent)"
    folder = subprocess.run([python, "-c", place], capture_output=True, text=True, check=True).stdout.strip()
    line = ["git", "-C", folder, "rev-parse", "--short", "HEAD"]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip() or folder


def main() -> None:
    """Print a row a commit, isolation, preset and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter with this project (default: this one)")
    parser.add_argument("--isolation", action="append", choices=("sandbox", "processes", "none"))
    parser.add_argument("--preset", action="append")
    parser.add_argument("--method", action="append", choices=sorted(METHODS))
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    commits = {python: _commit(python) for python in asked.python or [sys.executable]}
    cells = [
        (preset, method, isolation, python)
        for preset in asked.preset or ["smoke"] for method in asked.method or list(METHODS)
        for isolation in asked.isolation or ["sandbox"] for python in commits
    ]  # fmt: skip
    found = defaultdict[tuple[str, ...], list[dict[str, float]]](list)
    for _ in range(asked.rounds):
        for preset, method, isolation, python in cells:
            row = (preset, method, isolation, commits[python])
            found[row].append(measured(python, isolation, preset, method))
            columns = {name: median(run[name] for run in found[row]) for name in found[row][0]}
            print(*row, *(f"{name} {value:.2f}" for name, value in columns.items()), flush=True)


if __name__ == "__main__":
    main()
