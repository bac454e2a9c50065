"""Power and clock of a card, from a stand-in for NVIDIA's tool."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch

from bench.workbench.timing import settings, watched

CUDA = torch.device("cuda", 0)
TOOL = """#!/bin/sh
echo "$@" >> "{folder}/asked"
case "$*" in
*power.limit*) echo "550.1, 300.00, 1980" ;;
*) {said} ;;
esac
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(TOOL.format(folder=folder, said=said))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    settings.cache_clear()


def test_power_and_clock_are_the_means_of_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\\n".join(("100.0, 1000", "[N/A], 1000", "300.0, 1500", "2"))
    install(tmp_path, monkeypatch, f"printf '{lines}'; touch {tmp_path}/done; exec sleep 60")
    with watched(CUDA) as ran:
        while not (tmp_path / "done").exists():
            time.sleep(0.01)
        assert ran.watts is None
    assert (ran.watts, ran.megahertz, ran.seen) == (200.0, 1250.0, 2)
    assert "--query-gpu=power.draw,clocks.sm" in (tmp_path / "asked").read_text()


def test_settings_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "exit 1")
    assert settings(CUDA) == {"driver": "550.1", "power_limit_w": "300.00", "highest_clock_mhz": "1980"}
    settings(CUDA)
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


@pytest.mark.parametrize("said", ["exit 9", "exec sleep 60"])
def test_a_tool_that_says_nothing_leaves_power_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    install(tmp_path, monkeypatch, said)
    with watched(CUDA) as ran:
        pass
    assert ran.watts is None


def test_without_the_tool_or_a_card_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings.cache_clear()
    assert settings(CUDA) == {}
    with watched(CUDA) as ran, watched(torch.device("cpu")) as idle:
        pass
    assert ran.watts is idle.watts is None


def test_an_error_within_the_block_ends_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def work() -> None:
        with watched(CUDA):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
                time.sleep(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
