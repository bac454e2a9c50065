"""`bench worker`, until executors submit jobs themselves."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

from bench.cli.parameters import RESULTS, DataRoots, ResultsFolder, read
from bench.plugins.option import Amount, Count


def _call(verb: str, **options: Any) -> int:
    command = importlib.import_module(f"bench.cli.commands.{verb}")
    return int(command.main(argparse.Namespace(**options)))


def worker(
    *, results: ResultsFolder = RESULTS, data_root: DataRoots = (), device: Literal["auto", "cpu", "cuda"] = "auto",
    alone: bool = False, limit_minutes: Annotated[float | None, read(Amount, "minutes")] = None,
    idle_minutes: Annotated[float | None, read(Amount, "minutes")] = None,
    cores: Annotated[int | None, read(Count, "threads")] = None,
    memory: Annotated[float | None, read(Amount, "GiB")] = None,
    lost_after: Annotated[float, read(Amount, "seconds")] = 120.0, only: str | None = None, prepare: bool = False,
    sign: Path | None = None,
) -> int:  # fmt: skip
    """Do jobs of planned runs."""
    from bench.runs.needs import Needs

    return _call(
        "worker", results=results, data_root=data_root, device=device, alone=alone, limit_minutes=limit_minutes,
        idle_minutes=idle_minutes, cores=cores, memory=memory, lost_after=lost_after,
        only=None if only is None else Needs.named(only), prepare=prepare, sign=sign,
    )  # fmt: skip
