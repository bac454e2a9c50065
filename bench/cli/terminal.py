"""Where results are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console

from bench.wire.text import plain


def to_stdout() -> Console:
    """A console for results, which go to standard output; progress goes to standard error."""
    width = None if sys.stdout.isatty() else 160
    return Console(highlight=False, markup=False, width=width)  # brackets are those of specs


def to_stderr(lines: Iterable[str], most: int) -> None:
    """Say at most so many things to whoever watches: what files of others say is made plain first."""
    told = list(lines)
    for text in told[:most]:
        print(plain(text), file=sys.stderr)
    if len(told) > most:
        print(f"... and {len(told) - most} more", file=sys.stderr)
