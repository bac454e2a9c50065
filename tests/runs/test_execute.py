from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path

from bench.progress import report, stage
from bench.runs.workers import Job, Outcome, Workers
from bench.types import NotApplicable

MEMORY = 8 * 2**30


def answer(argument: object) -> object:
    stage("think")
    report("think", 1, 2)
    return argument


def refuse(argument: object) -> object:
    raise NotApplicable("makes no sense")


def nap(argument: object) -> object:
    time.sleep(float(str(argument)))
    return time.time()


def run(tmp_path: Path, *jobs: tuple[str, object, object, bool], workers: int = 2) -> dict[str, Outcome]:
    found = {}
    said: list[tuple[str, str, int, int]] = []
    with closing(Workers(jobs=workers, memory=MEMORY, notify=lambda *told: said.append(told))) as pool:
        for name, work, argument, alone in jobs:
            pool.submit(Job(name, work, argument, 3600, tmp_path / f"{name}.log", alone))  # type: ignore[arg-type]
        while (finished := pool.next()) is not None:
            found[finished[0].name] = finished[1]
    found["said"] = said  # type: ignore[assignment]
    return found


def test_values_progress_and_reasons_come_back(tmp_path: Path) -> None:
    found = run(tmp_path, ("a", answer, {"x": 1}, False), ("b", refuse, None, False))
    assert (found["a"].status, found["a"].value) == ("ok", {"x": 1})
    assert (found["b"].status, found["b"].reason) == ("not-applicable", "makes no sense")
    assert ("a", "think", 1, 2) in found["said"]  # type: ignore[operator]


def test_a_job_alone_starts_when_the_others_are_done(tmp_path: Path) -> None:
    found = run(tmp_path, ("alone", nap, 0, True), ("a", nap, 0.5, False), ("b", nap, 0.5, False))
    assert float(str(found["alone"].value)) >= max(float(str(found[name].value)) for name in "ab")


def test_leaving_the_block_ends_what_runs(tmp_path: Path) -> None:
    with closing(Workers(jobs=1, memory=MEMORY, notify=lambda *told: None)) as pool:
        pool.submit(Job("long", nap, 1000, 2000, tmp_path / "long.log"))
        pool.submit(Job("never", nap, 1000, 2000, tmp_path / "never.log"))
        pool._start()
        (running,) = pool._running
        assert running.process.is_alive()
    assert running.process.exitcode == -signal.SIGKILL  # and not 0, as after its thousand seconds
