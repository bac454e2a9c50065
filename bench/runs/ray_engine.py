"""Ray: a task for each job, with the resources that it needs.

Ray starts a task again whose process or node is lost. A timing takes all processors of the largest node, so that
nothing else of Ray's runs there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bench.disk import process_id
from bench.plugins.spec import UsageError
from bench.runs.engine import Launch, Needs, kinds
from bench.runs.remote_engine import EngineError, RemoteEngine
from bench.runs.remote_task import LostError, Task
from bench.workbench.machine import cores

if TYPE_CHECKING:
    from ray import ObjectRef

OPTIONS = ("address", "cpus", "gpus", "mem", "retries", "visible", "workers")
RETRIES = 3
_STORE_BYTES = 100 * 2**20
_ERROR = 1
_SAFE = {"PYTHONSAFEPATH": "1"}


class RayEngine(RemoteEngine["ObjectRef[int]"]):
    """Tasks of a Ray cluster."""

    def __init__(self, launch: Launch) -> None:
        try:
            import ray
        except ImportError as error:
            raise UsageError("--executor ray needs Ray: pip install 'veil-bench[ray]'") from error
        launch.options.check(OPTIONS)
        self._ray = ray
        super().__init__(launch)
        if not ray.is_initialized():
            address = launch.options.text("address", ())
            here = {"num_cpus": cores(), "object_store_memory": _STORE_BYTES, "_system_config": {"worker_niceness": 0}}
            elsewhere = address is not None or bool(os.environ.get("RAY_ADDRESS"))  # no sizes may be given to that
            stop = signal.getsignal(signal.SIGTERM)
            try:
                ray.init(  # "local" starts a cluster; without it Ray would look for one that somebody has started here
                    address if elsewhere else "local", include_dashboard=False, log_to_driver=False,
                    logging_level="WARNING", runtime_env={"env_vars": _SAFE}, **({} if elsewhere else here),
                )  # fmt: skip
            except Exception as error:  # Ray raises the bare class if a node does not start in time
                raise UsageError(f"Ray cannot be reached: {error}") from error
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, stop)  # Ray has taken the signal that stops a command

    def close(self) -> None:
        """As in `Engine`."""
        super().close()
        self._ray.shutdown()

    def _hand_over(self, needs: Needs, tasks: Sequence[Task], logs: Path) -> list[ObjectRef[int]]:
        options, names = self._launch.options, kinds(needs)
        remote = self._ray.remote(_run).options(
            name="veil-bench",
            num_cpus=self._largest_node() if needs.alone else self._cores(needs),
            num_gpus=(options.count("gpus", names) or 1) if needs.device == "cuda" else 0,
            memory=int((options.memory(needs, names) or 0.0) * 2**30),
            max_retries=options.count("retries", names) or RETRIES,
            retry_exceptions=[LostError],
        )
        logged = [Task(task.command, logs / f"ray-{process_id.own_name()}.log") for task in tasks]
        try:
            return [remote.remote(task) for task in logged]
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"Ray refuses: {error}") from error

    def _largest_node(self) -> float:
        sizes = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        return float(max(1.0, *sizes))

    def _cores(self, needs: Needs) -> int | None:
        return None if needs.alone else self._launch.options.count("cpus", kinds(needs)) or 1

    def _most(self, needs: Needs) -> int | None:
        return self._launch.options.count("workers", kinds(needs)) or self._launch.most

    def _ended(self, handles: Sequence[ObjectRef[int]]) -> dict[ObjectRef[int], int | None]:
        if not handles:
            return {}
        ended = self._ray.wait(list(handles), num_returns=len(handles), timeout=0)[0]
        return {cast("ObjectRef[int]", handle): self._code(handle) for handle in ended}

    def _code(self, handle: ObjectRef[int]) -> int:
        try:
            return cast(int, self._ray.get(handle))
        except (self._ray.exceptions.RayError, RuntimeError):  # lost too often, or in error: its log says why
            return _ERROR

    def _cancel(self, handles: Sequence[ObjectRef[int]]) -> None:
        for handle in handles:
            self._ray.cancel(handle)


def _run(task: Task) -> int:
    return task()
