"""Tests never touch the user's caches, configuration or data."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING

import psutil
import pytest
import torch
from hypothesis import HealthCheck, settings

from bench.randomness import Secret

if TYPE_CHECKING:  # few tests need it
    from made.submissions import Handed

os.environ["BENCH_PLUGINS"] = "/dev/null/none"  # no plug-ins that the user has added

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """What is imported stays: no collection need look for garbage in it, which took a fiftieth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: object) -> None:
    """Say how a worker of the suite ended, and whether memory may be why: xdist says that it crashed, and no more."""
    worker = report.node.gateway._io.popen  # type: ignore[attr-defined]
    try:
        code = worker.wait(timeout=10)
        ended = f"it ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
    except subprocess.TimeoutExpired:
        ended = "its process goes on, and its line to this one is broken"
    held, free = getrusage(RUSAGE_CHILDREN).ru_maxrss >> 10, psutil.virtual_memory().available >> 20
    report.longrepr = f"{report.longrepr}: {ended}; no process so far held over {held} MiB, and {free} MiB are free"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, request) -> Path:
    """A cache and configuration of the test session's own; data roots only for tests that ask for real images."""
    home = tmp_path_factory.getbasetemp() / "home"
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(home / variable.lower()))
    if request.node.get_closest_marker("real_data") is None:
        monkeypatch.delenv("BENCH_DATA", raising=False)
    elif "BENCH_DATA" not in os.environ:
        pytest.skip("needs real images: set BENCH_DATA")
    return home


@pytest.fixture(autouse=True)
def same_run_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results folders stand under one secret, so that figures of runs are those of the last time."""
    monkeypatch.setattr("bench.results.run_secret.fresh", lambda: Secret.of_seed(0, "tests"))


@pytest.fixture(scope="session", autouse=True)
def signals_as_a_terminal_leaves_them() -> None:
    """A suite that is started under nohup, or in the background of a shell, has some of them ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def no_line_says_that_a_command_is_slow() -> Iterator[None]:
    """On a slow machine commands would print how far they are among the lines that tests compare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.cli.terminal.FIRST_SECONDS", 86_400.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def in_one_process() -> Iterator[None]:
    """Methods and attacks stay in the process that runs them, which is quicker; commands started by tests do so too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_ISOLATION", "none")
        yield


@pytest.fixture(scope="session", autouse=True)
def plugins_of_tests_are_accepted() -> Iterator[None]:
    """Without bubblewrap too, as by `--isolation processes`: tests write the plug-ins that they run."""
    from bench.plugins.interview import UNCONFINED

    UNCONFINED.set(True)
    yield
    UNCONFINED.set(False)


@pytest.fixture(scope="session", autouse=True)
def networks_wait_in_the_fork_server() -> Iterator[None]:
    """Jobs of runs find timm and scikit-learn imported, which took each that trains Bob two seconds."""
    from bench.runs import local_engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_engine, "PRELOADED", ["timm", "sklearn.linear_model", *local_engine.PRELOADED])
        yield


@pytest.fixture(autouse=True)
def in_processes_of_their_own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for tests of their isolation."""
    if request.node.get_closest_marker("isolated") is not None:
        monkeypatch.delenv("BENCH_ISOLATION")


@pytest.fixture
def quick_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms, and who describes or checks plug-ins, start at once; what is in a sandbox starts as ever."""
    from made.forked import quicken  # few tests need it

    quicken(monkeypatch.setattr)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For networks and matrices so small that they only lose time to a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", autouse=True)
def attacks_take_one_thread(request: pytest.FixtureRequest) -> None:
    """Networks and matrices of attack tests are small."""
    if "attacks" in request.path.parts:
        request.getfixturevalue("one_thread")


@pytest.fixture(scope="session")
def handed_once(tmp_path_factory: pytest.TempPathFactory) -> Handed:
    """A submission, measured once."""
    from made.submissions import hand_in

    return hand_in(tmp_path_factory.mktemp("handed"))


@pytest.fixture
def handed(handed_once: Handed, monkeypatch: pytest.MonkeyPatch) -> Handed:
    """The same, where a row needs no more than what it holds."""
    from made import submissions

    monkeypatch.setattr("bench.exchange.check.required", submissions.few)
    return handed_once


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract of methods without Bob and the judge of promises, which train models and have tests of their own."""
    from bench.conformance import methods

    slow = ("Bob keeps up with simple models", "its word holds")
    quick = {title: work for title, work in methods._CHECKS.items() if title not in slow}
    monkeypatch.setattr(methods, "_CHECKS", quick)
