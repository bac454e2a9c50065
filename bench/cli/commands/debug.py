"""`bench debug`: a method or an attack at work in this process."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from bench.api import debugging
from bench.cli.debugger import post_mortem, profiled
from bench.cli.parameters import HOW, WHAT, DataRoots, read, switch
from bench.plugins.spec import Count

Name = Annotated[str, switch("a method or an attack: its name or FILE.py:CLASS")]


def debug(
    name: Name,
    /,
    *,
    method: Annotated[str, switch("method that an attack is tried on", metavar="NAME", group=WHAT, show_default=True)]
    = "identity",
    attack: Annotated[str, switch("attack that a method is tried with", metavar="NAME", group=WHAT, show_default=True)]
    = "nearest-neighbour",
    metric: Annotated[
        tuple[str, ...], switch("a metric (repeatable; default: all that read the attack)", metavar="NAME", group=WHAT)
    ] = (),
    dataset: Annotated[str, switch("a data set", metavar="NAME", group=WHAT, show_default=True)] = "digits",
    public: Annotated[str | None, switch("public data set, or none", metavar="NAME", group=WHAT)] = None,
    preset: Annotated[str, switch("size of the trial", metavar="NAME", group=HOW, show_default=True)] = "smoke",
    size: Annotated[int | None, read(Count, "side of images in pixels", metavar="PIXELS", group=HOW)] = None,
    seed: Annotated[int, switch("seed of the trial", metavar="N", group=HOW, show_default=True)] = 0,
    device: Annotated[str, switch("auto, cpu or cuda", metavar="NAME", group=HOW, show_default=True)] = "auto",
    pdb: Annotated[bool, switch("open the debugger where an exception was raised", group=HOW)] = False,
    profile: Annotated[
        Path | None, switch("write a profile for pstats, and print where the time went", metavar="FILE", group=HOW)
    ] = None,
    data_root: DataRoots = (),
) -> int:  # fmt: skip
    """Print a line a step; 1 if a plug-in raises."""
    group = debugging.side(name)
    options = {
        "methods": [name if group == "methods" else method], "attacks": [name if group == "attacks" else attack],
        "datasets": [dataset], "public": public, "preset": preset, "size": size, "seeds": [seed], "device": device,
    } | ({"metrics": list(metric)} if metric else {})  # fmt: skip
    written = {option: value for option, value in options.items() if value is not None}
    with debugging.laid_out(written, data_root) as trial:
        with post_mortem(debugger=pdb) as outcome, nullcontext() if profile is None else profiled(profile):
            debugging.debug(trial, lambda line: print(line, flush=True))
        if profile is not None:
            print(f"Profile: {profile} (python -m pstats {profile})", file=sys.stderr)
    return outcome.code
