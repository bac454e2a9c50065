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
from bench.sandbox import confined, environment, why_not
from bench.wire.channel import Reader
from bench.wire.message import WireError

MESSAGE_BYTES = 1 << 20
SECONDS = 600.0


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
    try:
        told = _answer(reading)
    finally:
        process.kill()
        process.wait()
        os.close(reading)
    if told is None:
        raise UsageError(f"{spec.shown} cannot be used: its module ends the process that imports it, or never ends")
    if "error" in told:
        raise UsageError(str(told["error"]))
    return cast("dict[str, JsonValue]", told["ok"])


def _answer(reading: int) -> dict[str, JsonValue] | None:
    reader, until = Reader(reading, MESSAGE_BYTES), time.monotonic() + SECONDS
    while (left := until - time.monotonic()) > 0:
        select.select([reading], [], [], left)
        try:
            for message in reader.messages():
                return message
        except (EOFError, WireError):
            return None
    return None


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
