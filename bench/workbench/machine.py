"""The machine of a figure: processor, memory, accelerator, versions, source tree."""

from __future__ import annotations

__figures__ = False

import ctypes
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import psutil
import torch
from pydantic import JsonValue

from bench.deferred_torch import deferred
from bench.determinism import exact, register
from bench.plugins.spec import UsageError
from bench.workbench.timing import settings

MOST_JOBS = 4
JOB_BYTES, CORES_A_JOB = 12 << 30, 2  # of a GPU, and of the processors beside it
NO_CUDA = "--device cuda: this torch finds no CUDA device; use --device cpu"
PACKAGES = ("veil-bench", "torch", "timm", "numpy", "scikit-learn")


def choose_device(wish: str) -> torch.device:
    """The device; `auto` is CUDA if present. Absent devices raise errors."""
    register()
    if wish == "auto":
        return exact("cuda" if torch.cuda.is_available() else "cpu")
    if wish == "cuda" and not torch.cuda.is_available():
        raise UsageError(NO_CUDA)
    return exact(wish)


def device_type(wish: str) -> str:
    """The type of `choose_device`, without executing torch if no driver exists."""
    if not deferred("torch") or _has_driver():
        return choose_device(wish).type
    if wish == "cuda":
        raise UsageError(NO_CUDA)
    return "cpu"


def _has_driver() -> bool:
    if sys.platform != "linux" or Path("/dev/kfd").exists():
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def hardware(device: torch.device) -> dict[str, JsonValue]:
    """Names and sizes, without host names or paths."""
    facts: dict[str, JsonValue] = {
        "device": device.type,
        "processor": _processor(),
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.system(),
    }
    if device.type == "cuda":
        facts |= {
            "accelerator": torch.cuda.get_device_name(device),
            "accelerator_memory_gib": round(torch.cuda.get_device_properties(device).total_memory / 2**30, 1),
            "cuda": torch.version.cuda,
            **settings(device),
        }
    return facts


def usable_memory() -> float:
    """Bytes that this machine's jobs may hold together by default."""
    return 0.8 * memory()


def memory(groups: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes this process may hold, by machine and control group.

    Args:
        groups: Where Linux says in which groups this process is.
        mounted: Where it shows groups.
    """
    total = int(psutil.virtual_memory().total)
    with suppress(OSError):
        for each in groups.read_text().splitlines():
            _, kinds, name = each.split(":", 2)
            if kinds in ("", "memory"):
                root, file = (mounted, "memory.max") if not kinds else (mounted / kinds, "memory.limit_in_bytes")
                group = root / name.lstrip("/")
                for folder in (group, *group.parents):
                    with suppress(OSError, ValueError):  # no such file, or "max"
                        total = min(total, int((folder / file).read_text()))
    return total


def threads_each(jobs: int) -> int:
    """Threads of each of so many concurrent jobs: its share of cores.

    No more than OMP_NUM_THREADS where that is set, as libraries of numbers have it: on a busy machine, threads that
    wait for each other take several times as long as one.
    """
    share = max(1, cores() // jobs)
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(share, int(setting)) if setting.isdecimal() and int(setting) else share


def usual_jobs(device: str) -> int:
    """Concurrent jobs on a device: two single threads beat one of two.

    By 1.3 times in training.

    On a GPU too: while a job starts its processes or judges, which the processor does, others have the GPU. Each gets a
    share of the GPU's memory that suffices for what the presets train.
    """
    if device != "cuda":
        return min(cores(), MOST_JOBS)
    if not torch.cuda.is_available():  # that of another machine
        return 1
    total = torch.cuda.get_device_properties(torch.device(device)).total_memory
    return max(1, min(cores() // CORES_A_JOB, total // JOB_BYTES, MOST_JOBS))


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


@cache
def git_state() -> str | None:
    """Commit of the source tree, with `-dirty` if changed; None without one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():  # installed as a package, perhaps below somebody else's repository
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
