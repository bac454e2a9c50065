"""Isolation level of a run, and the plug-in of a room."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from bench.contract.preset import PRESETS
from bench.isolation.room_groups import WAITS, RoomGroup
from bench.memory.memory_budget import Budget
from bench.plugins.configured import Configured
from bench.plugins.environments import Environment
from bench.plugins.groups import Group
from bench.plugins.interview import UNCONFINED
from bench.plugins.spec import PluginSpec, UsageError
from bench.plugins.third_party import environment_of, files_of, is_outside
from bench.sandbox import Isolation, data_folders, python, remedy, why_not

VARIABLE = "BENCH_ISOLATION"
"""Environment variable: the level that `auto` stands for, unless a plug-in of another author would go unconfined."""


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
        raise UsageError(f"--isolation sandbox: {reason}; {remedy()}, or use --isolation processes")
    return "processes"


def require_sandbox(purpose: str) -> Isolation:
    """`sandbox`, whatever the environment wishes.

    Args:
        purpose: What needs it, for the message.

    Raises:
        UsageError: Sandboxes do not work here.
    """
    if (reason := why_not()) is not None:
        raise UsageError(f"{purpose} needs a sandbox, for it runs code of other authors: {reason}; {remedy()}")
    return "sandbox"


def check_confined(
    isolation: Isolation, wish: Literal["auto", Isolation], plugins: Iterable[tuple[Group, PluginSpec]]
) -> None:
    """Check that plug-ins of other authors may run at this level.

    Args:
        isolation: The level that the wish led to.
        wish: The level that was asked for on the command line.
        plugins: Methods and attacks.

    Raises:
        UsageError: One of another author would run in a process with this user's rights, which was not asked for.
    """
    UNCONFINED.set(wish == "processes")
    if isolation != "processes" or wish == "processes":
        return
    reason = why_not() or f"{VARIABLE} is processes"
    for group, spec in plugins:
        if is_outside(group, spec):
            raise UsageError(
                f"{spec.shown} is by another author and has no sandbox here ({reason}), so that it could read the run "
                f"secret and your files: {remedy()}, or accept that by --isolation processes"
            )


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
        rooms: Its living rooms.
        hidden: Folders of data that its sandbox does not show: another author's plug-in could look rows up in them.
        environment: It is added with; None for this interpreter.
    """

    group: Group
    spec: str
    preset: str
    device: str
    sandbox: bool
    files: tuple[Path, ...]
    folder: Path
    memory: int | None = None
    rooms: RoomGroup = field(default_factory=lambda: RoomGroup(None), compare=False)
    hidden: tuple[Path, ...] = ()
    environment: Environment | None = None

    @property
    def interpreter(self) -> tuple[Path, ...]:
        """Files of its Python and packages, which its sandbox shows."""
        return tuple(python()) if self.environment is None else self.environment.interpreter_files

    @property
    def root(self) -> Path | None:
        """The root of its image; None for this machine's."""
        return None if self.environment is None else self.environment.manifest.root

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
    environment = environment_of(chosen.group, chosen.spec)
    known = () if environment is not None else beside  # a room of its own environment asks the judge for a scheme
    loaded = (chosen, *(other for other in known if not is_outside(other.group, other.spec)))
    files = dict.fromkeys(path for plugin in loaded for path in files_of(plugin.group, plugin.spec))
    if overlaps := [path for path in files if folder.resolve().is_relative_to(path.resolve())]:
        raise UsageError(
            f"{chosen.spec.shown} may not be shown {overlaps[0]}, in which the results lie: name files, not that"
        )
    if (special := next(_special(files), None)) is not None:
        raise UsageError(
            f"{chosen.spec.shown} may not be shown {special}: a pipe, socket or device connects processes; remove it"
        )
    made = Tenant(
        chosen.group, str(chosen), chosen.preset, device, sandbox, tuple(files), folder, memory,
        environment=environment,
    )  # fmt: skip
    shown = [*made.interpreter, *([] if made.root is None else [made.root])]
    if overlaps := [path for path in shown if sandbox and folder.resolve().is_relative_to(path.resolve())]:
        raise UsageError(
            f"the results lie in {overlaps[0]}, which holds Python and is shown to every plug-in: move them"
        )
    if not is_outside(chosen.group, chosen.spec):
        return made
    if environment is not None:
        environment.check_confined(sandbox=sandbox)
        environment.check()
    seconds = WAITS * PRESETS[chosen.preset].timeout
    rooms = RoomGroup(folder.with_name(f"{folder.name}-groups"), sandbox=sandbox, seconds=seconds)
    if environment is None:
        return replace(made, rooms=rooms, hidden=tuple(data_folders()))
    if environment.manifest.root is not None:
        return replace(made, rooms=rooms, hidden=tuple(environment.manifest.hidden))
    hidden = data_folders(environment.package_folders, ours=environment.manifest.shared)
    return replace(made, rooms=rooms, hidden=tuple(dict.fromkeys(hidden)))


def _special(shown: Iterable[Path]) -> Iterator[Path]:
    """Files that are neither plain ones, folders nor links."""
    for path in shown:
        for each in (path, *(path.rglob("*") if path.is_dir() else ())):
            mode = each.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                yield each
