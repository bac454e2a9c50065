"""How much memory a job may hold, what of it rows may take at once, and where the rest of them lie.

What processes hold in memory, as the system tells it.
"""

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
and attacker both hold, beside releases and what is computed of them. Rows up to WHOLE are brought together for whoever
asks for all of them; BLOCK of them are read at a time."""
LARGEST_BLOCK = 64 << 20
GIB = 2.0**30


class TooLargeError(MemoryError):
    """Rows were asked for at once that do not fit the memory of a job; the text says what would be needed."""


@dataclass(frozen=True)
class Budget:
    """What a job may hold.

    Args:
        memory: Bytes, of all of its processes together.
        folder: For rows that do not fit; what is put there has no name, and goes with the process. None stands for the
            folder of temporary files.
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
        """Bytes of a block, where rows are read in blocks."""
        return max(1, min(self.memory // BLOCK, LARGEST_BLOCK))

    def made_folder(self) -> Path | None:
        """The folder, made where it is missing."""
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
    """To three digits, as they are shown: who allows so much has enough."""
    digits = 10.0 ** (math.floor(math.log10(gib)) - 2)
    return math.ceil(gib / digits) * digits


_PART = re.compile(r"^(\w+):[ \t]+([0-9]+) kB$", re.MULTILINE)


def memory(processes: Iterable[psutil.Process]) -> int:
    """Bytes that processes hold together and no file could give back: each its own, and its share of what it shares.

    Files that are mapped, those of prepared data and of releases, do not count: they go when memory is short.
    """
    return _together(processes, _held)


def at_most(processes: Iterable[psutil.Process]) -> int:
    """Bytes that `memory` does not exceed, told without a walk over every page: what is shared counts for each.

    Some kernels count late, by 128 KiB a processor and process.
    """
    return _together(processes, _resident)


def _together(processes: Iterable[psutil.Process], of: Callable[[psutil.Process], int]) -> int:
    held = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            held += of(process)
    return held


def _held(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    told = _told(process, "smaps_rollup")
    if "Pss_Anon" not in told:  # an older kernel: what is shared with those that it was forked from counts whole
        found = process.memory_info()
        return int(found.rss - found.shared)
    return sum(told.get(part, 0) for part in ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _resident(process: psutil.Process) -> int:
    told = _told(process, "status") if sys.platform == "linux" else {}
    if "RssAnon" not in told:
        return int(process.memory_info().rss)
    return sum(told.get(part, 0) for part in ("RssAnon", "RssShmem", "VmSwap"))


def _told(process: psutil.Process, file: str) -> dict[str, int]:
    """Bytes by name, as Linux tells them; nothing of a process of another user, or one that is gone."""
    try:
        content = Path(f"/proc/{process.pid}/{file}").read_bytes()
    except OSError:
        return {}
    text = content.decode("ascii", "replace")  # a process's name is whatever bytes it chose
    return {name: 1024 * int(kib) for name, kib in _PART.findall(text)}
