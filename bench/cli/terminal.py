"""Where results are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench.results.atomic_file import make_folder
from bench.wire.text import plain


class _Results(Console):
    """A console whose reader may go, as `head` does: what is still printed goes nowhere, and the work goes on."""

    def on_broken_pipe(self) -> None:
        """See `Console`, which would end the process with code 1."""
        self.quiet = True
        let_go()


def let_go() -> None:
    """Have standard output go nowhere, for nobody reads it any more; nor does the interpreter complain as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def unheard(log: Path) -> Iterator[Path]:
    """What plug-ins print within the block goes into the log: it may hold what they saw of the data."""
    kept = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    make_folder(log.parent)
    try:
        taken = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        for number in (1, 2):
            os.dup2(taken, number)
        os.close(taken)
        yield log
    finally:
        sys.stdout.flush()
        for number, end in zip((1, 2), kept, strict=True):
            os.dup2(end, number)
            os.close(end)


def to_stdout() -> Console:
    """A console for results, which go to standard output; progress goes to standard error."""
    width = None if sys.stdout.isatty() else 160
    return _Results(highlight=False, markup=False, width=width)  # brackets are those of specs


def to_stderr(lines: Iterable[str], most: int) -> None:
    """Say at most so many things to whoever watches: what files of others say is made plain first."""
    told = list(lines)
    for text in told[:most]:
        print(plain(text), file=sys.stderr)
    if len(told) > most:
        print(f"... and {len(told) - most} more", file=sys.stderr)
