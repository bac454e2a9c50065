"""Live progress of a run: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from bench.results.reason import ABSENT
from bench.results.records import Record
from bench.runs.cost import TimeLeft
from bench.runs.engine import Outcome
from bench.wire.text import line, plain

_SAY_SECONDS = 15.0
_FIRST_SECONDS = 40.0  # until figures are first printed if there is no terminal; then after twice as long each time
_DRAW_SECONDS = 2.0
_MOST_ROWS = 60
_AROUND = 7  # lines of a table that are no rows, and those below the bars
Figures = Callable[[Sequence[Record], Console, int], RenderableType]
_BAR_WIDTH = 20
_STAGE, MESSAGE = 80, 8000  # characters
_WORDS = {"ok": "done", "not-applicable": "not applicable", "failed": "FAILED", "timed-out": "TIMED OUT"}


@dataclass
class _Row:
    """A running job; total is 0 if the stage's length is unknown."""

    started: float
    stage: str
    done: int
    total: int


class Display:
    """Progress on the terminal, which is restored when the block ends.

    Args:
        console: The console to write to; None for standard error.
        figures: Makes a table of what is measured so far, of so many lines; None for no table.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self, console: Console | None = None, *, figures: Figures | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        self.console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._rows: dict[str, _Row] = {}
        self._total = self._done = self._worked = 0
        self._kinds, self._ahead = Counter[str](), dict[object, Sequence[tuple[str, float]]]()
        self._time, self._spent, self.workers = TimeLeft(), 0.0, 1
        self._started = self._said = self._finished = clock()
        self._told: set[str] = set()
        self._figures, self._measured, self._shown = figures, list[Record](), 0
        self._drawn: RenderableType | None = None
        self._due = 0.0 if self.console.is_terminal else _FIRST_SECONDS  # seconds after the start
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        if self.console.is_terminal:
            self._live = Live(console=self.console, get_renderable=self._whole, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def expect(self, jobs: int, seconds: Iterable[tuple[str, float]] = ()) -> None:
        """Expect so many more jobs.

        Args:
            jobs: Number of jobs.
            seconds: The kind of each and the seconds that it takes as a rule. A kind is "data", "fit" or the name of an
                evaluation, as the last word of a job's name.
        """
        self._total += jobs
        for kind, usual in seconds:
            self._kinds[kind] += 1
            self._time.expect(kind, usual)

    def foresee(self, part: object, seconds: Sequence[tuple[str, float]]) -> None:
        """Count the jobs of a later part until it begins."""
        self._ahead[part] = seconds
        self.expect(len(seconds), seconds)

    def begin(self, part: object) -> None:
        """Begin a part: forget the jobs that were foreseen of it."""
        for kind, usual in self._ahead.pop(part, ()):
            self._total -= 1
            self._kinds[kind] -= 1
            self._time.expect(kind, -usual, jobs=-1)

    def progress(self, name: str, stage: str, done: int, total: int) -> None:
        """A worker says where it is."""
        now, stage = self._clock(), line(stage, _STAGE)
        started = self._rows[name].started if name in self._rows else now
        self._rows = {**self._rows, name: _Row(started, stage, done, total)}  # the refreshing thread reads whole ones
        if self._live is None and total and now - self._said > _SAY_SECONDS:
            self._said = now
            self.message(f"  {name}: {stage} {done}/{total}")
        self._show_figures()

    def finished(self, name: str, outcome: Outcome) -> None:
        """A job is over."""
        self._done += 1
        self._worked += 1
        self._kinds[kind_of(name)] -= 1
        self._spent += outcome.seconds
        self._time.finished(kind_of(name), outcome.seconds, applies=outcome.status != "not-applicable")
        self._said = self._finished = self._clock()
        self._rows = {other: row for other, row in self._rows.items() if other != name}
        text = f"{_WORDS[outcome.status]:>14}  {name}  {outcome.seconds:.1f} s"
        if outcome.status != "ok":
            where = f" in {outcome.phase}" if outcome.phase and outcome.status != "not-applicable" else ""
            text += f"{where}: {self._why(outcome)}"
        left = "" if outcome.code in ABSENT else self._left()  # what waited for the data is not taken off yet
        self.message(f"{text}  [{left}]" if left and self._live is None else text)

    def _why(self, outcome: Outcome) -> str:
        """The first line of a reason; all of it for absent data."""
        reason = outcome.reason or ""
        if outcome.code not in ABSENT:
            return line(reason)
        if reason in self._told:
            return f"{line(reason, _STAGE)} (as said above)"
        self._told.add(reason)
        return f"\n{reason}" if "\n" in reason else reason

    def measured(self, record: Record) -> None:
        """A record is there: its figures belong to those so far."""
        self._measured.append(record)
        self._show_figures()

    def _show_figures(self) -> None:
        """Draw or print the figures so far, if it is time."""
        after = self._clock() - self._started
        if self._figures is None or after < self._due or self._shown == len(self._measured):
            return
        if self._live is None and 0 < self._total <= self._done:
            return  # the whole table comes next, or stands there already
        self._shown = len(self._measured)
        if self._live is not None:
            self._due = after + _DRAW_SECONDS
            lines = max(1, self.console.height - len(self._rows) - _AROUND)
            self._drawn = self._figures(self._measured, self.console, lines)
        else:
            self._due = 2 * after
            self.console.print(self._figures(self._measured, self.console, _MOST_ROWS))

    def cached(self, name: str) -> None:
        """A result was already there."""
        self.message(f"{'already there':>14}  {name}")

    def skip(self, jobs: int, kind: str = "") -> None:
        """Count expected jobs of a kind as done: they need not run."""
        self._done += jobs
        self._kinds[kind] -= jobs

    def message(self, text: str) -> None:
        """Show a line, above the bars if there are any."""
        if self._live is not None and self._live.is_started:
            self._live.refresh()  # without it the bars below the line would be those of the last refresh
        self.console.print(plain(text, MESSAGE), markup=False, soft_wrap=True)

    def _left(self) -> str:
        """Jobs done and the estimated time left; empty if unknown."""
        remaining = self._total - self._done
        if remaining <= 0 or not self._worked:
            return ""
        now = self._clock()
        kinds, rows = +self._kinds, self._rows
        if kinds.total() == remaining:
            running = [(kind_of(name), now - row.started) for name, row in rows.items()]
            waiting = (kinds - Counter(kind for kind, _ in running)).elements()
            spent = self._spent + sum(seconds for _, seconds in running)
            abreast = max(self.workers, spent / max(now - self._started, 1e-9))  # other machines are not counted
            return self._said_left(self._time.left(waiting, running, abreast))
        # A job that takes longer than the others did says that those to come may, too.
        slow = (now - self._started) / (self._worked + max(1, len(self._rows)))
        each = max((self._finished - self._started) / self._worked, slow)
        seconds = max(each * remaining - (now - self._finished), each * (remaining - 1))
        return self._said_left(seconds)

    def _said_left(self, seconds: float) -> str:
        return f"{self._done}/{self._total}" + (f", about {duration(seconds)} left" if seconds >= 0.5 else "")

    def _whole(self) -> RenderableType:
        return self._bars() if self._drawn is None else Group(self._drawn, self._bars())

    def _bars(self) -> Table:
        """The bars as they stand now."""
        now = self._clock()
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, min_width=1)
        table.add_column()
        table.add_column(no_wrap=True, min_width=_BAR_WIDTH)
        table.add_column(no_wrap=True, justify="right", min_width=5)
        table.add_column()
        for name, row in self._rows.items():
            bar = ProgressBar(
                total=row.total or None, completed=row.done, width=_BAR_WIDTH, pulse=not row.total, animation_time=now
            )
            step = f"{row.stage} {row.done}/{row.total}" if row.total else row.stage
            table.add_row(self._spinner, _plain(name), bar, _clock_face(now - row.started), _plain(step))
        whole = ProgressBar(total=max(1, self._total), completed=self._done, width=_BAR_WIDTH)
        note = self._left() or ("" if self._done else "starting")
        table.add_row(self._spinner, "all jobs", whole, _clock_face(now - self._started), _plain(note))
        return table


def kind_of(job: str) -> str:
    """The kind of a job by its name.

    >>> kind_of("data digits seed 0"), kind_of("digits | dp-simple[scale=20] fit"), kind_of("digits | blur utility")
    ('data', 'fit', 'utility')
    """
    return "data" if job.startswith("data ") else job.rpartition(" ")[2]


def _plain(text: str) -> Text:
    """`text` without markup, on one line that is cut to the terminal."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _clock_face(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def duration(seconds: float) -> str:
    """Seconds in print, in the unit that suits them.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
