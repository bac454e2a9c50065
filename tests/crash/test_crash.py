"""A few rounds of the crash campaign at the smallest sizes; `campaign.py` has more of them, and more disturbances.

Undisturbed runs are done in this process, which has everything imported: a process more is seconds more.
"""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from disturbances import can_mount, kill_main, small_disk, told, unmount
from trial import MOST_SECONDS, Harm, Trial, compared

from bench.cli import main

ASKED = ("--method", "dp-simple", "--attack", "none", "--metric", "max-dispersion", "--limit", "60")


def run(trial: Trial, *more: str) -> int:
    """`bench run` of a trial, in this process."""
    return _here(trial, [*trial.words(), *more])


def _here(trial: Trial, words: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in trial.variables().items():
            patch.setenv(name, value)
        return main([*words, "--results", str(trial.results)])


@pytest.fixture
def short() -> Iterator[Trial]:
    """A folder with a short name: the socket of a fork server lies below it, and its path holds 107 letters."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        trial = Trial(Path(folder), ASKED)
        try:
            yield trial
        finally:
            unmount(trial)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    trial = Trial(tmp_path_factory.mktemp("undisturbed"), ASKED)
    trial.make()
    assert run(trial, "--keep-releases") == 0
    return trial


def said(trial: Trial) -> str:
    return (trial.folder / "said").read_text()


def test_a_run_that_was_killed_hung_up_and_out_of_space_ends_as_if_nothing_had_been(
    reference: Trial, short: Trial
) -> None:
    kill_main(short, random.Random(0))
    assert not short.left()
    told(signal=signal.SIGHUP, group=True)(short, random.Random(1))
    left = short.left()
    before = short.complete()
    assert run(short) == 0
    assert compared(short, reference, finished=before, processes=left) == Harm()


@pytest.mark.skipif(not can_mount(), reason="needs a small file system, which only root can mount, on Linux")
def test_a_run_on_a_disk_that_was_full_ends_as_if_nothing_had_been(reference: Trial, short: Trial) -> None:
    with small_disk(short, "results", 48):
        assert short.start().wait(MOST_SECONDS) != 0
    left = short.left()
    assert said(short).count(" is full; free some room") == 1
    before = short.complete()
    assert run(short) == 0
    assert compared(short, reference, finished=before, processes=left) == Harm()


def test_two_commands_on_one_folder_share_the_work(reference: Trial, short: Trial) -> None:
    first = short.start()
    assert run(short) == 0  # beside the first: cells that it works on are left to it, and then looked at again
    assert first.wait(MOST_SECONDS) == 0
    assert compared(short, reference, finished={}, processes=short.left()) == Harm()


def test_the_comparison_sees_every_kind_of_harm(reference: Trial, tmp_path: Path) -> None:
    spoilt = replace(reference, folder=tmp_path / "spoilt")
    shutil.copytree(reference.folder, spoilt.folder)
    (name, text), (artefact, tensors) = *reference.records().items(), next(iter(reference.artefacts().items()))
    (spoilt.results / "cells" / name).write_bytes(text.replace(b'"better": "higher"', b'"better": "lower"'))
    (spoilt.results / "artefacts" / artefact).write_bytes(tensors + b" ")
    (spoilt.results / "cells" / ".left").touch()
    found = compared(spoilt, reference, finished={"gone.json": b""}, processes=1)
    assert (found.lost, found.differ, found.processes) == (("gone.json",), (name,), 1)
    assert artefact in found.corrupt
    assert any(name in said for said in found.corrupt)
    assert "results/cells/.left" in found.files
