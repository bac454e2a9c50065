"""What a record says about the machine, and what it must not say."""

from __future__ import annotations

import getpass
import json
import platform
import re
import socket
import subprocess
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench.plugins.spec import UsageError
from bench.workbench import machine
from bench.workbench.machine import (
    MOST_JOBS,
    PACKAGES,
    choose_device,
    git_state,
    hardware,
    threads_each,
    usual_jobs,
    versions,
)


def test_an_absent_device_is_an_error_and_never_a_silent_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"--device cuda: .* use --device cpu"):
        choose_device("cuda")


@pytest.mark.parametrize("present", [True, False])
def test_auto_takes_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch, present: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: present)
    assert choose_device("auto").type == ("cuda" if present else "cpu")
    assert choose_device("cpu").type == "cpu"


@pytest.mark.parametrize(
    ("gib", "cores", "jobs"), [(80, 16, MOST_JOBS), (80, 4, 2), (24, 16, 2), (8, 16, 1), (80, 1, 1), (None, 16, 1)]
)
def test_jobs_share_a_gpu_as_far_as_its_memory_and_the_cores_beside_it_go(
    monkeypatch: pytest.MonkeyPatch, gib: int | None, cores: int, jobs: int
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gib is not None)
    held = SimpleNamespace(total_memory=(gib or 0) << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: held)
    monkeypatch.setattr(machine, "cores", lambda: cores)
    assert usual_jobs("cuda") == jobs
    assert usual_jobs("cpu") == min(cores, MOST_JOBS)


def test_hardware_names_sizes_but_neither_host_nor_user_nor_path() -> None:
    found = hardware(torch.device("cpu"))
    assert found.keys() == {"device", "processor", "cores", "threads", "memory_gib", "system"}
    assert found["device"] == "cpu"
    assert found["threads"] == torch.get_num_threads()
    assert isinstance(found["memory_gib"], float)
    assert found["memory_gib"] > 0
    text = json.dumps(found)
    words = set(re.split(r'[\s",:]+', text))
    assert not words & {socket.gethostname(), platform.node(), getpass.getuser()}
    assert str(Path.home()) not in text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_hardware_names_the_accelerator() -> None:
    assert hardware(torch.device("cuda"))["accelerator"] == torch.cuda.get_device_name()


def test_versions_are_those_installed() -> None:
    found = versions()
    assert found["python"] == platform.python_version()
    assert {name: found[name] for name in PACKAGES} == {name: version(name) for name in PACKAGES}


def test_a_processor_without_a_model_name_still_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "processor : 0\n")
    assert machine._processor.__wrapped__() == platform.machine()

    def absent(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", absent)
    assert machine._processor.__wrapped__()


@pytest.mark.parametrize(
    ("said", "threads"), [(None, 4), ("1", 1), ("3,1", 3), ("16", 4), ("0", 4), ("many", 4), ("", 4)]
)
def test_jobs_share_the_cores_and_take_no_more_threads_than_asked_for(
    said: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert threads_each(2) == threads
    assert threads_each(32) == 1


def test_outside_a_checkout_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(machine.subprocess, "run", fail)
    assert git_state.__wrapped__() is None


def test_a_commit_is_short_and_says_whether_the_tree_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.CompletedProcess([], 0, stdout="0123456789ab-dirty\n")
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: done)
    assert git_state.__wrapped__() == "0123456789ab-dirty"


@pytest.mark.parametrize(
    ("groups", "file", "text", "limit"),
    [
        ("0::/slurm/job_7/step_0\n", "slurm/job_7/memory.max", "3000\n", 3000),
        ("0::/slurm/job_7/step_0\n", "slurm/job_7/memory.max", "max\n", None),
        ("5:cpu:/x\n4:memory:/slurm/job_7\n", "memory/slurm/job_7/memory.limit_in_bytes", "5000\n", 5000),
        ("0::/\n", "memory.max", "7000\n", 7000),
    ],
)
def test_memory_is_what_an_engine_leaves_to_its_control_group(
    groups: str, file: str, text: str, limit: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(groups)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    whole = machine.memory(tmp_path / "none", tmp_path)
    assert machine.memory(tmp_path / "cgroup", tmp_path) == (whole if limit is None else limit)
