"""A worker as a task of Ray. Imports nothing heavy, for every task does."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.runs.tied import tied

_END_SECONDS = 60.0


def live(command: Sequence[str], log: Path) -> int:
    """A worker's life within a task; its exit code. Raises RuntimeError where it ends in error."""
    with log.open("ab") as printed:
        child = subprocess.Popen(tied(command), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed)
    try:
        code = child.wait()
    finally:  # Ray cancels a task by an exception
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_END_SECONDS)
    if code:
        raise RuntimeError(f"bench worker ended with {code}: {log} says why")
    return code
