"""SLURM by submitit: one array for each stage and resource class.

submitit checkpoints a task whose time ends or whose node is wanted, and queues it again. SLURM itself queues a task
again if its node is lost. `cluster=local` is submitit's own: this machine without SLURM, to try an installation.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.plugins.spec import UsageError
from bench.runs.engine import Launch, Needs, kinds
from bench.runs.remote_engine import EngineError, RemoteEngine
from bench.runs.remote_task import Task

if TYPE_CHECKING:
    from submitit import Job

NAMED = ("account", "comment", "constraint", "exclude", "gres", "nodelist", "partition", "qos")
"""Options that go to `sbatch` under their own names."""
OPTIONS = (*NAMED, "cluster", "cpus", "mem", "setup", "signal", "time", "visible", "workers")
OWN = "sbatch."
"""The prefix of any other option of `sbatch`."""
MOST_TIMEOUTS = 10
"""Times that a task is queued again after its time ended; training goes on from its last state."""
_SAFE = "export PYTHONSAFEPATH=1"
_LOCAL = "local"
_USUAL_MINUTES, _WALL = 60, 2  # of a task: wall minutes for each processor minute of its job
_SIGNAL_SECONDS, _ANSWER_SECONDS = 90, 60.0


class SlurmEngine(RemoteEngine["Job[int]"]):
    """Tasks of SLURM arrays."""

    def __init__(self, launch: Launch) -> None:
        try:
            import submitit
        except ImportError as error:
            raise UsageError("--executor slurm needs submitit: pip install 'veil-bench[slurm]'") from error
        launch.options.check(OPTIONS, OWN)
        self._submitit = submitit
        self._cluster = launch.options.text("cluster", ()) or "slurm"
        super().__init__(launch)

    def _hand_over(self, needs: Needs, tasks: Sequence[Task], logs: Path) -> list[Job[int]]:
        try:
            engine = self._submitit.AutoExecutor(
                logs / "%j", cluster=self._cluster, slurm_max_num_timeout=MOST_TIMEOUTS,
                local_max_num_timeout=MOST_TIMEOUTS,
            )  # fmt: skip
            engine.update_parameters(**self._parameters(needs, len(tasks)))
            with engine.batch():
                handles: list[Job[int]] = [engine.submit(task) for task in tasks]
        except (self._submitit.core.utils.FailedJobError, RuntimeError, OSError, ValueError) as error:
            raise EngineError(f"SLURM refuses: {error}") from error
        return handles

    def _parameters(self, needs: Needs, count: int) -> dict[str, object]:
        options, names = self._launch.options, kinds(needs)
        named = {name: options.text(name, names) for name in NAMED}
        if needs.device == "cuda" and named["gres"] is None:
            named["gres"] = "gpu:1"
        setup = options.text("setup", names)
        given: dict[str, object] = {
            "name": "veil-bench",
            "timeout_min": options.minutes("time", names) or max(_USUAL_MINUTES, _WALL * needs.minutes),
            "cpus_per_task": self._cores(needs),
            "mem_gb": options.memory(needs, names),
            "slurm_signal_delay_s": options.count("signal", names) or _SIGNAL_SECONDS,
            "slurm_array_parallelism": options.count("workers", names) or self._launch.most or count,
            "slurm_exclusive": needs.alone or None,
            "slurm_setup": [_SAFE, *([] if setup is None else [setup])],
            "slurm_additional_parameters": {"requeue": True, **options.own(OWN, names)},
            **{f"slurm_{name}": value for name, value in named.items()},
        }
        return {name: value for name, value in given.items() if value is not None}

    def _cores(self, needs: Needs) -> int | None:
        return self._launch.options.count("cpus", kinds(needs)) or (None if needs.alone else 1)

    def _ended(self, handles: Sequence[Job[int]]) -> dict[Job[int], int | None]:
        if self._cluster == _LOCAL:
            return {handle: None for handle in handles if handle.done()}
        living = _living(handles)
        return {} if living is None else {handle: None for handle in handles if handle.job_id not in living}

    def _cancel(self, handles: Sequence[Job[int]]) -> None:
        if self._cluster == _LOCAL:
            for handle in handles:
                handle.cancel(check=False)
        elif handles:
            subprocess.run(["scancel", *(handle.job_id for handle in handles)], capture_output=True, check=False)


def _living(handles: Sequence[Job[int]]) -> set[str] | None:
    """Tasks that SLURM still knows, by `job_id`; None without an answer.

    Asked of `squeue`, for many clusters keep no accounts that `sacct` could read.
    """
    arrays = dict.fromkeys(handle.job_id.partition("_")[0] for handle in handles)
    if not arrays:
        return set()
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={','.join(arrays)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode and "Invalid job id" not in done.stderr:  # so it calls those that ended some time ago
        return None
    return set(done.stdout.split())
