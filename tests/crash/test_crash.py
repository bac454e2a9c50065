"""A few rounds of the crash campaign at the smallest sizes; `campaign.py` has more of them, and more disturbances."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from campaign import undisturbed
from disturbances import can_mount, full_disk, kill_main, told, unmount
from trial import MOST_SECONDS, Harm, Trial, compared, harm, until

ASKED = ("--method", "dp-simple", "--attack", "none", "--metric", "max-dispersion", "--limit", "60")


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: the socket of a fork server lies below it, and its path holds 107 letters."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"), ASKED, "none")


def test_a_run_that_was_killed_and_hung_up_ends_as_if_nothing_had_been(reference: Trial, short: Path) -> None:
    def disturb(trial: Trial) -> None:
        kill_main(trial, random.Random(0))
        assert not trial.left()
        told(signal=signal.SIGHUP, group=True)(trial, random.Random(1))

    assert harm(replace(reference, folder=short), disturb, reference) == Harm()


@pytest.mark.skipif(not can_mount(), reason="needs a small file system, which only root can mount, on Linux")
def test_a_run_on_a_disk_that_was_full_ends_as_if_nothing_had_been(reference: Trial, short: Path) -> None:
    trial = replace(reference, folder=short)
    try:
        assert harm(trial, lambda trial: full_disk(trial, random.Random(0)), reference) == Harm()
    finally:
        unmount(trial)


def test_workers_of_which_one_is_killed_end_as_the_run_that_nobody_disturbed(reference: Trial, short: Path) -> None:
    trial = replace(reference, folder=short)

    def disturb(trial: Trial) -> None:
        assert trial.plan().wait(MOST_SECONDS) == 0
        first, second = trial.work(), trial.work()
        for _ in until(trial, first, 60):
            pass
        first.kill()
        first.wait()
        assert second.wait(MOST_SECONDS) == 0
        assert trial.work().wait(MOST_SECONDS) == 0  # nothing is left, or what the first was at

    found = harm(trial, disturb, reference)
    assert found == Harm()
    assert found.undone == 0  # the run that followed had nothing to do


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
