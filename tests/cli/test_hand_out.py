"""A planned run handed to an executor: workers are started again where they were lost, and not for ever."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.results.queue import Queue, job_file
from bench.runs.executor import EXECUTORS, Started, Wanted, WorkerCounts
from bench.runs.planned_run import read_run

ASKED = ("run", "--method", "identity", "--attack", "none", "--metric", "max-dispersion", "--dataset", "digits",
         "--preset", "smoke", "--device", "cpu", "--isolation", "none", "--no-site")  # fmt: skip


class Fake:
    """Workers that do so many jobs at each start, as a script says, and are gone."""

    script: list[int]
    started: list[Started]
    stopped = 0

    def __init__(self, started: Started) -> None:
        started.options.check(["partition"])
        self.started.append(started)
        self._queue = Queue(started.results / "artefacts" / "queue")

    def start(self, wanted: Sequence[Wanted]) -> None:
        (plan,) = self._queue.plans()
        left = [
            each.job for each in read_run(self._queue, plan).jobs if job_file(each.job) not in self._queue.ended(plan)
        ]
        assert sum(each.jobs for each in wanted) == len(left)
        for job in left[: self.script.pop(0)]:
            self._queue.end(plan, job_file(job), "done", {})

    def counts(self) -> WorkerCounts:
        return WorkerCounts()

    def stop(self) -> None:
        type(self).stopped += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setattr("bench.runs.executor.EXECUTORS", {**EXECUTORS, "slurm": f"{__name__}:Fake"})
    made: type[Fake] = type("Fake", (Fake,), {"script": [], "started": [], "stopped": 0})
    monkeypatch.setattr(f"{__name__}.Fake", made)
    return made


def test_workers_are_started_again_while_something_comes_of_it(fake: type[Fake], tmp_path: Path, capsys: Any) -> None:
    fake.script[:] = [1, 0, 1, 1]
    assert main([*ASKED, "--results", str(tmp_path), "--executor", "slurm", "--engine", "partition=gpu"]) == 0
    assert (fake.script, fake.stopped) == ([], 1)
    assert fake.started[0].options.values == {"partition": "gpu"}
    assert "3 jobs for cpu-" in capsys.readouterr().out.replace("planned: ", "")


def test_workers_that_never_do_anything_are_given_up(fake: type[Fake], tmp_path: Path, capsys: Any) -> None:
    logs = tmp_path / "artefacts/logs/workers/7_0"
    logs.mkdir(parents=True)
    (logs / "7_0_log.err").write_text("bench: No space left on device\nRuntimeError: bench worker ended with 2\n")
    (logs / "7_0_submitted.pkl").write_bytes(b"bench: none of it")
    fake.script[:] = [1, 0, 0, 9]
    assert main([*ASKED, "--results", str(tmp_path), "--executor", "slurm"]) == 1
    assert (fake.script, fake.stopped) == ([9], 1)
    assert "7_0_log.err): No space left on device" in capsys.readouterr().err


def test_workers_go_on_where_the_folder_is_out_of_reach_for_who_waits_for_them(
    fake: type[Fake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    living, stale = iter([True, True, True]), iter([True, True])
    monkeypatch.setattr("bench.cli.hand_out._LOOK_SECONDS", 0.0)
    monkeypatch.setattr(fake, "counts", lambda self: WorkerCounts(running=int(next(living, False))))
    true = Queue.ended

    def ended(queue: Queue, plan: str) -> set[str]:
        if fake.started and fake.script == [] and next(stale, False):
            raise OSError(errno.ESTALE, "Stale file handle")
        return true(queue, plan)

    monkeypatch.setattr(Queue, "ended", ended)
    fake.script[:] = [3]
    assert main([*ASKED, "--results", str(tmp_path), "--executor", "slurm"]) == 0
    assert (fake.stopped, capsys.readouterr().err.count("out of reach")) == (1, 1)


def test_what_is_detached_is_left_to_itself_and_a_configuration_speaks_to_the_engine(
    fake: type[Fake], tmp_path: Path
) -> None:
    (tmp_path / "run.yaml").write_text("preset: smoke\nengine:\n  partition: old\n")
    fake.script[:] = [0]
    words = [
        "--results",
        str(tmp_path / "r"),
        "--executor",
        "slurm",
        "--detach",
        "--config",
        str(tmp_path / "run.yaml"),
    ]
    assert main([*ASKED, *words]) == 0
    assert (fake.stopped, fake.started[0].detached) == (0, True)
    assert fake.started[0].options.values == {"partition": "old"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "partition=gpu"], "speak of executors"),
        (["--executor", "none", "--detach"], "speak of executors"),
        (["--executor", "slurm", "--engine", "partiton=gpu"], "did you mean 'partition'"),
        (["--executor", "slurm", "--engine", "partition"], "NAME=VALUE"),
        (["--executor", "slurm", "--sign", "key"], "give --sign to `bench worker`"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], said: str, fake: type[Fake], tmp_path: Path, capsys: Any
) -> None:
    assert main([*ASKED, "--results", str(tmp_path / "r"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r" / "cells").exists() or fake.script == []
