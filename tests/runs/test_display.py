"""What a user sees while jobs run, on a terminal and elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO

import pytest
from made.board_records import record
from rich.console import Console

from bench.results.records import Record
from bench.runs.display import Display
from bench.runs.local_engine import Outcome

OK = Outcome("ok", None, None, None, None, 4.0)
SHOW_CURSOR = "\x1b[?25h"


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def counted(records: Sequence[Record], console: Console, lines: int) -> str:
    return f"{len(records)} so far, in {lines} lines"


def plain(clock: Clock) -> tuple[Display, StringIO]:
    file = StringIO()
    console = Console(file=file, force_terminal=False, width=100, highlight=False)
    return Display(console, figures=counted, clock=clock), file


def live(clock: Clock, width: int = 100) -> tuple[Display, StringIO]:
    file = StringIO()
    console = Console(
        file=file, force_terminal=True, force_interactive=True, width=width, highlight=False, color_system=None,
        height=25,
    )  # fmt: skip
    return Display(console, figures=counted, clock=clock), file


def frame(display: Display, file: StringIO, clock: Clock) -> str:
    """The bars as they are drawn at this moment, with a marker line above them to force the drawing."""
    before = file.tell()
    display.message("now")
    return file.getvalue()[before:]


def test_without_a_terminal_there_are_lines_and_no_control_codes(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        display.expect(3)
        display.progress("digits | noise fit", "fit", 0, 0)
        clock.now = 4.0
        display.finished("digits | noise fit", OK)
        display.cached("digits | noise sets")
        display.skip(1)
        clock.now = 6.0
        display.finished("digits | noise utility", Outcome("ok", None, None, None, None, 2.0))
    assert file.getvalue().splitlines() == [
        "          done  digits | noise fit  4.0 s  [1/3, about 8 s left]",
        " already there  digits | noise sets",
        "          done  digits | noise utility  2.0 s",
    ]


def test_outcomes_other_than_done_give_stage_and_first_line_of_the_reason(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        display.finished("a", Outcome("failed", None, "error", "ValueError: no\nmore", "attack", 1.0))
        display.finished("b", Outcome("timed-out", None, "timed-out", "stopped after 8 s", "fit", 8.0))
        display.finished("c", Outcome("not-applicable", None, "not-applicable", "guesswork needs links", "start", 0.1))
        display.finished("d", Outcome("failed", None, "error", "", "score", 0.1))
    assert file.getvalue().splitlines() == [
        "        FAILED  a  1.0 s in attack: ValueError: no",
        "     TIMED OUT  b  8.0 s in fit: stopped after 8 s",
        "not applicable  c  0.1 s: guesswork needs links",
        "        FAILED  d  0.1 s in score: ",
    ]


def test_without_a_terminal_long_jobs_report_every_quarter_of_a_minute(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        for second in range(61):
            clock.now = float(second)
            display.progress("job", "train", second, 100)
    said = file.getvalue().splitlines()
    assert said == ["  job: train 16/100", "  job: train 32/100", "  job: train 48/100"]


def test_long_lines_are_not_broken_and_brackets_are_no_markup(clock: Clock) -> None:
    display, file = plain(clock)
    text = "dp-simple[scale=20] " + "x" * 200
    display.message(text)
    assert file.getvalue() == text + "\n"


def test_terminal_shows_stage_steps_clock_and_all_jobs(clock: Clock) -> None:
    display, file = live(clock)
    with display:
        assert "starting" in frame(display, file, clock)
        display.expect(4)
        display.progress("digits | dp-simple[scale=20] fit", "fit", 0, 0)
        clock.now = 65.0
        drawn = frame(display, file, clock)
        # The parameters in brackets are no markup: they must not vanish.
        assert "digits | dp-simple[scale=20] fit" in drawn
        assert "1:05 fit" in drawn
        display.progress("digits | dp-simple[scale=20] fit", "epoch", 3, 9)
        assert "1:05 epoch 3/9" in frame(display, file, clock)
        clock.now = 3725.0
        assert "1:02:05 epoch 3/9" in frame(display, file, clock)


def test_a_finished_job_leaves_the_bars_before_its_line_is_written(clock: Clock) -> None:
    display, file = live(clock)
    with display:
        display.expect(2)
        display.progress("first", "fit", 0, 0)
        frame(display, file, clock)
        clock.now = 4.0
        before = file.tell()
        display.finished("first", OK)
        drawn = file.getvalue()[before:]
    line = drawn.index("done  first  4.0 s")
    assert "first" not in drawn[line + len("done  first  4.0 s") :]
    assert "1/2, about 4 s left" in drawn[line:]


def test_nothing_is_left_of_the_bars_and_the_cursor_is_back(clock: Clock) -> None:
    display, file = live(clock)
    with display:
        display.expect(1)
        display.progress("job", "fit", 1, 2)
        assert "all jobs" in frame(display, file, clock)
    ending = file.getvalue().rpartition(SHOW_CURSOR)
    assert ending[1] == SHOW_CURSOR
    assert "\x1b[2K" in ending[2]
    assert "all jobs" not in ending[2]


def test_a_stage_without_length_after_a_full_one_is_not_shown_as_full(clock: Clock) -> None:
    display, file = live(clock)
    with display:
        display.progress("job", "epoch", 5, 5)
        display.progress("job", "judge", 0, 0)
        clock.now = 7.0
        drawn = frame(display, file, clock)
    assert "0:07 judge" in drawn
    assert "5/5" not in drawn


def test_on_a_narrow_terminal_every_row_is_one_line(clock: Clock) -> None:
    display, file = live(clock, width=60)
    with display:
        display.progress("synth-cxr | dauntless[depth=3] attack-contrastive", "loss on held-out keys", 3, 60)
        drawn = frame(display, file, clock)
    rows = [line for line in drawn.splitlines() if "0:00" in line]
    assert "…" in rows[-2]
    assert "all jobs" in rows[-1]
    assert max(len(row) for row in rows) <= 60
    assert rows[-2].index("0:00") == rows[-1].index("0:00")


@pytest.mark.parametrize(
    ("elapsed", "left"),
    [(10.0, "1/4, about 30 s left"), (15.0, "1/4, about 25 s left"), (60.0, "1/4, about 60 s left"),
     (600.0, "1/4, about 10 min left"), (6000.0, "1/4, about 1.7 h left")],
)  # fmt: skip
def test_time_left_counts_down_and_grows_again_when_a_job_is_slow(clock: Clock, elapsed: float, left: str) -> None:
    display, file = live(clock)
    with display:
        display.expect(4)
        clock.now = 10.0
        display.finished("first", OK)
        display.progress("second", "fit", 0, 0)
        clock.now = elapsed
        assert left in frame(display, file, clock)


def test_without_a_terminal_figures_come_within_a_minute_and_then_ever_more_rarely(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        for second in range(1000):
            clock.now = float(second)
            if second % 10 == 0:
                display.measured(record())
            display.progress("job", "fit", 0, 0)
    said = file.getvalue().splitlines()
    assert said == [f"{count} so far, in 60 lines" for count in (5, 9, 17, 33, 65)]


def test_figures_are_not_printed_again_before_there_are_more(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        for second in range(1000):
            clock.now = float(second)
            if second == 70:
                display.measured(record())
            display.progress("job", "fit", 0, 0)
    assert file.getvalue().splitlines() == ["1 so far, in 60 lines"]


def test_figures_so_far_are_not_printed_once_all_jobs_are_done(clock: Clock) -> None:
    display, file = plain(clock)
    with display:
        display.expect(1)
        display.measured(record())
        display.finished("digits | blur utility", OK)
        clock.now = 100.0
        display.progress("pages", "read the records", 1, 2)
    assert "so far, in" not in file.getvalue()


def test_on_a_terminal_figures_stand_above_the_bars_as_soon_as_there_are_any(clock: Clock) -> None:
    display, file = live(clock)
    with display:
        display.progress("job", "fit", 0, 0)
        assert "so far" not in frame(display, file, clock)
        clock.now = 1.0
        display.measured(record())
        drawn = frame(display, file, clock)
        assert drawn.index("1 so far, in 17 lines") < drawn.index("all jobs")
        clock.now = 4.0
        display.measured(record())
        assert "2 so far" in frame(display, file, clock)


def test_the_time_left_goes_by_the_kinds_of_jobs_that_are_left(clock: Clock) -> None:
    display, file = plain(clock)
    display.expect(4, 2 * [("fit", 4.0), ("reidentification-relational", 20.0)])
    for second, name in ((2.0, "digits | blur fit"), (4.0, "digits | noise fit")):
        clock.now = second
        display.finished(name, replace(OK, seconds=2.0))
    assert "[2/4, about 40 s left]" in file.getvalue()
    clock.now = 84.0
    display.finished("digits | blur reidentification-relational", replace(OK, seconds=80.0))
    assert "[3/4, about 62 s left]" in file.getvalue()


def test_jobs_of_later_parts_count_until_these_begin_and_say_what_they_do(clock: Clock) -> None:
    display, file = plain(clock)
    display.foresee("second", 3 * [("utility", 10.0)])
    display.begin("first")
    display.expect(1, [("fit", 4.0)])
    clock.now = 4.0
    display.finished("digits | blur fit", replace(OK, seconds=4.0))
    assert "[1/4, about 30 s left]" in file.getvalue()
    display.begin("second")
    display.expect(2, 2 * [("utility", 10.0)])
    clock.now = 14.0
    display.finished("digits | blur utility", replace(OK, seconds=6.0))
    assert "[2/3, about 10 s left]" in file.getvalue()


def test_workers_share_what_is_left(clock: Clock) -> None:
    display, file = plain(clock)
    display.workers = 2
    display.expect(5, [("fit", 4.0), *4 * [("utility", 10.0)]])
    clock.now = 4.0
    display.finished("digits | blur fit", replace(OK, seconds=4.0))
    assert "[1/5, about 20 s left]" in file.getvalue()
