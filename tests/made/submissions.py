"""A results folder as an author hands it in: a method, two attacks and their controls on digits, measured here."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bench.plugins.chosen import choose
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.display import Display
from bench.runs.engine import Engine, Future, Job, Outcome
from bench.runs.plan import evaluators, plan_run
from bench.runs.run import execute
from bench.runs.run_spec import RunSpec
from bench.types import NotApplicable
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice
from bench.workbench.currency import planned_of
from bench.workbench.place import Place

METHOD, ATTACKS = "mosaic", ("chance", "nearest-neighbour")
METRICS = ("reid-auc", "throughput")
CHOICE = {"dataset": "digits", "preset": "smoke"}


def few(choice: Choice) -> list[Planned]:
    """What a row needs in these tests, in place of all that the project measures."""
    return evaluators([choose("attacks", name, choice.preset) for name in ATTACKS], METRICS)


class Inline(Engine):
    """An engine that does a job the moment it is asked for its outcome, here."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Future] = []

    def _start(self, futures: Sequence[Future]) -> None:
        self._waiting += futures

    def _busy(self) -> bool:
        return bool(self._waiting)

    def _advance(self) -> None:
        future = self._waiting.pop(0)
        self._finish(future, _outcome(future.job))

    def close(self) -> None:
        self._waiting = []


def _outcome(job: Job) -> Outcome:
    try:
        value = job.work(job.argument)
    except NotApplicable as reason:
        return Outcome("not-applicable", None, "not-applicable", str(reason), "attack", 1.0)
    except UsageError as reason:
        return Outcome("failed", None, "usage", str(reason), "data", 1.0)
    return Outcome("ok", value, None, None, None, 1.0)


def place_of(folder: Path, cache: Path) -> Place:
    return Place(Results(folder), cache, ())


def spec(methods: Sequence[str], *, controls: bool, attacks: Sequence[str] = ATTACKS,
         metrics: Sequence[str] = METRICS) -> RunSpec:  # fmt: skip
    return RunSpec(
        choices=(Choice.read(CHOICE),), methods=tuple(choose("methods", name, "smoke") for name in methods),
        attacks=tuple(choose("attacks", name, "smoke") for name in attacks), metrics=tuple(metrics), controls=controls,
        evaluators=(), device="cpu", jobs=1, timeout=None, memory=2**33, overwrite="failed", keep_releases=False,
        isolation="none",
    )  # fmt: skip


def run(wanted: RunSpec, where: Place) -> None:
    """Measure in this process, and say that it was a sandbox's: what is tested here is what becomes of records."""
    display = Display(Console(file=io.StringIO()))
    execute(plan_run(wanted, where.results), where, display, Inline())
    for _, record in list(where.results.records()):
        assert isinstance(record, Record), record
        if record.isolation == "none":
            pictures = {name: where.results.picture(record, name) for name in record.pictures}
            kept = {name: png for name, png in pictures.items() if png is not None}
            sandboxed = record.model_copy(update={"isolation": "sandbox", "digest": None})
            where.results.keep(sandboxed, kept, evidence=where.results.evidence(record))


def handed_in(folder: Path, cache: Path) -> Results:
    where = place_of(folder, cache)
    where.results.keep_secret(Secret.of_seed(0, "handed in"))
    run(spec([METHOD], controls=True), where)
    return where.results


def again(folder: Path, cache: Path, records: Sequence[Record], secret: Secret) -> Mapping[str, Record]:
    """As `bench.exchange.verify.run_again`, in this process; results under a secret are kept."""
    where = place_of(folder / secret.commitment()[:12], cache)
    where.results.keep_secret(secret)
    for record in records:
        cell, planned = planned_of(record)
        attacks = [] if planned.attack is None else [str(planned.attack)]
        run(spec([str(cell.method)], controls=False, attacks=attacks, metrics=planned.metrics), where)
    made = (found for _, found in where.results.records() if isinstance(found, Record))
    return {f"{record.cell}/{record.evaluator}": record for record in made}
