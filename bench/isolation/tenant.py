"""Isolation level of a run, and the plug-in of a room."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from bench.memory.memory_budget import Budget
from bench.plugins.configured import Configured
from bench.plugins.groups import Group
from bench.plugins.spec import UsageError
from bench.plugins.third_party import files_of, is_outside
from bench.sandbox import Isolation, python, why_not

VARIABLE = "BENCH_ISOLATION"
"""Environment variable: the level that `auto` stands for."""


def find_isolation(wish: Literal["auto", Isolation]) -> Isolation:
    """The isolation level for a wish; `auto` takes the strongest that works.

    Raises:
        UsageError: `sandbox` was asked for and does not work; the text says what to install.
    """
    if wish == "auto":
        setting = os.environ.get(VARIABLE, "auto")
        if setting not in ("auto", *get_args(Isolation)):
            raise UsageError(f"{VARIABLE} must be {', '.join(get_args(Isolation))} or auto, got {setting!r}")
        wish = cast("Isolation", setting)
    if wish == "processes" or wish == "none":
        return wish
    reason = why_not()
    if reason is None:
        return "sandbox"
    if wish == "sandbox":
        raise UsageError(f"--isolation sandbox: {reason}; install bubblewrap, or use --isolation processes")
    return "processes"


@dataclass(frozen=True)
class Tenant:
    """The plug-in of a room.

    Args:
        group, spec, preset: The plug-in, which the process builds by itself.
        device: "cpu" or "cuda".
        sandbox: Within bubblewrap, or only in a process of its own.
        files: Its code and weights, and those of a method whose scheme it loads.
        folder: The folder of all rooms; only its owner can enter it.
        memory: Bytes that a job may hold, all of its processes together; None for no bound.
    """

    group: Group
    spec: str
    preset: str
    device: str
    sandbox: bool
    files: tuple[Path, ...]
    folder: Path
    memory: int | None = None

    @property
    def budget(self) -> Budget | None:
        """The memory for rows on the judge's side."""
        return None if self.memory is None else Budget(self.memory, self.folder.parent)


def tenant(
    chosen: Configured[Any],
    *beside: Configured[Any],
    device: str,
    sandbox: bool,
    folder: Path,
    memory: int | None = None,
) -> Tenant:
    """The tenant of a chosen plug-in and of those `beside` it."""
    loaded = (chosen, *(other for other in beside if not is_outside(other.group, other.spec)))
    files = dict.fromkeys(path for plugin in loaded for path in files_of(plugin.group, plugin.spec))
    if overlaps := [path for path in files if folder.resolve().is_relative_to(path.resolve())]:
        raise UsageError(
            f"{chosen.spec.shown} may not be shown {overlaps[0]}, in which the results lie: name files, not that"
        )
    if overlaps := [path for path in python() if sandbox and folder.resolve().is_relative_to(path.resolve())]:
        raise UsageError(
            f"the results lie in {overlaps[0]}, which holds Python and is shown to every plug-in: move them"
        )
    return Tenant(chosen.group, str(chosen), chosen.preset, device, sandbox, tuple(files), folder, memory)
