"""Where results are printed."""

from __future__ import annotations

import sys

from rich.console import Console


def to_stdout() -> Console:
    """A console for results, which go to standard output; progress goes to standard error."""
    width = None if sys.stdout.isatty() else 160
    return Console(highlight=False, markup=False, width=width)  # brackets are those of specs
