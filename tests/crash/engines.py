"""Campaigns on engines: while a run's jobs are done by an engine, one process after the other is killed.

Killed at random: the planner (the run's own process), a worker, a process of a job, the task that an engine runs a job
by, a node with all that it does. Killed planners are started again, killed nodes come back.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import psutil
from trial import MOST_SECONDS, Trial

NODES, STARTS, START_SECONDS = 3, 5, 60.0
VISIBLE = ("--engine", "visible=5")  # the folder is on this machine


class Cluster(Protocol):
    """Nodes that workers of a trial run on, and how its run is told of them."""

    words: tuple[str, ...]

    def __init__(self, trial: Trial) -> None: ...

    def nodes(self) -> list[str]:
        """Names of the living nodes."""

    def kill(self, node: str) -> None:
        """End a node with all that it does, as where its power fails; another one takes its place."""

    def quiet(self) -> None:
        """Take back what waits, once a run is over."""

    def close(self) -> None:
        """End all of it."""


def kill_tree(process: psutil.Process) -> None:
    """kill -9 of a process and of all below it, as if a machine is lost: no process cleans up for another."""
    found = [process]
    with contextlib.suppress(psutil.Error):
        found += process.children(recursive=True)
    for each in found:  # stopped first: none sees another die
        with contextlib.suppress(psutil.Error):
            each.suspend()
    for each in found:
        with contextlib.suppress(psutil.Error):
            each.kill()


class Local:
    """This machine alone, without nodes."""

    words: tuple[str, ...] = ()

    def __init__(self, trial: Trial) -> None:
        pass

    def nodes(self) -> list[str]:
        return []

    def kill(self, node: str) -> None:
        raise AssertionError("there are none")

    def quiet(self) -> None:
        pass

    def close(self) -> None:
        pass


class SlurmNodes:
    """A SLURM that runs here: `slurmd -N NAME` for every node that `sinfo` names."""

    words: tuple[str, ...] = ("--executor", "slurm", "--engine", "time=30", "--engine", "signal=30", *VISIBLE)

    def __init__(self, trial: Trial) -> None:
        self._known = sorted(subprocess.check_output(["sinfo", "-hN", "-o", "%N"], text=True).split())

    def nodes(self) -> list[str]:
        return self._known

    def kill(self, node: str) -> None:
        for process in psutil.process_iter(["cmdline", "name"]):
            words = process.info["cmdline"] or []
            if process.info["name"] == "slurmd" and words[-1:] == [node]:
                process.kill()
        for process in psutil.process_iter(["name"]):
            if process.info["name"] == "slurmstepd":
                with contextlib.suppress(psutil.Error):
                    if any(_on(each, node) for each in process.children()):
                        kill_tree(process)
        subprocess.run(["slurmd", "-N", node], check=True)

    def quiet(self) -> None:
        subprocess.run(["scancel", "--name=veil-bench"], check=False)
        end = time.monotonic() + MOST_SECONDS
        while subprocess.check_output(["squeue", "-h", "--name=veil-bench"]) and time.monotonic() < end:
            time.sleep(1)

    def close(self) -> None:
        self.quiet()


def _on(process: psutil.Process, node: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.environ().get("SLURMD_NODENAME") == node
    return False


class RayNodes:
    """A Ray cluster of several nodes on this machine; the planner is a driver of its own.

    Workers get their variables from the node that they run on, and not from the planner.
    """

    def __init__(self, trial: Trial) -> None:
        trial.make()
        os.environ |= {
            **trial.variables(),
            "RAY_worker_niceness": "0",
            "RAY_TMPDIR": "/tmp",
            "RAY_AUTH_MODE": "disabled",
        }
        from ray.cluster_utils import Cluster as RayCluster

        head = {"num_cpus": 0, "object_store_memory": 80 * 2**20, "include_dashboard": False}
        self._cluster = _retried("head", lambda: RayCluster(initialize_head=True, head_node_args=head))
        self._nodes = [self._node() for _ in range(NODES)]
        self.words: tuple[str, ...] = ("--executor", "ray", "--engine", f"address={self._cluster.address}", *VISIBLE)

    def _node(self) -> object:
        return _retried("node", lambda: self._cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20))

    def nodes(self) -> list[str]:
        return [str(number) for number in range(len(self._nodes))]

    def kill(self, node: str) -> None:
        lost = self._nodes.pop(int(node))
        for info in lost.all_processes.get("raylet", []):  # type: ignore[attr-defined]
            kill_tree(psutil.Process(info.process.pid))
        self._cluster.remove_node(lost, allow_graceful=False)
        self._nodes.append(self._node())

    def quiet(self) -> None:
        pass

    def close(self) -> None:
        self._cluster.shutdown()


def _retried(what: str, start: Callable[[], Any]) -> Any:
    """The started part of a Ray cluster; Ray fixes 30 s for a start, and a busy machine may take longer."""
    for number in range(1, STARTS):
        try:
            return start()
        except Exception as error:  # Ray raises the bare class
            print(
                f"ray: start {number} of a {what} failed and is repeated: {error!s:.120}", file=sys.stderr, flush=True
            )
    return start()


ENGINES: Mapping[str, type[Cluster]] = {"local": Local, "slurm": SlurmNodes, "ray": RayNodes}


def disturbed(
    trial: Trial, engine: type[Cluster], chance: random.Random, kills: int, pace: float, seen: dict[str, bytes]
) -> Counter[str]:
    """Have a run done by a cluster on which so many things are killed; what was killed how often.

    Args:
        trial: The run.
        engine: Where its workers run.
        chance: Of victims and moments.
        kills: At most; fewer where the run is through before.
        pace: So many seconds lie between two of them at most: too often, and nothing is ever done.
        seen: Takes the records that were complete at some moment: they are to stay as they were.
    """
    cluster = engine(trial)
    try:
        killed = _killed(trial, cluster, chance, kills, pace, seen)
        cluster.quiet()
        trial.start(*cluster.words).wait(2 * MOST_SECONDS)  # what is left, if anything
    finally:
        cluster.close()
    return +killed


def _killed(
    trial: Trial, cluster: Cluster, chance: random.Random, kills: int, pace: float, seen: dict[str, bytes]
) -> Counter[str]:
    """Kill while planners are there; those that are left at the end, too."""
    killed: Counter[str] = Counter()
    planners = [trial.start(*cluster.words)]
    end = time.monotonic() + 2 * MOST_SECONDS
    while time.monotonic() < end and any(planner.poll() is None for planner in planners):
        with contextlib.suppress(subprocess.TimeoutExpired):
            planners[-1].wait(chance.uniform(0, pace))
        seen.update({name: text for name, text in trial.complete().items() if name not in seen})
        if killed.total() < kills:
            what = _kill(trial, cluster, planners, chance)
            killed[what] += what != ""
        elif all(planner.poll() is not None for planner in planners):
            break
    for planner in planners:
        if planner.poll() is None:
            planner.kill()
            planner.wait()
    return killed


def _kill(trial: Trial, cluster: Cluster, planners: list[subprocess.Popen[bytes]], chance: random.Random) -> str:
    """Kill something; in a word, what. Empty where nothing was there to kill."""
    draw = chance.random()
    if draw < 0.15:
        planners[-1].kill()
        planners[-1].wait()
        planners.append(trial.start(*cluster.words))
        return "planner"
    if draw < 0.2 and sum(planner.poll() is None for planner in planners) == 1:  # two planners at once
        planners.insert(0, trial.start(*cluster.words))
        return ""
    if draw < 0.4 and cluster.nodes():
        cluster.kill(chance.choice(cluster.nodes()))
        return "node"
    tasks, below = _tasks(trial), _below(trial, planners)
    if draw < 0.6 and tasks:
        kill_tree(chance.choice(tasks))
        return "task, with its job"
    if draw < 0.7 and tasks:
        chance.choice(tasks).send_signal(signal.SIGTERM)
        return "task, by TERM"
    victims = below or [each for task in tasks for each in _children(task)]
    if not victims:
        return ""
    with contextlib.suppress(psutil.Error):
        chance.choice(victims).send_signal(signal.SIGKILL)
        return "worker, or a process of its job"
    return ""


def _tasks(trial: Trial) -> list[psutil.Process]:
    """The processes that do jobs for an engine."""
    found = []
    for process in trial.processes():
        with contextlib.suppress(psutil.Error):
            if "bench.runs.remote_task" in process.cmdline():
                found.append(process)
    return found


def _below(trial: Trial, planners: Sequence[subprocess.Popen[bytes]]) -> list[psutil.Process]:
    """What planners on this machine started: fork servers, supervisors, workers and what those started."""
    return [each for planner in planners if planner.poll() is None for each in _children(psutil.Process(planner.pid))]


def _children(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return list(process.children(recursive=True))
    return []


def have(name: str) -> bool:
    """True if an engine is here; a SLURM that is installed and does not run is started."""
    if name == "slurm":
        return _slurm_answers() or _slurm_starts()
    return name != "ray" or importlib.util.find_spec("ray") is not None


def _slurm_answers() -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(["sinfo"], capture_output=True, check=False, timeout=30).returncode == 0
    return False


def _slurm_starts() -> bool:
    """Start the daemons of this machine's own configuration; True if the controller answers soon."""
    if shutil.which("slurmctld") is None or os.geteuid():
        return False
    print("slurm: its daemons do not run, and are started", file=sys.stderr, flush=True)
    subprocess.run(["service", "munge", "start"], capture_output=True, check=False)
    subprocess.run(["slurmctld"], check=False)
    end = time.monotonic() + START_SECONDS
    while not _slurm_answers():
        if time.monotonic() > end:
            return False
        time.sleep(1)
    for node in subprocess.check_output(["sinfo", "-hN", "-o", "%N"], text=True).split():
        subprocess.run(["slurmd", "-N", node], check=False)
    return True
