"""Images a second that methods release on a GPU, by images in a release and by their side.

    python tests/campaigns/release_rates.py METHOD ... --dataset kermany-cxr --public nih --data-root FOLDER
        [--size 64] [--rows 1 32 256 2048] [--preset first-look] [--device cuda] [--folder FOLDER]

The evaluator `throughput` on each method in turn, in one process without a sandbox. A method that does not apply says
why. `--within` leaves out methods that would begin after so many seconds. A line of JSON for each is printed at once.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, cast

import torch

from bench.evaluators import throughput
from bench.evidence import TimingEvidence
from bench.plugins.configured import configure
from bench.results.results import Results
from bench.types import NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.inputs import plugin_record
from bench.workbench.machine import choose_device, hardware
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench


def rates(cell: Cell, place: Place) -> dict[str, Any]:
    """Seconds of the fit, and the details of the evaluator."""
    bench = Workbench.open(cell, place)
    try:
        seconds = bench.fitted()[1]
        found = throughput.Throughput().measure(bench)
    except NotApplicable as reason:
        return {"does not apply": str(reason)}
    finally:
        bench.close()
    timed = cast("TimingEvidence", found.evidence[""])
    return {"fit_seconds": seconds, "release_seconds": list(timed.seconds), **found.details}


def main(words: list[str] | None = None) -> None:
    """Measure, and print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="+")
    parser.add_argument("--dataset", default="synth-cxr")
    parser.add_argument("--public")
    parser.add_argument("--features")
    parser.add_argument("--size", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--preset", default="first-look")
    parser.add_argument("--rows", type=int, nargs="*", default=list(throughput.SWEPT))
    parser.add_argument("--within", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data-root", type=Path, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results/release-rates"))
    options = parser.parse_args(words)
    device = choose_device(options.device)
    started = time.monotonic()
    throughput.SWEPT = tuple(options.rows)
    names = ("dataset", "public", "features", "size", "seed", "limit", "preset")
    choice = Choice.read({name: getattr(options, name) for name in names if getattr(options, name) is not None})
    place = Place(Results(options.folder), options.folder / "cache", tuple(options.data_root))
    options.folder.mkdir(parents=True, exist_ok=True)
    machine = {"machine": hardware(device) | {"torch": torch.__version__}}
    for method in options.method:
        if time.monotonic() - started > options.within:
            print(json.dumps({"method": method, "left out": f"after {options.within:g} s"}), flush=True)
            continue
        cell = Cell(configure("methods", method, options.preset), choice, device.type)
        line = {"method": plugin_record(cell.method).model_dump(mode="json"), "size": options.size}
        print(json.dumps(line | rates(cell, place) | machine), flush=True)


if __name__ == "__main__":
    main()
