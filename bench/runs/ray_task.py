"""A worker as a task of Ray. Imports nothing heavy, for every task does."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.runs.tied import tied

_END_SECONDS = 60.0
_BY_SIGNAL = 128  # and the signal's number: what `bench` ends with where it was told to stop


class LostError(RuntimeError):
    """A worker was ended by a signal, as all that runs on a node is when the node is shut down: Ray starts it again."""


def live(command: Sequence[str], log: Path) -> int:
    """A worker's life within a task; its exit code. Raises LostError where a signal ended it, RuntimeError on error."""
    with log.open("ab") as printed:
        child = subprocess.Popen(tied(command), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed)
    try:
        code = child.wait()
    finally:  # Ray cancels a task by an exception
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_END_SECONDS)
    if code < 0 or code > _BY_SIGNAL:
        raise LostError(f"bench worker was ended by a signal ({code}): {log} says what it did")
    if code:
        raise RuntimeError(f"bench worker ended with {code}: {log} says why")
    return code
