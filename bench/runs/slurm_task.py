"""A worker as a task of a SLURM array. Imports nothing heavy, for every task does."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.runs.tied import tied

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

_END_SECONDS, _LOOK_SECONDS = 60.0, 0.05


@dataclass
class Task:
    """A worker as a task of an array (a `submitit.helpers.Checkpointable`): queued again where its time is over.

    Args:
        command: Of the worker.
        seconds: After so long it has ended because its time was over.
    """

    command: tuple[str, ...]
    seconds: float
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __call__(self) -> int:
        """Do the worker's life. Raises RuntimeError where it ends in error: its log says why."""
        began = time.monotonic()
        self._child = subprocess.Popen(tied(self.command), stdin=subprocess.DEVNULL)
        code = self._child.wait()
        if code == 0 and time.monotonic() - began >= self.seconds:
            signal.raise_signal(signal.SIGUSR2)  # which submitit takes for the end of the time, and queues it again
        if code:
            raise RuntimeError(f"bench worker ended with {code}")
        return code

    def checkpoint(self) -> DelayedSubmission:
        """Have the worker give its job back; what is queued again starts another one."""
        from submitit.helpers import DelayedSubmission

        if self._child is not None:
            self._child.terminate()
            end = time.monotonic() + _END_SECONDS
            while not _has_ended(self._child.pid) and time.monotonic() < end:
                time.sleep(_LOOK_SECONDS)
        return DelayedSubmission(Task(self.command, self.seconds))


def _has_ended(child: int) -> bool:
    """Whether a child process has ended; `Popen.wait` cannot tell where a signal has interrupted that very call."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # its end has been taken notice of
        return True
