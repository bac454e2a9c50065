"""Engines on other machines: stages, outcomes by content, lost tasks, refusals, and what SLURM and Ray are asked."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.runs import remote_engine
from bench.runs.engine import EngineOptions, Future, Job, Launch, Needs, Outcome
from bench.runs.outcome_record import read_outcome, write_outcome
from bench.runs.remote_engine import EngineError, RemoteEngine
from bench.runs.remote_task import DISK, LostError, Task
from bench.runs.tasks import OpenTask

MOST_SECONDS = 240.0
OK = Outcome("ok", {"x": 1}, None, None, None, 1.0)


def work(argument: object) -> object:
    return {"x": 1}


def launch(folder: Path, most: int | None = None, memory: int | None = None, **options: str) -> Launch:
    named = {name.replace("__", "."): value for name, value in options.items()}
    return Launch(Results(folder / "results"), EngineOptions(named), most, memory, lambda *progress: None)


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    def made(name: str, **more: Any) -> Job:
        return replace(Job(name, work, None, dict, 1800.0, tmp_path / "logs" / f"{name}.log"), **more)

    return made


class Fake(RemoteEngine[int]):
    """Tasks that end as a script says: with an outcome, or with an exit code and none."""

    def __init__(self, launch: Launch, script: Sequence[Outcome | int | None] = ()) -> None:
        super().__init__(launch)
        self.script = list(script)
        self.arrays: list[tuple[str, int]] = []
        self.refuses = 0
        self.cancelled: list[int] = []
        self.over: dict[int, int | None] = {}

    def _hand_over(self, needs: Needs, tasks: Sequence[Task], logs: Path) -> list[int]:
        if self.refuses and not needs.alone:
            self.refuses -= 1
            raise EngineError("too many jobs")
        self.arrays.append((needs.device + "-alone" * needs.alone, len(tasks)))
        handles = []
        for task in tasks:
            handles.append(len(self.over))
            end = self.script.pop(0) if self.script else OK
            self.over[handles[-1]] = end if not isinstance(end, Outcome) else 0
            if isinstance(end, Outcome):
                outcome = Path(task.command[-1]).with_suffix(".json")
                write_outcome(outcome, f"outcome {outcome.stem}", dict, end)
        return handles

    def _ended(self, handles: Sequence[int]) -> dict[int, int | None]:
        return {handle: self.over[handle] for handle in handles}

    def _cancel(self, handles: Sequence[int]) -> None:
        self.cancelled += handles

    def _cores(self, needs: Needs) -> int | None:
        return 1


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_engine, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(remote_engine, "GATHER_SECONDS", 0.0)
    monkeypatch.setattr(remote_engine, "RETRY_SECONDS", 0.0)


def outcomes(engine: RemoteEngine[Any]) -> Mapping[str, Future]:
    found: dict[str, Future] = {}
    while (future := engine.next()) is not None:
        found[future.job.name] = future
        engine.forget(future)
    return found


def test_each_stage_and_resource_class_is_one_array_and_a_stage_waits_for_its_inputs(
    tmp_path: Path, job: Callable[..., Job]
) -> None:
    engine = Fake(launch(tmp_path))
    fits = engine.submit([job(f"fit {name}", prepares=True) for name in "abc"])
    engine.submit([*(job(f"measure {name}") for name in "abcd"), job("timing", alone=True)], after=fits)
    engine.submit([job("gpu", device="cuda", prepares=True)])
    assert all(future.ok for future in outcomes(engine).values())
    assert engine.arrays == [("cpu", 3), ("cuda", 1), ("cpu", 4), ("cpu-alone", 1)]
    assert list((tmp_path / "results/artefacts/tasks").iterdir()) == []


def test_what_comes_after_a_job_without_a_value_takes_over_its_outcome(tmp_path: Path, job: Callable[..., Job]) -> None:
    lost = Outcome("not-applicable", None, "not-applicable", "makes no sense", "fit", 2.0)
    engine = Fake(launch(tmp_path), [lost])
    engine.submit([job("measure")], after=engine.submit([job("fit", prepares=True)]))
    found = outcomes(engine)
    assert found["measure"].outcome == lost
    assert (found["fit"].ran, found["measure"].ran) == (True, False)
    assert len(engine.arrays) == 1


def test_an_outcome_that_a_killed_run_left_is_taken_over_and_a_failed_one_is_not(
    tmp_path: Path, job: Callable[..., Job]
) -> None:
    tasks = launch(tmp_path).results.tasks
    tasks.mkdir(parents=True)
    write_outcome(tasks / "good.json", "outcome good", dict, OK)
    write_outcome(tasks / "bad.json", "outcome bad", dict, Outcome("failed", None, "died", "killed", "start", 0.0))
    write_outcome(tasks / "moved.json", "outcome other", dict, OK)
    engine = Fake(launch(tmp_path))
    engine.submit([job(name, key=name) for name in ("good", "bad", "moved")])
    assert all(future.ok for future in outcomes(engine).values())
    assert engine.arrays == [("cpu", 2)]
    assert list(tasks.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "code", "tries"),
    [
        ([1, 1], None, 3), ([1, 1, 1, 1, 1, 1], "died", 5), ([DISK], "disk", 1),
    ],
)  # fmt: skip
def test_a_lost_task_is_started_again_a_few_times_and_not_on_a_full_disk(
    script: list[int], code: str | None, tries: int, tmp_path: Path, job: Callable[..., Job]
) -> None:
    engine = Fake(launch(tmp_path), script)
    engine.submit([job("fit")])
    outcome = outcomes(engine)["fit"].outcome
    assert outcome is not None
    assert outcome.code == code
    assert len(engine.arrays) == tries


def test_an_outcome_that_is_not_visible_yet_is_waited_for_and_not_for_ever(
    tmp_path: Path, job: Callable[..., Job]
) -> None:
    engine = Fake(launch(tmp_path, visible="1"), [None, 0])
    begun = time.monotonic()
    engine.submit([job("fit")])
    assert outcomes(engine)["fit"].ok  # the third task leaves one
    assert time.monotonic() - begun > 2
    assert len(engine.arrays) == 3


def test_the_first_refusal_ends_the_command_and_a_later_one_is_tried_again_and_then_reported(
    tmp_path: Path, job: Callable[..., Job]
) -> None:
    engine = Fake(launch(tmp_path))
    engine.refuses = 1
    engine.submit([job("fit")])
    with pytest.raises(UsageError, match="too many jobs"):
        engine.next()
    engine = Fake(launch(tmp_path))
    fit = engine.submit([job("fit", prepares=True)])
    assert engine.next() is fit[0]
    engine.refuses = 2
    assert engine.submit([job("tried again")], after=fit)
    assert outcomes(engine)["tried again"].ok
    engine.refuses = 3
    refused = engine.submit([job("refused", prepares=True)])
    engine.submit([job("after it")], after=refused)
    engine.submit([job("another stage", alone=True)])
    found = outcomes(engine)
    assert {name: future.refused for name, future in found.items()} == {
        "refused": "too many jobs", "after it": "too many jobs", "another stage": None,
    }  # fmt: skip


def test_close_ends_what_the_engine_has(tmp_path: Path, job: Callable[..., Job]) -> None:
    engine = Fake(launch(tmp_path, visible="60"), [None, None])
    engine.submit([job("a"), job("b")])
    engine._release()
    engine._advance()
    engine.close()
    assert engine.cancelled == [0, 1]
    assert not list((tmp_path / "results/artefacts/tasks").glob("*.job"))


def test_a_task_does_its_job_here_and_leaves_the_outcome(tmp_path: Path, job: Callable[..., Job]) -> None:
    from made.cells import choice, place

    from bench.runs.tasks import Opened, open_task

    argument = OpenTask(choice("digits"), place(tmp_path), "cpu", 1)
    asked = job("data", work=open_task, argument=argument, answer=Opened)
    engine = Fake(launch(tmp_path))
    task = engine._task(Future(asked))
    remote_engine._write_task(task)
    assert remote_engine._command(task)() == 0
    outcome = read_outcome(task.outcome, task.kind, Opened)
    assert outcome is not None
    assert (outcome.status, outcome.value.data.name) == ("ok", "digits")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "raised"), [("os.kill(os.getpid(), 9)", LostError), ("sys.exit(143)", LostError), ("sys.exit(2)", None)]
)
def test_a_task_that_a_signal_ended_is_lost_and_one_in_error_is_not(code: str, raised: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        Task((sys.executable, "-c", f"import os, sys; {code}"), tmp_path / "log")()
    assert caught.type is (raised or RuntimeError)


# SLURM

SBATCH = """#!/bin/sh
cat "$1" >> "{folder}/said"
echo ---- >> "{folder}/said"
[ -e "{folder}/refuses" ] && {{ echo "sbatch: error: invalid account" >&2; exit 1; }}
count=$(grep -c -e ---- "{folder}/said")
echo "Submitted batch job $((100 + count))"
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands of SLURM that note what they are asked."""
    pytest.importorskip("submitit")
    commands = {
        "sbatch": SBATCH.format(folder=tmp_path),
        "srun": "#!/bin/sh\n",
        "squeue": f'#!/bin/sh\necho "$@" > "{tmp_path}/asked"\ncat "{tmp_path}/states"\n',
        "scancel": f'#!/bin/sh\necho "$@" >> "{tmp_path}/cancelled"\n',
    }
    (tmp_path / "bin").mkdir()
    for name, text in commands.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def handed_over(cluster: Path, jobs: Sequence[Job], *, memory: int | None = None, **options: str) -> Any:
    from bench.runs.slurm_engine import SlurmEngine

    engine = SlurmEngine(launch(cluster, memory=memory, **options))
    engine.submit(jobs)
    engine._release()
    engine._send()
    return engine


def scripts(cluster: Path) -> list[dict[str, str]]:
    """What every script asks of SLURM."""
    found = (cluster / "said").read_text().split("----")[:-1]
    return [dict(re.findall(r"#SBATCH --([a-z-]+)(?:=(\S+))?", each)) for each in found]


def test_slurm_gets_an_array_for_each_class_whose_tasks_are_queued_again(
    cluster: Path, job: Callable[..., Job]
) -> None:
    handed_over(cluster, [*(job(name) for name in "abc"), job("timing", alone=True)], workers="2")
    measure, timing = scripts(cluster)
    assert measure["array"] == "0-2%2"
    assert "array" not in timing
    assert ("exclusive" in timing, "exclusive" in measure) == (True, False)
    assert all("requeue" in each and each["signal"] == "USR2@90" for each in (measure, timing))
    assert "export PYTHONSAFEPATH=1" in (cluster / "said").read_text()


def test_what_a_class_needs_and_what_the_user_says_is_asked_of_slurm(cluster: Path, job: Callable[..., Job]) -> None:
    handed_over(
        cluster, [job("a", device="cuda", timeout=3600.0)], memory=16 * 2**30, account="lab", partition="gpu",
        time="1-12:00:00", cpus="4", sbatch__licenses="matlab:1", setup="module load python",
    )  # fmt: skip
    (asked,) = scripts(cluster)
    assert (asked["gres"], asked["mem"], asked["time"], asked["cpus-per-task"]) == ("gpu:1", "17GB", "2160", "4")
    assert (asked["account"], asked["partition"], asked["licenses"]) == ("lab", "gpu", "matlab:1")
    assert "module load python" in (cluster / "said").read_text()


def test_nothing_is_taken_for_lost_while_slurm_does_not_answer(cluster: Path, job: Callable[..., Job]) -> None:
    engine = handed_over(cluster, [job(name) for name in "abc"])
    handles = [sent.handle for sent in engine._sent]
    (cluster / "states").write_text("101_0\n101_2\n")
    assert engine._ended(handles) == {handles[1]: None}
    assert "--jobs=101" in (cluster / "asked").read_text()
    (cluster / "bin" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    assert engine._ended(handles) == {}
    (cluster / "bin" / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id' >&2\nexit 1\n")
    assert len(engine._ended(handles)) == 3
    engine.close()
    assert (cluster / "cancelled").read_text().split() == ["101_0", "101_1", "101_2"]


def test_what_slurm_refuses_is_reported(cluster: Path, job: Callable[..., Job]) -> None:
    (cluster / "refuses").touch()
    with pytest.raises(UsageError, match="invalid account"):
        handed_over(cluster, [job("a")])


def test_without_slurm_the_reason_is_reported(
    tmp_path: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="srun"):
        handed_over(tmp_path, [job("a")])


def test_a_task_that_is_preempted_ends_its_job_and_is_queued_again(tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    script = tmp_path / "job.py"
    script.write_text(f"""
import os, signal, time
from pathlib import Path
here = Path({str(tmp_path)!r})
if not (here / "began").exists():
    (here / "began").touch()
    signal.signal(signal.SIGTERM, lambda *rest: ((here / "stopped").touch(), os._exit(143)))
    os.kill(os.getppid(), signal.SIGUSR2)  # as SLURM does before it takes the machine
    time.sleep(600)
""")
    engine = submitit.AutoExecutor(tmp_path / "logs", cluster="local")
    engine.update_parameters(timeout_min=5)
    task = engine.submit(Task((sys.executable, str(script))))
    end = time.monotonic() + MOST_SECONDS
    while not task.done() and time.monotonic() < end:
        time.sleep(0.1)
    assert task.result() == 0
    assert (tmp_path / "stopped").exists()


# Ray


@pytest.mark.parametrize(
    ("options", "variable", "asked"),
    [({}, "", "local"), ({"address": "auto"}, "", "auto"), ({}, "ray://elsewhere", None)],
)
def test_a_ray_cluster_is_started_here_unless_one_is_named(
    options: dict[str, str], variable: str, asked: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from bench.runs.ray_engine import RayEngine

    called: list[tuple[str | None, bool]] = []
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda address, **sizes: called.append((address, "num_cpus" in sizes)))
    monkeypatch.setenv("RAY_ADDRESS", variable)
    RayEngine(launch(tmp_path, **options))
    assert called == [(asked, asked == "local")]  # Ray refuses sizes for a cluster that is there
    assert signal.getsignal(signal.SIGTERM) == before


def test_ray_does_a_job_with_what_it_needs(
    tmp_path: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from bench.runs.ray_engine import RayEngine

    asked: list[dict[str, object]] = []

    class Remote:
        def options(self, **options: object) -> Remote:
            asked.append(options)
            return self

        def remote(self, task: Task) -> object:
            return object()

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "remote", lambda work: Remote())
    monkeypatch.setattr(
        ray,
        "nodes",
        lambda: [{"Alive": alive, "Resources": {"CPU": cpus}} for alive, cpus in ((True, 8.0), (False, 64.0))],
    )
    engine = RayEngine(launch(tmp_path, memory=2**31, cpus="2"))
    engine.submit([job("a"), job("gpu", device="cuda"), job("timing", alone=True)])
    engine._release()
    engine._send()
    told = [(each["num_cpus"], each["num_gpus"], each["memory"], each["max_retries"]) for each in asked]
    assert told == [(2, 0, 3 * 2**30, 3), (2, 1, 3 * 2**30, 3), (8.0, 0, 3 * 2**30, 3)]
