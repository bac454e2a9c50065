"""A planned run, done by workers, is the run: the same records to the bit, and what failed is done again if asked."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from made.submissions import Inline, place_of, spec
from rich.console import Console

from bench.cli.queue_table import counts
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import lease, process_id
from bench.results.queue import ALONE, job_file
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.display import Display
from bench.runs.planned_run import plan_run, read_run, run_spec
from bench.runs.run import execute
from bench.runs.run_spec import RunSpec
from bench.runs.serve import Served, serve
from bench.runs.terms import Terms
from bench.workbench.place import Place

APART = ("created", "seconds", "hardware", "digest", "git", "versions")
TERMS = Terms(
    devices=frozenset({"cpu"}), alone=False, minutes=None, idle_minutes=None, seconds=60, cores=None, memory=2**33
)
SECRET = Secret.of_seed(0, "shared")


class InlineWorkers(Inline):
    """Stands for worker processes."""

    def __init__(self, **_: object) -> None:
        super().__init__()


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.runs.serve.Workers", InlineWorkers)
    for module in ("serve", "registration"):
        monkeypatch.setattr(f"bench.runs.{module}._LOOK_SECONDS", 0.01)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def wanted(*metrics: str) -> RunSpec:
    return spec(["dp-simple"], controls=False, attacks=["nearest-neighbour"], metrics=metrics)


def work(where: Place, terms: Terms = TERMS) -> Served:
    return serve(terms, where, Display(Console(file=io.StringIO())))


def found(results: Results) -> dict[str, dict[str, object]]:
    records = dict(results.records())
    assert all(isinstance(record, Record) for record in records.values()), records
    return {
        name: {key: value for key, value in record.model_dump(mode="json").items() if key not in APART}  # type: ignore[union-attr]
        for name, record in records.items()
    }


def test_what_workers_do_of_a_plan_is_what_a_run_does(tmp_path: Path, cache: Path) -> None:
    asked = wanted("guesswork", "max-dispersion")
    local, shared = (place_of(tmp_path / name, cache) for name in ("local", "shared"))
    for where in (local, shared):
        where.results.keep_secret(SECRET)
    execute(asked, local, Display(Console(file=io.StringIO())), Inline())
    planned = plan_run(asked, shared, memory=None)
    assert run_spec(read_run(shared.results.queue, planned.name), memory=asked.memory) == asked
    assert plan_run(asked, shared, memory=None) == planned
    (before,) = counts(shared.results.queue)
    assert before.states == {"waiting": 4}  # data, a fit, two evaluators
    assert work(shared).done == 4
    assert found(shared.results) == found(local.results)
    (after,) = counts(shared.results.queue)
    assert after.states == {"done": 4}
    assert work(shared).done == 0
    files = {path.parent.name for path in (shared.results.root / "artefacts/queue").rglob("*") if path.is_file()}
    assert files == {planned.name, "done"}  # no lease, and no worker


def test_a_job_that_failed_is_done_again_once_the_run_is_planned_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, asked = place_of(tmp_path, cache), wanted("max-dispersion")
    plan_run(asked, where, memory=None)

    def fail(argument: object) -> object:
        raise UsageError("not today")

    with monkeypatch.context() as patch:
        patch.setattr("bench.runs.run.fit_task", fail)
        work(where)
    assert counts(where.results.queue)[0].states == {"done": 1, "failed": 2}
    assert work(where).done == 0
    plan_run(asked, where, memory=None)
    assert counts(where.results.queue)[0].states == {"done": 1, "waiting": 2}
    assert work(where).done == 2
    assert [record["status"] for record in found(where.results).values()] == ["ok"]
    plan_run(replace(asked, overwrite="always"), where, memory=None)
    assert work(where).done == 3


def test_timings_wait_for_a_worker_that_is_alone(tmp_path: Path, cache: Path) -> None:
    where = place_of(tmp_path, cache)
    plan_run(wanted("throughput"), where, memory=None)
    served = work(where)
    assert (served.done, served.left) == (2, 1)
    assert counts(where.results.queue)[0].states == {"done": 2, "waiting": 1}
    assert work(where, replace(TERMS, alone=True)).done == 1


def test_nobody_works_beside_a_worker_that_holds_its_machine_alone(tmp_path: Path, cache: Path) -> None:
    where = place_of(tmp_path, cache)
    plan_run(wanted("max-dispersion"), where, memory=None)
    queue = where.results.queue
    told = {"host": "h", "hardware": process_id.hardware(), "alone": True, "since": "now"}
    held = lease.claim(queue.workers, f"{ALONE}{process_id.hardware()}", told, seconds=60)
    assert held is not None
    with pytest.raises(UsageError, match="a worker on h holds this machine alone"):
        work(where)
    held.settle()
    plain = lease.claim(queue.workers, "plain", {**told, "alone": False}, seconds=60)
    assert plain is not None
    served = work(where, replace(TERMS, alone=True, minutes=0.001))  # it waits, until its time is up
    assert (served.time_up, served.done) == (True, 0)
    plain.settle()
    assert work(where, replace(TERMS, alone=True)).done == 3


def test_a_folder_without_a_plan_is_said_to_have_none(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UsageError, match="has no planned run"):
        work(place_of(tmp_path, cache))


def test_a_plan_that_was_altered_is_refused(tmp_path: Path, cache: Path) -> None:
    where = place_of(tmp_path, cache)
    planned = plan_run(wanted("max-dispersion"), where, memory=None)
    path = tmp_path / "artefacts/queue/plans" / planned.name / "plan.json"
    path.write_text(path.read_text().replace("max-dispersion", "min-dispersion"))
    with pytest.raises(ValueError, match="plan the run again"):
        read_run(where.results.queue, planned.name)
    with pytest.raises(UsageError, match="nothing of the plans here"):
        work(where)
    with pytest.raises(UsageError, match="plan the run again"):
        counts(where.results.queue)


def test_a_worker_takes_no_jobs_that_may_hold_more_than_it_has(tmp_path: Path, cache: Path) -> None:
    where, said = place_of(tmp_path, cache), io.StringIO()
    plan_run(wanted("max-dispersion"), where, memory=2**34)
    with pytest.raises(UsageError, match="nothing of the plans here"):
        serve(TERMS, where, Display(Console(file=said, width=500)))
    assert "may hold 16.0 GiB each (--memory), and here are 8.0" in said.getvalue()
    assert counts(where.results.queue)[0].states == {"waiting": 3}
    plan_run(wanted("guesswork"), where, memory=2**33)  # beside it, one that it may do
    assert work(where).done == 3


def test_a_worker_leaves_a_plan_alone_that_it_reads_otherwise(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, said = place_of(tmp_path, cache), io.StringIO()
    plan_run(wanted("max-dispersion"), where, memory=None)
    with monkeypatch.context() as patch:  # as where a later version gives a cell another folder
        patch.setattr("bench.runs.planned_run.fit_job", lambda cell: f"fit other-{cell.folder}")
        with pytest.raises(UsageError, match="nothing of the plans here"):
            serve(TERMS, where, Display(Console(file=said, width=500)))
    assert "makes other jobs of it" in said.getvalue()
    assert work(where).done == 3


def test_the_state_of_a_lost_job_is_lost(tmp_path: Path, cache: Path) -> None:
    where = place_of(tmp_path, cache)
    planned = plan_run(wanted("max-dispersion"), where, memory=None)
    held = where.results.queue.claim(job_file(planned.jobs[0].job), {"host": "h"}, seconds=60)
    assert held is not None
    assert counts(where.results.queue)[0].states == {"running": 1, "waiting": 2}
    held.path.write_text(held.path.read_text().replace("60", "-1"))
    (lost,) = counts(where.results.queue)
    assert lost.states == {"lost": 1, "waiting": 2}
    assert [(row.host, row.lost) for row in lost.running] == [("h", True)]
