"""Live progress of a run: a bar with stage, cell and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from bench.execute import Outcome

_SAY_SECONDS = 15.0
_WORDS = {"ok": "done", "not-applicable": "not applicable", "failed": "FAILED", "timed-out": "TIMED OUT"}


class Display:
    """What the user sees while jobs run. Leave the block to restore the terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._live = self.console.is_terminal
        self._bars = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}"), TimeElapsedColumn(), console=self.console, transient=True,
        )  # fmt: skip
        self._tasks: dict[str, TaskID] = {}
        self._all: TaskID | None = None
        self._total = self._done = self._worked = 0
        self._started = self._said = time.perf_counter()

    def __enter__(self) -> Self:
        if self._live:
            self._bars.start()
            self._all = self._bars.add_task("all jobs", note="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._bars.stop()

    def expect(self, jobs: int) -> None:
        """So many jobs are to come."""
        self._total += jobs

    def progress(self, name: str, stage: str, done: int, total: int) -> None:
        """A worker says where it is."""
        if self._live:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=None, note="")
            step = f"{stage} {done}/{total}" if total else stage
            self._bars.update(self._tasks[name], total=total or None, completed=done, note=step)
        elif total and time.perf_counter() - self._said > _SAY_SECONDS:
            self._said = time.perf_counter()
            self.message(f"  {name}: {stage} {done}/{total}")

    def finished(self, name: str, outcome: Outcome) -> None:
        """A job is over."""
        self._done += 1
        self._worked += 1
        self._said = time.perf_counter()
        if name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name))
        line = f"{_WORDS[outcome.status]:>14}  {name}  {outcome.seconds:.1f} s"
        if outcome.status != "ok":
            where = f" in {outcome.phase}" if outcome.phase and outcome.status != "not-applicable" else ""
            line += f"{where}: {(outcome.reason or '').splitlines()[0]}"
        self.message(f"{line}{self._left()}")

    def cached(self, name: str) -> None:
        """A result was already there."""
        self.message(f"{'already there':>14}  {name}")

    def skip(self, jobs: int) -> None:
        """So many expected jobs need not run."""
        self._done += jobs

    def message(self, text: str) -> None:
        """Show a line, above the bars if there are any."""
        if self._live and self._all is not None:
            self._bars.update(self._all, total=self._total, completed=self._done, note=self._left().strip())
        self.console.print(text, markup=False, soft_wrap=True)

    def _left(self) -> str:
        remaining = self._total - self._done
        if remaining <= 0 or not self._worked:
            return ""
        seconds = (time.perf_counter() - self._started) / self._worked * remaining
        return f"  [{self._done}/{self._total}, about {_duration(seconds)} left]"


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def to_stdout() -> Console:
    """A console for results, which go to standard output; progress goes to standard error."""
    width = None if sys.stdout.isatty() else 160
    return Console(highlight=False, width=width)
