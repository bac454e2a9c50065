"""Long work says how far it is: a bar on a terminal, a line every so often elsewhere, nothing where it is short."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from bench.cli import terminal
from bench.cli.terminal import waiting
from bench.progress import report, stage

DEADLINE = 30.0  # seconds; what is waited for takes hundredths of one


def console(*, is_terminal: bool) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    interactive = is_terminal or None
    return Console(file=file, force_terminal=is_terminal, force_interactive=interactive, width=100), file


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(terminal, "EVERY_SECONDS", 0.01)


@pytest.mark.usefixtures("often")
def test_without_a_terminal_lines_say_the_latest_stage_and_its_steps() -> None:
    to, file = console(is_terminal=False)
    with waiting("read the records", console=to):
        until(lambda: "  read the records, 0 s so far\n" in file.getvalue())
        report("write the pages", 3, 193)
        until(lambda: "  write the pages 3/193, " in file.getvalue())
        stage("hash [the] files")
        until(lambda: "  hash [the] files, " in file.getvalue())
    said = file.getvalue()
    time.sleep(0.05)
    assert file.getvalue() == said
    assert "\x1b" not in said


def test_short_work_says_nothing_without_a_terminal() -> None:
    to, file = console(is_terminal=False)
    with waiting("read the records", console=to):
        report("write the pages", 3, 193)
    assert file.getvalue() == ""


def test_on_a_terminal_a_bar_shows_the_stage_and_goes_at_the_end() -> None:
    to, file = console(is_terminal=True)
    with waiting("read the records", console=to):
        report("write the [pages]", 3, 193)
        until(lambda: "write the [pages]" in file.getvalue() and "3/193" in file.getvalue())
    assert file.getvalue().endswith("\x1b[2K")  # the line of the bar is cleared


@pytest.mark.usefixtures("often")
def test_words_of_the_work_stay_out_where_the_block_alone_speaks() -> None:
    to, file = console(is_terminal=False)
    with waiting("open the data", messages=False, console=to) as hear:
        stage("patient 7")
        hear("release", 0, 0)
        until(lambda: "release, " in file.getvalue())
    assert "patient" not in file.getvalue()


@pytest.mark.usefixtures("often")
def test_an_error_ends_the_lines_and_is_raised() -> None:
    to, file = console(is_terminal=False)

    def fail() -> None:
        with waiting("read the records", console=to):
            until(lambda: bool(file.getvalue()))
            raise ValueError("no records")

    with pytest.raises(ValueError, match="no records"):
        fail()
    said = file.getvalue()
    time.sleep(0.05)
    assert file.getvalue() == said
