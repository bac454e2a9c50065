"""The hostile matrix: every mode of `misbehaving.py` at every place, through `bench run`, each ending in one record.

python tests/hostile/matrix.py [--modes raise,hang] [--places fit,attack] [--jobs 4] prints a table in Markdown, and
exits with 1 where a cell ended in anything but one bounded record, or where a process or a file was left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from misbehaving import MODES, PLACES, specs

HERE = Path(__file__).parent
MARK = "HOSTILE_MARK"
TIMEOUT, MEMORY = 15, 2
MOST_BYTES, MOST_SHOWN = 200_000, 10_000  # of a record, and of a terminal for each job
GRACE_SECONDS = 30.0
METRICS = {"query": "utility-auc", "attack": "reid-auc"}


@dataclass(frozen=True)
class Outcome:
    """What a mode at a place came to: the record's word, and everything that is wrong with it."""

    word: str
    wrong: tuple[str, ...]


def matrix(folder: Path, modes: Sequence[str], places: Sequence[str], *, jobs: int) -> dict[tuple[str, str], Outcome]:
    """Run modes at places, one run a place (metrics: one run each, for they share a worker with other metrics)."""
    found: dict[tuple[str, str], Outcome] = {}
    for place in places:
        groups = [(mode,) for mode in modes] if place == "metric" else [tuple(modes)]
        for number, group in enumerate(groups):
            found |= run(folder / f"{place}-{number}", {place: group}, jobs=jobs)
    return found


RUNS = """
import json, sys
from bench.cli import main
for words in json.loads(sys.argv[1]):
    code = main(words)
    if code not in (0, 1):
        sys.exit(code)
"""


def run(
    folder: Path, asked: Mapping[str, tuple[str, ...]], *, jobs: int, start: Callable[..., Any] = subprocess.Popen
) -> dict[tuple[str, str], Outcome]:
    """One run a place, all in one process that is begun by `start`, each with its modes.

    What they leave behind is looked for at the end: together they should take less than `misbehaving.LONG`.
    """
    folder.mkdir(parents=True)
    commands = [_words(folder / place, modes, place, jobs) for place, modes in asked.items()]
    environment = {**os.environ, MARK: str(folder), "XDG_CACHE_HOME": str(folder.parent / "cache")}
    with (folder / "said").open("wb") as said:
        line = [sys.executable, "-c", RUNS, json.dumps(commands)]
        code = start(line, env=environment, stdout=said, stderr=said).wait()
    shared = leftovers(folder)
    text = (folder / "said").read_bytes()
    if code:
        shared.append(f"a run ended with {code}")
    most = MOST_SHOWN * sum(len(modes) + 1 for modes in asked.values())
    if b"Traceback" in text or b"\x1b" in text or len(text) > most:
        shared.append("the terminal shows what it should not")
    return {cell: found for place, modes in asked.items() for cell, found in _outcomes(folder, place, modes, shared)}


def _words(folder: Path, modes: tuple[str, ...], place: str, jobs: int) -> list[str]:
    """A run with all modes at a place, beside `identity` and `chance`, which must not be touched."""
    kind = {"attack": "--attack", "metric": "--metric"}.get(place, "--method")
    asked = [word for spec in specs(place, modes, HERE / "misbehaving.py") for word in (kind, spec)]
    asked += ["--method", "identity", "--metric", METRICS.get(place, "max-dispersion")]
    asked += ["--attack", "chance" if place == "attack" else "none"]
    command = ["run", *asked, "--dataset", "digits", "--preset", "smoke", "--no-site"]
    command += ["--limit", "60", "--jobs", str(jobs), "--timeout", str(TIMEOUT), "--memory", str(MEMORY)]
    return [*command, "--results", str(folder / "results"), "--device", "cpu"]


def _outcomes(
    folder: Path, place: str, modes: tuple[str, ...], wrong: Sequence[str]
) -> Iterator[tuple[tuple[str, str], Outcome]]:
    paths = list((folder / place).glob("results/cells/*/*/*.json"))
    records = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    shared = list(wrong)
    if max((path.stat().st_size for path in paths), default=0) > MOST_BYTES:
        shared.append("a record is too long")
    expected = 1 if place == "metric" else len(modes) + 1
    if len(records) != expected:
        shared.append(f"{len(records)} records for {expected}")
    for mode in modes:
        yield (mode, place), _outcome(mode, place, records, shared)


def _outcome(mode: str, place: str, records: Sequence[dict[str, object]], shared: Sequence[str]) -> Outcome:
    own = [record for record in records if place == "metric" or _mode(record) == mode]
    others = [record for record in records if place != "metric" and _mode(record) is None]
    wrong = list(shared)
    if len(own) != 1:
        return Outcome(f"{len(own)} records", ("not one record", *wrong))
    if any(record["status"] != "ok" for record in others):
        wrong.append("another job was touched")
    record = own[0]
    reason = str(record["reason"] or "")
    if len(reason) > 2000 or not reason.replace("\n", " ").isprintable():
        wrong.append("its reason is not fit to be shown")
    word = str(record["code"] or record["status"])
    return Outcome(word, tuple(wrong))


def _mode(record: dict[str, object]) -> object:
    for role in ("method", "attack"):
        plugin = record[role]
        if isinstance(plugin, dict) and isinstance(plugin["parameters"], dict) and "mode" in plugin["parameters"]:
            return plugin["parameters"]["mode"]
    return None


def leftovers(folder: Path) -> list[str]:
    """Processes of the run that are still there once it is over, and files that unpickling would have made."""
    end = time.monotonic() + GRACE_SECONDS  # the fork server ends when it notices
    while (left := marked(str(folder))) and time.monotonic() < end:
        time.sleep(0.1)
    named = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            named.append(f"{process.status()} {' '.join(process.cmdline())[:300]} of {process.parent()}")
            process.kill()
    wrong = [f"{len(left)} processes are left: {'; '.join(named)}"] if left else []
    return wrong + (["something was unpickled"] if (folder / "unpickled").exists() else [])


def marked(mark: str) -> list[psutil.Process]:
    """Living processes that were started with this mark in their environment, or by one that was."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
    return found


def table(found: dict[tuple[str, str], Outcome]) -> str:
    """Modes by places in Markdown: the code of each record, or its status; in bold what is wrong."""
    places = list(dict.fromkeys(place for _, place in found))
    lines = ["| mode | " + " | ".join(places) + " |", "|---" * (len(places) + 1) + "|"]
    for mode in dict.fromkeys(mode for mode, _ in found):
        cells = [found[mode, place] for place in places]
        said = [cell.word if not cell.wrong else f"**{cell.word}: {', '.join(cell.wrong)}**" for cell in cells]
        lines.append(f"| {mode} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = matrix(Path(folder), options.modes.split(","), options.places.split(","), jobs=options.jobs)
    print(table(found))
    wrong = sum(bool(outcome.wrong) for outcome in found.values())
    print(f"\n{len(found)} cells, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
