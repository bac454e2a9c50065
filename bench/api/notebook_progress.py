"""Progress of a run as a bar in a notebook."""

from __future__ import annotations

__figures__ = False

import html
import importlib
import io
import sys
from types import TracebackType
from typing import Any

from rich.console import Console

from bench.results.records import Record
from bench.runs.display import Display
from bench.runs.engine import Outcome

DRAW_SECONDS = 0.25
TROUBLE = ("failed", "timed-out")


def in_notebook() -> bool:
    """True in a kernel of Jupyter, whose front end shows HTML."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return type(found).__name__ == "ZMQInteractiveShell"


class NotebookDisplay(Display):
    """A bar that is drawn anew in place, above jobs that failed.

    IPython alone draws it: no widgets are needed.
    """

    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO(), force_terminal=False, force_jupyter=False, width=120))
        shown: Any = importlib.import_module("IPython.display")
        self._html, self._trouble, self._drawn_at = shown.HTML, list[str](), 0.0
        self._handle = shown.display(shown.HTML("starting"), display_id=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        self._draw(0.0)

    def progress(self, name: str, stage: str, done: int, total: int) -> None:
        """A worker says where it is."""
        super().progress(name, stage, done, total)
        self._draw(DRAW_SECONDS)

    def finished(self, name: str, outcome: Outcome) -> None:
        """A job is over."""
        super().finished(name, outcome)
        if outcome.status in TROUBLE:
            self._trouble.append(f"{name} {outcome.status}: {self._why(outcome)}")
        self._draw(0.0)

    def measured(self, record: Record) -> None:
        """A record is there."""
        super().measured(record)
        self._draw(DRAW_SECONDS)

    def _draw(self, after: float) -> None:
        """Draw, unless it was drawn less than `after` seconds ago."""
        now = self._clock()
        if now - self._drawn_at < after:
            return
        self._drawn_at = now
        running = "; ".join(f"{name}: {row.stage}" for name, row in self._rows.items())
        text = f"{self._done} of {self._total} jobs, {now - self._started:.0f} s{self._remaining()}"
        bar = f"<progress value='{self._done}' max='{max(1, self._total)}'></progress> {html.escape(text)}"
        lines = [f"<small>{html.escape(line)}</small>" for line in (running, *self._trouble) if line]
        self._handle.update(self._html("<br>".join([bar, *lines])))

    def _remaining(self) -> str:
        left = self._left().partition(", ")[2]
        return f", {left}" if left else ""
