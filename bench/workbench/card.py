"""What NVIDIA's own tool says of a card: what it is set to, and what power and clock it ran at while it worked."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import torch
from pydantic import JsonValue

EVERY_MILLISECONDS = 50
_SECONDS = 30
_SETTINGS = {"driver": "driver_version", "power_limit_w": "power.limit", "highest_clock_mhz": "clocks.max.sm"}
_RUNNING = ("power.draw", "clocks.sm")


@cache
def settings(device: torch.device) -> dict[str, JsonValue]:
    """Driver, limit of power and highest clock; empty where the tool is missing."""
    try:
        command = _command(device, _SETTINGS.values())
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_SETTINGS, (each.strip() for each in done.stdout.strip().split(",")), strict=False))


@dataclass
class Ran:
    """What was seen while a block ran, filled when it ends: mean power in watts and clock in MHz, None if unknown."""

    watts: float | None = None
    megahertz: float | None = None
    seen: int = 0


@contextmanager
def watched(device: torch.device) -> Iterator[Ran]:
    """Look at a CUDA card every `EVERY_MILLISECONDS` while the block runs; on a CPU at nothing.

    The tool says the mean power of the last moments: a block should run for a second or more.
    """
    ran = Ran()
    if device.type != "cuda":
        yield ran
        return
    command = [*_command(device, _RUNNING), f"--loop-ms={EVERY_MILLISECONDS}"]
    try:
        tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        yield ran
        return
    try:
        yield ran
    finally:
        tool.terminate()
        try:
            said, _ = tool.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            tool.kill()
            said, _ = tool.communicate()
        powers, clocks = list[float](), list[float]()
        for line in said.splitlines():
            with contextlib.suppress(ValueError):  # a line cut short, or "[N/A]"
                power, clock = (float(each) for each in line.split(","))
                powers.append(power)
                clocks.append(clock)
        if powers:
            ran.watts, ran.megahertz, ran.seen = fmean(powers), fmean(clocks), len(powers)


def _command(device: torch.device, asked: Iterable[str]) -> list[str]:
    query = ",".join(asked)
    return ["nvidia-smi", f"--id={_identity(device)}", f"--query-gpu={query}", "--format=csv,noheader,nounits"]


def _identity(device: torch.device) -> str:
    """The card's UUID: the tool counts cards that this process may not see, and so from another number."""
    try:
        found = torch.cuda.get_device_properties(device).uuid
    except (AttributeError, RuntimeError, AssertionError):
        return str(device.index or 0)
    return f"GPU-{found}"
