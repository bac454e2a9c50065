"""Memory budget of a job, and memory use of processes."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

PLAIN, WHOLE, BLOCK = 32, 4, 128
"""Shares of a job's memory, as divisors. Rows up to PLAIN are ordinary tensors: a data set has four parts, which judge
and attacker both hold, beside releases and what is computed of them. Rows up to WHOLE are read together if
all are requested; BLOCK of them are read at a time."""
LARGEST_BLOCK = 64 << 20
GIB = 2.0**30


class TooLargeError(MemoryError):
    """Requested rows exceed the memory of a job; the text suggests remedies."""


@dataclass(frozen=True)
class Budget:
    """Memory limit of a job.

    Args:
        memory: Bytes, of all of its processes together.
        folder: For rows that do not fit, in unnamed files that end with the process. None stands for the folder of
            temporary files.
    """

    memory: int
    folder: Path | None = None

    @property
    def plain(self) -> int:
        """Bytes up to which rows are ordinary tensors."""
        return self.memory // PLAIN

    @property
    def whole(self) -> int:
        """Bytes up to which rows are brought together."""
        return self.memory // WHOLE

    @property
    def block(self) -> int:
        """Bytes of a block of rows."""
        return max(1, min(self.memory // BLOCK, LARGEST_BLOCK))

    def made_folder(self) -> Path | None:
        """The folder, created if missing."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.folder

    def check(self, shape: tuple[int, ...], bytes_: int) -> None:
        """Raise TooLargeError for more rows at once than fit."""
        if bytes_ > self.whole:
            raise TooLargeError(
                f"rows of shape {shape} were asked for all at once: they take {bytes_ / GIB:.3g} GiB, and of the "
                f"{self.memory / GIB:.3g} GiB that a job may hold {self.whole / GIB:.3g} are for that; read them in "
                f"parts (rows[indices]), or allow --memory {_rounded_up(bytes_ * WHOLE / GIB):.3g}"
            )


def _rounded_up(gib: float) -> float:
    """Rounded up to the three digits shown."""
    digits = 10.0 ** (math.floor(math.log10(gib)) - 2)
    return math.ceil(gib / digits) * digits


_PART = re.compile(r"^(\w+):[ \t]+([0-9]+) kB$", re.MULTILINE)


def memory(processes: Iterable[psutil.Process]) -> int:
    """Bytes of processes that no file backs: own, and shared in proportion."""
    return _together(processes, _held)


def at_most(processes: Iterable[psutil.Process]) -> int:
    """Upper bound of `memory`, quickly: shared memory counts for each process."""
    return _together(processes, _resident)


def _together(processes: Iterable[psutil.Process], bytes_of: Callable[[psutil.Process], int]) -> int:
    held = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            held += bytes_of(process)
    return held


def _held(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    bytes_by_name = _kernel_figures(process, "smaps_rollup")
    if "Pss_Anon" not in bytes_by_name:  # an older kernel: memory shared with the parent counts in full
        info = process.memory_info()
        return int(info.rss - info.shared)
    return sum(bytes_by_name.get(part, 0) for part in ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _resident(process: psutil.Process) -> int:
    bytes_by_name = _kernel_figures(process, "status") if sys.platform == "linux" else {}
    if "RssAnon" not in bytes_by_name:
        return int(process.memory_info().rss)
    return sum(bytes_by_name.get(part, 0) for part in ("RssAnon", "RssShmem", "VmSwap"))


def _kernel_figures(process: psutil.Process, file: str) -> dict[str, int]:
    """Bytes by name from Linux; empty if the process is inaccessible."""
    try:
        content = Path(f"/proc/{process.pid}/{file}").read_bytes()
    except OSError:
        return {}
    text = content.decode("ascii", "replace")  # a process may choose any bytes as its name
    return {name: 1024 * int(kib) for name, kib in _PART.findall(text)}
