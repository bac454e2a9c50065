"""Workers on SLURM: what is asked of `sbatch`, and what becomes of a task that fails or runs out of time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.plugins.spec import UsageError
from bench.runs.engine_options import EngineOptions
from bench.runs.executor import Started, Wanted, WorkerCounts
from bench.runs.needs import Needs

submitit = pytest.importorskip("submitit")
from bench.runs.slurm import Slurm  # noqa: E402
from bench.runs.slurm_task import Task  # noqa: E402

SBATCH = """#!/bin/sh
cat "$1" >> "{folder}/said"
echo ---- >> "{folder}/said"
[ -e "{folder}/refuses" ] && {{ echo "sbatch: error: invalid account" >&2; exit 1; }}
count=$(grep -c -e ---- "{folder}/said")
[ "$count" = 3 ] && [ -e "{folder}/refuses-the-third" ] && {{ echo "sbatch: error: too many" >&2; exit 1; }}
echo "Submitted batch job $((100 + count))"
"""
MOST_SECONDS = 120.0


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands of SLURM that note what they are asked."""
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


def started(folder: Path, most: int | None = None, **options: str) -> Started:
    named = {name.replace("__", "."): value for name, value in options.items()}
    return Started(folder / "results", (Path("/data"),), folder / "logs", most, True, EngineOptions(named))


CPU, TIMED = Needs("cpu", False, 30, None), Needs("cpu", True, 30, None)
GPU = Needs("cuda", False, 60, 16 * 2**30)


def scripts(cluster: Path) -> list[dict[str, str]]:
    """What every script asks of SLURM."""
    found = (cluster / "said").read_text().split("----")[:-1]
    return [dict(re.findall(r"#SBATCH --([a-z-]+)(?:=(\S+))?", each)) for each in found]


def commands(cluster: Path) -> list[str]:
    """The workers of every array, as they were handed over."""
    loaded = [submitit.core.utils.DelayedSubmission.load(path) for path in sorted(cluster.glob("logs/*/*.pkl"))]
    return list(dict.fromkeys(" ".join(each.function.command[4:]) for each in loaded))


def test_arrays_by_resource_class_follow_one_another(cluster: Path) -> None:
    Slurm(started(cluster, most=4)).start([Wanted(CPU, 20, 3), Wanted(TIMED, 2, 0)])
    prepare, measure, timed = scripts(cluster)
    assert (prepare["array"], measure["array"]) == ("0-2%3", "0-3%4")
    assert "array" not in timed  # one worker holds its machine alone
    assert "exclusive" in timed
    assert "exclusive" not in measure
    assert "dependency" not in prepare
    assert (measure["dependency"], timed["dependency"]) == ("afterany:101", "afterany:101:102")
    assert all("requeue" in each and each["signal"] == "USR2@90" for each in (prepare, measure, timed))
    first, second, third = commands(cluster)
    assert "--only cpu-30m " in first
    assert ("--prepare" in first, "--prepare" in second, "--prepare" in third) == (True, False, False)
    assert "--only cpu-alone-30m" in third
    assert "--alone" in third
    assert all("--data-root /data" in each for each in (first, second, third))


def test_what_a_class_needs_and_what_the_user_says_is_asked_for(cluster: Path) -> None:
    options = started(
        cluster, account="lab", partition="gpu", prepare__partition="short", time="1-12:00:00", cpus="4",
        workers="5", sbatch__licenses="matlab:1", setup="module load python",
    )  # fmt: skip
    Slurm(options).start([Wanted(GPU, 50, 2)])
    prepare, measure = scripts(cluster)
    assert (prepare["partition"], measure["partition"]) == ("short", "gpu")
    assert measure["account"] == "lab"
    assert (measure["gres"], measure["mem"], measure["time"], measure["cpus-per-task"]) == (
        "gpu:1",
        "17GB",
        "2160",
        "4",
    )
    assert measure["array"] == "0-4%5"
    assert measure["licenses"] == "matlab:1"
    assert "module load python" in (cluster / "said").read_text()
    (command,) = {each.replace("--prepare ", "") for each in commands(cluster)}
    assert "--device cuda" in command
    assert "--cores 4" in command
    assert "--limit-minutes 2157.5" in command  # it stops before SLURM stops it


def test_memory_that_slurm_is_asked_for_is_what_a_job_may_hold(cluster: Path) -> None:
    Slurm(started(cluster, mem="8G")).start([Wanted(CPU, 2, 0)])
    assert scripts(cluster)[0]["mem"] == "8GB"
    assert "--memory 7.0" in commands(cluster)[0]


def test_how_workers_stand_is_asked_of_the_queue(cluster: Path) -> None:
    engine = Slurm(started(cluster))
    engine.start([Wanted(CPU, 4, 1)])
    (cluster / "states").write_text("PD\nPD\nR\nCG\n")
    assert engine.counts() == WorkerCounts(2, 2, 1)
    assert "--jobs=101,102" in (cluster / "asked").read_text()
    (cluster / "bin" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    assert engine.counts() == WorkerCounts(2, 2, 1)  # nobody is taken for lost because the controller is away
    (cluster / "bin" / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id' >&2\nexit 1\n")
    assert engine.counts() == WorkerCounts(0, 0, 5)
    engine.stop()
    assert (cluster / "cancelled").read_text().split() == ["101", "102"]


def test_what_was_just_asked_for_waits_while_slurm_does_not_answer(cluster: Path) -> None:
    (cluster / "bin" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    engine = Slurm(started(cluster))
    engine.start([Wanted(CPU, 4, 1)])
    assert engine.counts() == WorkerCounts(5, 0, 0)  # or all would be taken for lost, and asked for once more
    engine.start([Wanted(CPU, 2, 0)])
    assert engine.counts() == WorkerCounts(7, 0, 0)
    (cluster / "refuses").touch()
    with pytest.raises(UsageError, match="invalid account"):
        engine.start([Wanted(CPU, 3, 0)])
    assert engine.counts() == WorkerCounts(7, 0, 0)


def test_what_slurm_refuses_is_said_and_what_it_took_before_is_taken_back(cluster: Path) -> None:
    (cluster / "refuses-the-third").touch()
    with pytest.raises(UsageError, match="too many"):
        Slurm(started(cluster)).start([Wanted(CPU, 4, 1), Wanted(TIMED, 1, 0)])
    assert (cluster / "cancelled").read_text().split() == ["101", "102"]
    (cluster / "refuses").touch()
    with pytest.raises(UsageError, match="invalid account"):
        Slurm(started(cluster)).start([Wanted(CPU, 4, 0)])


def test_without_slurm_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="srun"):
        Slurm(started(tmp_path)).start([Wanted(CPU, 1, 0)])


def ended(task: submitit.Job[int]) -> submitit.Job[int]:
    end = time.monotonic() + MOST_SECONDS
    while not task.done() and time.monotonic() < end:
        time.sleep(0.1)
    assert task.done()
    return task


def script(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "worker.py").write_text(
        f"import os, sys, time\nfrom pathlib import Path\nhere = Path({str(folder)!r})\n{text}"
    )
    return (sys.executable, str(folder / "worker.py"))


def test_a_task_tells_how_its_worker_ended(tmp_path: Path) -> None:
    engine = submitit.AutoExecutor(tmp_path / "logs", cluster="local")
    engine.update_parameters(timeout_min=5)
    good, bad = (engine.submit(Task((sys.executable, "-c", text), 60.0)) for text in ("", "import sys; sys.exit(2)"))
    assert ended(good).result() == 0
    assert "bench worker ended with 2" in str(ended(bad).exception())


def test_a_task_whose_time_is_over_is_queued_again_and_not_for_ever(tmp_path: Path) -> None:
    command = script(tmp_path, "(here / f'life-{len(list(here.glob(\"life-*\")))}').touch()")
    engine = submitit.AutoExecutor(tmp_path / "logs", cluster="local", local_max_num_timeout=1)
    engine.update_parameters(timeout_min=5)
    assert "timed-out too many times" in str(ended(engine.submit(Task(command, 0.0))).exception())
    assert len(list(tmp_path.glob("life-*"))) == 2


def test_a_task_that_is_preempted_has_its_worker_give_back_its_job_and_is_queued_again(tmp_path: Path) -> None:
    command = script(tmp_path, """
import signal
if not (here / "began").exists():
    (here / "began").touch()
    signal.signal(signal.SIGTERM, lambda *rest: ((here / "gave-back").touch(), os._exit(143)))
    os.kill(os.getppid(), signal.SIGUSR2)  # as SLURM does before it takes the machine
    time.sleep(600)
""")  # fmt: skip
    engine = submitit.AutoExecutor(tmp_path / "logs", cluster="local")
    engine.update_parameters(timeout_min=5)
    assert ended(engine.submit(Task(command, 600.0))).result() == 0
    assert (tmp_path / "gave-back").exists()


def test_a_worker_is_told_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    command = script(tmp_path, """
import signal
signal.signal(signal.SIGTERM, lambda *rest: ((here / "told").touch(), os._exit(0)))
(here / "began").touch()
time.sleep(600)
""")  # fmt: skip
    starter = f"from bench.runs.slurm_task import Task; Task({command!r}, 60.0)()"
    parent = subprocess.Popen([sys.executable, "-c", starter])
    wait_for(tmp_path / "began")
    parent.kill()
    parent.wait()
    wait_for(tmp_path / "told")


def wait_for(path: Path) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert path.exists()
