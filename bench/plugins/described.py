"""A plug-in from outside is asked what it is, in a process of its own: `bench.plugins.describe` answers there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, UsageError
from bench.sandbox import confined, end, environment, why_not
from bench.wire.message import Reader, WireError

MESSAGE_BYTES = 1 << 20
MESSAGES = 2  # that it began, before anything is imported that is not this project's; and what it has to say
SECONDS = 600.0
LOOK_SECONDS = 1.0


def described(group: Group, spec: PluginSpec, preset: str, files: Sequence[Path]) -> dict[str, JsonValue]:
    """What a plug-in says of itself in a process of its own, within a sandbox where that works.

    Args:
        group, spec, preset: What is asked for, with files by their full path.
        files: What the process may read.

    Raises:
        UsageError: It says nothing, or what is wrong with it.
    """
    if missing := [path for path in files if not path.exists()]:
        raise UsageError(f"no such plug-in file: {missing[0]} (expected FILE.py:CLASS)")
    reading, writing = os.pipe()
    command = [sys.executable, "-P", "-m", "bench.plugins.describe", group, str(spec), preset, str(writing)]
    sandbox = why_not() is None
    if sandbox:
        command = confined(command, folder=None, files=files, device="cpu")
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
        pass_fds=(writing,), env=environment(sandbox=sandbox), start_new_session=True,
    )  # fmt: skip
    os.close(writing)
    until = time.monotonic() + SECONDS
    try:
        said = _messages(reading, process, until)
    finally:
        end(process)
        os.close(reading)
    if len(said) < MESSAGES:
        raise UsageError(f"{spec.shown} cannot be used: {_unsaid(began=bool(said), late=time.monotonic() >= until)}")
    told = said[-1]
    if "error" in told:
        raise UsageError(str(told["error"]))
    return cast("dict[str, JsonValue]", told["ok"])


def _messages(reading: int, process: subprocess.Popen[bytes], until: float) -> list[dict[str, JsonValue]]:
    """That the process began, and what it then said; less where it ends, or takes longer.

    Its end counts, not that of the line: it may have left that to another.
    """
    reader, found, ended = Reader(reading, MESSAGE_BYTES), list[dict[str, JsonValue]](), False
    while len(found) < MESSAGES and not ended and time.monotonic() < until:
        ended = process.poll() is not None
        select.select([reading], [], [], 0.0 if ended else LOOK_SECONDS)
        try:
            for message in reader.messages():
                found.append(message)
        except (EOFError, WireError):
            break
    return found[:MESSAGES]


def _unsaid(*, began: bool, late: bool) -> str:
    """Why nothing was said, by how far the process came."""
    if late:
        return f"after {SECONDS:.0f} seconds its module was still being imported"
    if began:
        return "its module ends the process that imports it; give it a class that can be imported and made"
    return (
        "the process that was to import it did not start, whatever the module holds: what it printed stands above, "
        "such as a package that Python does not find there"
    )


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
