"""Debugger and profiler around the work of a command."""

from __future__ import annotations

import bdb
import cProfile
import os
import pdb
import pstats
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.plugins.spec import UsageError

LINES = 15
"""Functions that a profile prints."""


@dataclass
class Outcome:
    """The exit code of the work: 0, or 1 after an exception."""

    code: int = 0


@contextmanager
def post_mortem(*, debugger: bool) -> Iterator[Outcome]:
    """Print an exception of the block, and open the debugger if asked.

    What is wrong with the request itself (`UsageError`) passes, and so do signals.
    """
    outcome = Outcome()
    try:
        yield outcome
    except UsageError:
        raise
    except bdb.BdbQuit:  # "quit" at a breakpoint
        print("the debugger was left", file=sys.stderr)
        outcome.code = 1
    except Exception as error:
        traceback.print_exception(error)
        outcome.code = 1
        if debugger:
            pdb.post_mortem(error.__traceback__)


def open_debugger(error: BaseException) -> None:
    """Print an exception, and open the debugger where it was raised."""
    if not isinstance(error, bdb.BdbQuit):
        traceback.print_exception(error)
        pdb.post_mortem(error.__traceback__)


@contextmanager
def profiled(path: Path) -> Iterator[None]:
    """Profile the block into a file for `pstats`.

    Raises:
        UsageError: The file's folder is not there.
    """
    if not path.resolve().parent.is_dir():
        raise UsageError(f"--profile {path}: {path.resolve().parent} is not a folder")
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        profile.dump_stats(os.fspath(path))
        pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(LINES)
