"""The /proc of sandboxes, without counters of the whole machine.

No namespace bounds these counters (memory, load, open files, interrupts): one process can move them, and another read
them. Files that libraries need stand here with values that never change; all other files outside a process's own folder
are empty.
"""

from __future__ import annotations

__figures__ = False

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from bench.disk.atomic_file import make_folder, write_atomically

PROC = Path("/proc")
SHOWN = frozenset({"cpuinfo", "filesystems", "mounts", "self", "thread-self", "version", "driver", "devices"})
"""Constants of a machine, and the process's own. (`driver` and `devices` are of NVIDIA's.)"""
OWN = frozenset({"net"})
"""A link into the process's own folder, and so of its own namespace."""


def mask() -> Iterator[str]:
    """Arguments of bubblewrap that hide the rest of /proc."""
    texts = dict(_texts())
    for path in sorted(PROC.iterdir()):
        name = path.name
        if name.isdecimal() or name in SHOWN or name in OWN or path.is_symlink():
            continue
        if path.is_dir():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        else:
            yield from ("--ro-bind", str(_kept(name, texts.get(name, ""))), str(path))


def _texts() -> Iterator[tuple[str, str]]:
    """The constant content of files that libraries read."""
    yield "loadavg", "0.00 0.00 0.00 1/1 1\n"
    yield "uptime", "0.00 0.00\n"
    cpus = ["cpu", *(f"cpu{number}" for number in range(os.cpu_count() or 1))]
    lines = [f"{cpu} {' '.join('0' * 10)}" for cpu in cpus]
    yield "stat", "\n".join([*lines, "intr 0", "ctxt 0", "btime 0", "processes 1", "procs_running 1"]) + "\n"
    total = _total()
    parts = {"MemTotal": total, "MemFree": total // 2, "MemAvailable": total // 2, **dict.fromkeys(_NONE, 0)}
    yield "meminfo", "".join(f"{name}: {number} kB\n" for name, number in parts.items())


_NONE = ("Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Shmem", "Slab",
         "SReclaimable", "Committed_AS")  # fmt: skip


def _total() -> int:
    """Kibibytes of memory."""
    for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1])
    return 0


def _kept(name: str, text: str) -> Path:
    """A file of that text outside the sandbox."""
    return kept_file(f"proc-{name}" if text else "empty", text.encode())


def kept_file(name: str, content: bytes) -> Path:
    """A file in the user's cache folder with exactly that content."""
    folder = Path(platformdirs.user_cache_dir("veil-bench")) / "sandbox"
    file = folder / name
    with contextlib.suppress(OSError):
        if file.read_bytes() == content:
            return file
    make_folder(folder, mode=0o700)
    write_atomically(file, content, durable=False)
    return file
