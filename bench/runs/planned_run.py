"""A run as a plan that other machines can read: what it was asked for, and its jobs with what each of them needs.

Plain JSON: nothing in it is code, and every plug-in is built again, by name, where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from bench.contract.preset import PRESETS
from bench.plugins.chosen import Chosen, choose
from bench.plugins.spec import UsageError
from bench.results.content_key import content_key
from bench.results.queue import Queue, job_file
from bench.runs.needs import Needs
from bench.runs.plan import data_key, standing, to_run, work, write_plan
from bench.runs.run_spec import RunSpec
from bench.types import Plugin
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.place import Place

SCHEMA = 1
DATA_SECONDS = 24 * 3600.0  # decoding starts afresh after a stop, so a large set is never stopped by --timeout


@dataclass(frozen=True)
class PlannedJob:
    """A job of a plan.

    Args:
        job: Its name, the same wherever the plan is read.
        title: For display.
        after: The job that has to be done before.
        needs: What it needs of a machine.
    """

    job: str
    title: str
    after: str | None
    needs: Needs

    @property
    def prepares(self) -> bool:
        """Whether others come after it."""
        return self.job.startswith((DATA, FIT))


@dataclass(frozen=True)
class PlannedRun:
    """A plan, as it stands in the results folder.

    Args:
        name: Of the plan.
        spec: What was asked for, as JSON; `run_spec` builds it.
        memory: Bytes that a worker may hold; None for what its machine has.
        data_roots: Folders above raw data, where the run was planned.
        jobs: All of them, each after the one that it follows.
    """

    name: str
    spec: Mapping[str, JsonValue]
    memory: int | None
    data_roots: tuple[Path, ...]
    jobs: tuple[PlannedJob, ...]


def plan_run(spec: RunSpec, place: Place, *, memory: int | None) -> PlannedRun:
    """Write the plan of a run into its results folder, and open what is to be run anew; the same run is one plan.

    `memory` is what was asked for a job, in bytes; None where nothing was.
    """
    queue = place.results.queue
    place.results.keep_secret()
    told: dict[str, JsonValue] = {
        "schema": SCHEMA, "spec": written(spec), "memory": memory, "data roots": [str(root) for root in place.roots],
    }  # fmt: skip
    name = content_key(told)[:16]
    found = replace(
        PlannedRun(name, cast("dict[str, JsonValue]", told["spec"]), memory, place.roots, ()),
        jobs=tuple(_jobs(spec, memory)),
    )
    jobs: list[JsonValue] = [
        {"job": each.job, "title": each.title, "after": each.after, "needs": each.needs.values()} for each in found.jobs
    ]
    for job, wanted in _wanted(spec, place):
        ended = queue.outcome(name, job_file(job))
        if not wanted and ended is None:
            queue.end(name, job_file(job), "done", {})
        elif wanted and ended is not None and (job.startswith(EVALUATE) or ended.state != "done" or not ended.told):
            queue.reopen(name, job_file(job))
    queue.keep({**told, "jobs": jobs}, name)
    queue.forget_leases(name)
    queue.forget_workers()
    return found


def read_run(queue: Queue, name: str) -> PlannedRun:
    """The plan of that name. Raises FileNotFoundError; ValueError where it is none that this version can read."""
    told = cast("dict[str, Any]", queue.plan(name))
    if told.get("schema") != SCHEMA:
        raise ValueError(f"plan {name} has schema {told.get('schema')}, and this version reads {SCHEMA}: plan it again")
    jobs = [PlannedJob(each["job"], each["title"], each["after"], Needs.read(each["needs"])) for each in told["jobs"]]
    return PlannedRun(name, told["spec"], told["memory"], tuple(map(Path, told["data roots"])), tuple(jobs))


def written(spec: RunSpec) -> dict[str, JsonValue]:
    """What was asked for, as JSON; what depends on the machine that does it is left out."""
    return {
        "choices": [cast("dict[str, JsonValue]", choice.values()) for choice in spec.choices],
        "methods": [str(method) for method in spec.methods],
        "attacks": [str(attack) for attack in spec.attacks],
        "metrics": [*spec.metrics],
        "evaluators": [*spec.evaluators],
        "controls": spec.controls,
        "device": spec.device,
        "timeout": spec.timeout,
        "overwrite": spec.overwrite,
        "keep_releases": spec.keep_releases,
        "isolation": spec.isolation,
    }


def run_spec(planned: PlannedRun, *, memory: int) -> RunSpec:
    """What was asked for, plug-ins built, for a worker that may hold so many bytes.

    Raises:
        UsageError: Something that the plan names is not here.
    """
    told = cast("dict[str, Any]", planned.spec)
    choices = tuple(Choice.read(each) for each in told["choices"])
    preset, here = choices[0].preset, told["isolation"] == "none"

    def built(group: Any) -> tuple[Chosen[Any], ...]:
        return tuple(cast("Chosen[Plugin]", choose(group, each, preset, here=here)) for each in told[group])

    return RunSpec(
        choices=choices, methods=built("methods"), attacks=built("attacks"), metrics=tuple(told["metrics"]),
        evaluators=tuple(told["evaluators"]), controls=told["controls"], device=told["device"], jobs=1,
        timeout=told["timeout"], memory=memory, overwrite=told["overwrite"], isolation=told["isolation"],
        keep_releases=told["keep_releases"],
    )  # fmt: skip


def jobs_of(planned: PlannedRun) -> set[str]:
    """The jobs that this version makes of what was asked for: others than the plan's where another version planned.

    Raises UsageError where something that the plan names is not here.
    """
    return {each.job for each in _jobs(run_spec(planned, memory=1), planned.memory)}


DATA, FIT, EVALUATE = "data ", "fit ", "evaluate "


def data_job(choice: Choice) -> str:
    """What the job is called that opens a choice of data."""
    return f"{DATA}{data_key(choice)}"


def fit_job(cell: Cell) -> str:
    """What the job is called that fits a cell's method."""
    return f"{FIT}{cell.folder}"


def evaluation_job(cell: Cell, planned: Planned) -> str:
    """What the job is called that does an evaluator of a cell."""
    return f"{EVALUATE}{cell.folder}/{planned.name}"


def title(cell: Cell) -> str:
    """A cell in words, for display."""
    seed = f" seed {cell.choice.seed}" if cell.choice.seed else ""
    return f"{cell.choice.dataset}{seed} | {cell.method.spec.shown}"


def timeout(spec: RunSpec) -> float:
    """Seconds that a job may work."""
    return spec.timeout if spec.timeout is not None else PRESETS[spec.preset].timeout


def _jobs(spec: RunSpec, memory: int | None) -> Iterator[PlannedJob]:
    needs: Callable[..., Needs] = lambda alone=False: Needs.of(  # noqa: E731
        device=spec.device, alone=alone, seconds=timeout(spec), memory=memory
    )
    opened = set[str]()
    for cell, evaluators in work(spec).items():
        if (data := data_job(cell.choice)) not in opened:
            opened.add(data)
            yield PlannedJob(data, f"data {cell.choice.dataset} seed {cell.choice.seed}", None, needs())
        yield PlannedJob(fit_job(cell), f"{title(cell)} fit", data, needs())
        for each in evaluators:
            alone = needs(alone=each.evaluator.alone)
            yield PlannedJob(evaluation_job(cell, each), f"{title(cell)} {each.name}", fit_job(cell), alone)


def _wanted(spec: RunSpec, place: Place) -> Iterator[tuple[str, bool]]:
    """Every job of a run, and whether it is to be done, as far as can be told before the data are opened."""
    data: dict[str, bool] = {}
    for cell, evaluators in work(spec).items():
        known = place.results.journal.data(data_key(cell.choice))
        found = {each: standing(place.results, cell, each, known, spec.isolation) for each in evaluators}
        missing = {each: to_run(there, spec.overwrite) for each, there in found.items()}
        yield from ((evaluation_job(cell, each), wanted) for each, wanted in missing.items())
        yield fit_job(cell), any(missing.values())
        name = data_job(cell.choice)
        data[name] = data.get(name, False) or any(missing.values())
        try:
            write_plan(place.results, cell, evaluators)
        except OSError as error:
            raise UsageError(f"the plan cannot be written: {error}") from error
    yield from data.items()
