"""The crash campaign: runs are disturbed at random moments, run again, and compared with an undisturbed one.

python tests/crash/campaign.py [--rounds 3] [--seed 0] [--only TERM,INT] [--isolation none] [--all-metrics] prints a
table in Markdown, says below it what was wrong in which round, and exits with 1 if anything was. Which disturbance,
victim and moment a round has follows from the seed; a moment is counted in files that the run has made.

--engines local,slurm,ray [--kills 50] [--minutes N] has runs done by an engine while planners, workers, tasks and nodes
are killed, as many as are asked for, over as many runs as it takes. `slurm` takes the cluster of this machine, `ray`
starts one of several nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from disturbances import DISTURBANCES, MOUNTED, can_mount, unmount
from engines import ENGINES, disturbed, have
from trial import Harm, Trial, harm

ASKED = ("--method", "identity", "--method", "dp-simple", "--attack", "nearest-neighbour")
FEW = ("--metric", "guesswork", "--metric", "max-dispersion")
COLUMNS = (
    "rounds",
    "cut short",
    "records lost",
    "records that differ",
    "corrupt artefacts accepted",
    "processes left",
    "files left",
)


def undisturbed(folder: Path, asked: tuple[str, ...], isolation: str) -> Trial:
    """An undisturbed run with its releases."""
    trial = Trial(folder, asked, isolation)
    trial.whole("--keep-releases")
    return trial


def trial_round(name: str, seed: int, folder: Path, reference: Trial) -> Harm:
    """One round of a disturbance, in a folder of its own."""
    trial = Trial(folder, reference.asked, reference.isolation)
    try:
        return harm(trial, partial(DISTURBANCES[name], chance=random.Random(f"{name} {seed}")), reference)
    finally:
        unmount(trial)


def table(found: Mapping[str, Sequence[Harm]]) -> str:
    """Disturbances by what they did, in Markdown."""
    lines = ["| disturbance | " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * len(COLUMNS) + "|"]
    for name, harms in found.items():
        counts = [len(harms), sum(bool(each.undone) for each in harms)]
        counts += [sum(len(getattr(each, kind)) for each in harms) for kind in ("lost", "differ", "corrupt")]
        counts += [sum(each.processes for each in harms), sum(len(each.files) for each in harms)]
        lines.append(f"| {name} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def engine_rounds(
    name: str, kills: int, minutes: float, seed: int, pace: float, folder: Path, reference: Trial
) -> tuple[Counter[str], list[Harm]]:
    """Runs by an engine until so many things were killed: what was killed how often, and what each run came to."""
    killed, harms = Counter[str](), list[Harm]()
    end = time.monotonic() + minutes * 60
    while killed.total() < kills and time.monotonic() < end:
        trial = Trial(folder / f"{name}-{len(harms)}", reference.asked, reference.isolation)
        chance, seen = random.Random(f"{name} {seed} {len(harms)}"), dict[str, bytes]()

        def disturb(trial: Trial, chance: random.Random = chance, seen: dict[str, bytes] = seen) -> None:
            killed.update(disturbed(trial, ENGINES[name], chance, kills - killed.total(), pace, seen))

        one = harm(trial, disturb, reference)
        after = trial.records()
        twice = tuple(sorted(each for each, text in seen.items() if after.get(each) != text))
        one = replace(one, lost=(*one.lost, *twice))
        harms.append(one)
        told = ", ".join(f"{count} {what}" for what, count in sorted(killed.items()))
        said = f"{one or 'as undisturbed'} ({one.undone} were to do); so far killed: {told}"
        print(f"{name}, run {len(harms)}: {said}", file=sys.stderr, flush=True)
        if not one:
            shutil.rmtree(trial.folder)
    return killed, harms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each disturbance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(DISTURBANCES), help="disturbances, with commas between them")
    parser.add_argument("--engines", default="", help="in place of disturbances: local, slurm, ray, with commas")
    parser.add_argument("--kills", type=int, default=50, help="on each engine")
    parser.add_argument("--pace", type=float, metavar="SECONDS", help="most between two kills (default: half a run)")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no run after so long on an engine")
    parser.add_argument("--isolation", choices=("none", "processes", "sandbox"), default="none")
    parser.add_argument("--all-metrics", action="store_true", help="utility and throughput too, which take longer")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder, for the rounds that go wrong")
    options = parser.parse_args()
    found: dict[str, list[Harm]] = {}
    if options.keep:
        options.keep.mkdir(parents=True)
    with contextlib.nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory(prefix="crash-") as made:
        began = time.monotonic()
        reference = undisturbed(
            Path(made, "reference"), ASKED if options.all_metrics else ASKED + FEW, options.isolation
        )
        pace = options.pace or (time.monotonic() - began) / 2
        for name in filter(None, options.engines.split(",")):
            if not have(name):
                print(f"{name}: left out, for it does not run here", file=sys.stderr)
                continue
            killed, harms = engine_rounds(
                name, options.kills, options.minutes, options.seed, pace, Path(made), reference
            )
            told = ", ".join(f"{count} {what}" for what, count in sorted(killed.items()))
            found[f"{name}: {told}"] = harms
        for number in range(0 if options.engines else options.rounds):
            for name in options.only.split(","):
                if name in MOUNTED and not can_mount():
                    print(f"{name}: left out, for no file system can be mounted here", file=sys.stderr)
                    continue
                seed = options.seed + number
                folder = Path(made, f"{number}-{name.replace(' ', '-')}")
                one = trial_round(name, seed, folder, reference)
                found.setdefault(name, []).append(one)
                print(
                    f"{name}, seed {seed}: {one or 'as undisturbed'} ({one.undone} were to do)",
                    file=sys.stderr,
                    flush=True,
                )
                if not (one and options.keep):
                    shutil.rmtree(folder)
    print(table(found))
    return any(each for harms in found.values() for each in harms)


if __name__ == "__main__":
    sys.exit(main())
