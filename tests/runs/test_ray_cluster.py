"""Workers on Ray: a node that is lost costs nothing but time, and a worker that ends in error is no worker for ever."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.plugins.spec import UsageError
from bench.runs.engine_options import EngineOptions
from bench.runs.executor import Started, Wanted
from bench.runs.needs import Needs

pytest.importorskip("ray")
from bench.runs.ray_cluster import RayCluster
from bench.runs.ray_task import LostError, live

MOST_SECONDS = 240.0
WORKER = """
import sys, time
from pathlib import Path
here = Path({folder!r})
alone = "--alone" in sys.argv
lives = len(list(here.glob("life-*")))
(here / f"life-{{lives}}").touch()
if alone:
    (here / "alone").touch()
    sys.exit(2)
while lives == 0:
    time.sleep(0.05)
"""


class Fake(Started):
    """Starts something lighter than a worker."""

    def command(self, device: str, **more: Any) -> list[str]:
        words = super().command(device, **more)
        return [sys.executable, "-c", WORKER.format(folder=str(self.results)), *words]


def begun(start: Any, **sizes: Any) -> Any:
    """What Ray starts; skipped aloud where it gives up, as it does after 30 s that cannot be set."""
    try:
        return start(**sizes)
    except Exception as error:  # the bare class
        pytest.skip(f"Ray does not start here: {error}")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    # On a busy machine a node that does not answer for 10 s, as often as Ray asks, would be taken for dead. One that
    # is not there is told from that at once; but Ray asks five times, and every 3 s.
    asking = {"timeout": "60000", "period": "200", "initial_delay": "200"}
    for name, value in asking.items():
        monkeypatch.setenv(f"RAY_health_check_{name}_ms", value)
    for name, value in (("RAY_worker_niceness", "0"), ("RAY_AUTH_MODE", "disabled")):
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    sizes = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    made = begun(Cluster, initialize_head=True, head_node_args={"num_cpus": 0, **sizes})
    yield made
    with contextlib.suppress(Exception):
        made.shutdown()
    signal.signal(signal.SIGTERM, handler)  # Ray's stays otherwise and would end the process of all later tests


def test_the_worker_of_a_lost_node_is_started_on_another_and_timings_come_last(tmp_path: Path, cluster: Any) -> None:
    first = begun(cluster.add_node, num_cpus=1, object_store_memory=80 * 2**20)
    engine = RayCluster(
        Fake(tmp_path, (), tmp_path / "logs", None, False, EngineOptions({"address": cluster.address, "workers": "1"}))
    )
    engine.start([Wanted(Needs("cpu", False, 1, None), 3, 1), Wanted(Needs("cpu", True, 1, None), 1, 0)])
    wait_for(tmp_path / "life-0")
    assert engine.counts().living == 2
    assert not (tmp_path / "alone").exists()
    begun(cluster.add_node, num_cpus=1, object_store_memory=80 * 2**20)
    cluster.remove_node(first, allow_graceful=False)
    end = time.monotonic() + MOST_SECONDS / 2
    while not (tmp_path / "life-1").exists() and time.monotonic() < end:
        time.sleep(0.05)
    if not (tmp_path / "life-1").exists() and engine.counts().living == 2:
        pytest.skip(f"Ray says that both workers live, and has not started the lost one again for {MOST_SECONDS / 2} s")
    assert (tmp_path / "life-1").exists()
    end = time.monotonic() + MOST_SECONDS
    while engine.counts().living and time.monotonic() < end:
        time.sleep(0.1)
    assert engine.counts().ended == 2  # the one that failed, too: nobody tries it for ever
    assert (tmp_path / "alone").exists()
    engine.stop()


@pytest.mark.parametrize(
    ("options", "variable", "asked"),
    [({}, "", "local"), ({"address": "auto"}, "", "auto"), ({}, "ray://elsewhere", None)],
)
def test_a_cluster_is_started_here_whatever_others_have_started(
    options: dict[str, str], variable: str, asked: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    called: list[tuple[str | None, bool]] = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda address, **sizes: called.append((address, "num_cpus" in sizes)))
    monkeypatch.setenv("RAY_ADDRESS", variable)
    RayCluster(Started(tmp_path, (), tmp_path, None, False, EngineOptions(options)))
    assert called == [(asked, asked == "local")]  # Ray refuses sizes for a cluster that is there


@pytest.mark.parametrize(
    ("code", "raised"), [("os.kill(os.getpid(), 9)", LostError), ("sys.exit(143)", LostError), ("sys.exit(2)", None)]
)
def test_a_worker_that_a_signal_ended_is_lost_and_one_in_error_is_not(code: str, raised: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        live([sys.executable, "-c", f"import os, sys; {code}"], tmp_path / "log")
    assert caught.type is (raised or RuntimeError)


def test_what_ray_cannot_do_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ray job submit"):
        RayCluster(Started(tmp_path, (), tmp_path, None, True, EngineOptions({})))
    with pytest.raises(UsageError, match="did you mean 'address'"):
        RayCluster(Started(tmp_path, (), tmp_path, None, False, EngineOptions({"adress": "x"})))


def wait_for(path: Path) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert path.exists()
