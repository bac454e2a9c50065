"""What counts of a process's memory is what no file could give back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.memory import memory_budget as processes

MIB = 2**20
CHILD = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
own = bytearray(b"x") * (int(sys.argv[2]) << 20)
print("there", flush=True)
sys.stdin.read()
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux tells")


def held(tmp_path: Path, *, mapped: int, own: int) -> int:
    """What counts of a process that has read a mapped file, and holds memory of its own, in MiB each."""
    path = tmp_path / f"{mapped}"
    with path.open("wb") as file:
        file.write(os.urandom(MIB) * mapped)
    command = [sys.executable, "-c", CHILD, str(path), str(own)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"there\n"
        process = psutil.Process(child.pid)
        assert process.memory_info().rss > (mapped + own) * MIB
        found = processes.memory([process])
        child.communicate()
    return found // MIB


def test_mapped_files_do_not_count_and_own_memory_does(tmp_path: Path) -> None:
    empty = held(tmp_path, mapped=1, own=1)
    assert held(tmp_path, mapped=64, own=1) < empty + 16
    assert empty + 48 < held(tmp_path, mapped=1, own=64) < empty + 80


def test_an_older_kernel_tells_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PART", processes.re.compile(r"^(Nothing): +([0-9]+) kB$"))
    empty = held(tmp_path, mapped=1, own=1)
    assert held(tmp_path, mapped=64, own=1) < empty + 16
    assert held(tmp_path, mapped=1, own=64) > empty + 48


SHARING = """
import mmap, os, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
own, shared = b"x" * (64 << 20), mmap.mmap(-1, 32 << 20)
shared[:] = bytes(32 << 20)
os.fork()
sum(shared[at] for at in range(0, len(shared), 4096))
os.write(1, b"there\\n")  # at once, where print may write twice
sys.stdin.read()
"""


def test_the_bound_counts_for_each_what_they_share_and_no_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(os.urandom(256 * MIB))
    command = [sys.executable, "-c", SHARING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert [child.stdout.readline(), child.stdout.readline()] == [b"there\n"] * 2
        parent = psutil.Process(child.pid)
        both = [parent, *parent.children()]
        found, bound = processes.memory(both), processes.at_most(both)
        child.communicate()
    assert 96 * MIB < found < 128 * MIB
    assert 2 * 96 * MIB < bound < 256 * MIB


def test_a_process_that_is_gone_holds_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
    assert processes.memory([process]) == 0
    assert processes.at_most([process]) == 0
