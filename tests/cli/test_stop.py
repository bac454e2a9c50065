"""TERM and HUP stop a command as Ctrl-C does, unless it was started to ignore them."""

from __future__ import annotations

import os
import signal

import pytest

from bench import cli
from bench.cli.stop import Stopped, heeded


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_command_and_the_exit_code_says_which(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    monkeypatch.setattr("bench.shadowing.guard", lambda: os.kill(os.getpid(), number))
    assert cli.main(["list"]) == 128 + number
    assert "finished results are kept" in capsys.readouterr().err
    assert signal.getsignal(number) == before


def test_a_second_signal_does_not_cut_the_ending_short() -> None:
    ended = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            ended.append("workers")

    with heeded(), pytest.raises(Stopped):
        work()
    assert ended == ["workers"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with heeded():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
