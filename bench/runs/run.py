"""A run: data, then fits, then evaluators, each in a worker; every outcome becomes a record the moment it is known."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import cast

from bench.contract.source import DataError
from bench.isolation import remove_unused
from bench.plugins.spec import UsageError
from bench.results.reason import ABSENT
from bench.results.records import (
    DatasetRecord,
    NewerRecordError,
)
from bench.results.signing_key import SigningKey
from bench.runs.answers import Evaluation, Fitted, Opened
from bench.runs.at_hand import opened
from bench.runs.backend import Backend, Job, Outcome
from bench.runs.display import Display
from bench.runs.imported import imported
from bench.runs.ledger import Alone, Ledger
from bench.runs.ours import judged_by_us, opened_by_us
from bench.runs.outcome_record import described, outcome_record
from bench.runs.plan import Standing, data_key, standing, to_run, work, write_plan
from bench.runs.planned_run import DATA_SECONDS, data_job, evaluation_job, fit_job, timeout, title
from bench.runs.restricted import restricted_data, restricted_fit
from bench.runs.run_spec import RunSpec
from bench.runs.summary import Summary
from bench.runs.tasks import EvaluateTask, FitTask, OpenTask, evaluate_task, fit_task, open_task
from bench.runs.workers import Workers
from bench.wire.text import line
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import drop_releases


def run(spec: RunSpec, place: Place, display: Display, signer: SigningKey | None = None) -> Summary:
    """Do what is missing of `spec`, and return the records of all of it; new ones are signed by `signer`.

    A signal or Ctrl-C ends the workers, and the summary says so in place of an exception; the next one is raised.
    """
    more = imported(work(spec), place.results)
    try:
        with closing(Workers(jobs=spec.jobs, memory=spec.memory, notify=display.progress, imported=more)) as workers:
            return execute(spec, place, display, workers, signer)
    finally:
        remove_unused(place.results.rooms)  # of workers that were killed


def execute(
    spec: RunSpec, place: Place, display: Display, backend: Backend, signer: SigningKey | None = None,
    ledger: Ledger | None = None,
) -> Summary:  # fmt: skip
    """As `run`, on any back end; with a `ledger`, together with others that do jobs of the same run."""
    scheduler = _Scheduler(spec, place, display, backend, signer, ledger or Alone(spec.jobs))
    try:
        scheduler.start()
        while (finished := backend.next()) is not None:
            job, outcome = finished
            if outcome.elsewhere:
                display.skip(1)
            else:
                display.finished(job.name, outcome)
            scheduler.follow.pop(job.number)(outcome)
    except KeyboardInterrupt as stopped:
        scheduler.summary.stopped = stopped
    return scheduler.summary


class _Scheduler:
    """Submits a job as soon as what it needs is there. `follow` says what to do with each job's outcome."""

    def __init__(
        self, spec: RunSpec, place: Place, display: Display, backend: Backend, signer: SigningKey | None,
        ledger: Ledger,
    ) -> None:  # fmt: skip
        self.spec, self.display, self.backend, self.ledger = spec, display, backend, ledger
        self.place = replace(place, memory=spec.memory)
        self.signer = signer  # never part of a task: workers run plug-ins
        self.results = place.results
        self.planned = work(spec)
        self.summary = Summary()
        self.follow: dict[int, Callable[[Outcome], None]] = {}
        self.waiting: dict[Cell, int] = {}
        self.before: dict[tuple[Cell, str], str | None] = {}  # records that are made again, by their digests
        self.numbers = itertools.count()
        for evaluator in {each for planned in self.planned.values() for each in planned}:
            described(evaluator.metrics)  # a metric that no record could describe shows before any work
        self.commitment: str | None = None  # until any data are opened
        self.summary.planned = sum(len(planned) for planned in self.planned.values())

    def start(self) -> None:
        """Open every choice of data; the rest follows."""
        by_data: dict[Choice, list[Cell]] = {}
        for cell in self.planned:
            by_data.setdefault(cell.choice, []).append(cell)
        self.display.expect(len(by_data) + sum(1 + len(planned) for planned in self.planned.values()))
        for choice, part in by_data.items():
            name = f"{choice.dataset} seed {choice.seed}"
            workers = max(1, (os.cpu_count() or 1) // self.spec.jobs)
            job = Job(
                name=f"data {name}",
                work=open_task,
                argument=OpenTask(choice, self.place, self.spec.device, workers),
                answer=Opened,
                timeout=DATA_SECONDS,
                keeps=self._keeps(choice),
                prepares=True,
                device=self.spec.device,
                key=data_job(choice),
                log=self.results.log(_data_log(choice)),
                restricted=not choice.dataset.plugin.shareable,
                heard=(DataError, UsageError),
            )
            planned = {cell: self.planned[cell] for cell in part}
            here = None if self.ledger.shared else opened(job, planned, self.results, self.display.progress)
            if here is None:
                self._submit(job, partial(self._opened, choice, part))
            else:
                self.display.finished(job.name, here)
                self._opened(choice, part, here)

    def _opened(self, choice: Choice, part: Sequence[Cell], outcome: Outcome) -> None:
        if outcome.status != "ok":
            self._unopened(choice, part, outcome)
            return
        data = cast(Opened, outcome.value).data
        if not data.shareable:
            data = restricted_data(data)
        if self.commitment is None:
            self.commitment = self.results.keep_secret().commitment()  # before any worker asks for it
            self.place = replace(self.place, results=replace(self.results, began_under=self.commitment))
        if not outcome.elsewhere:
            self.results.journal.keep_data(data_key(choice), data)
            self.display.message(opened_text(choice, data))
        for cell in part:
            if not self.ledger.shared:  # else it is written by whoever planned the run
                write_plan(self.results, cell, self.planned[cell])
            missing = []
            for planned in self.planned[cell]:
                if self.ledger.settled(evaluation_job(cell, planned)):
                    self.display.skip(1)
                    continue
                found = standing(self.results, cell, planned, data, self.spec.isolation)
                if to_run(found, self.spec.overwrite):
                    missing.append(found.planned)
                    self.before[cell, planned.name] = None if found.record is None else found.record.digest
                else:
                    self._keep(cell, found)
                    self.ledger.settle(evaluation_job(cell, planned))
            if not missing:
                self.display.skip(1)
                self._complete(cell, data)  # a run that was killed may have left releases
                self.ledger.settle(fit_job(cell))
                continue
            log = self.results.log(cell.folder, "fit")
            job = Job(
                name=f"{title(cell)} fit",
                key=fit_job(cell),
                device=cell.device,
                work=fit_task,
                argument=FitTask(cell, self.place, self.spec.isolation),
                answer=Fitted,
                timeout=timeout(self.spec),
                keeps=self._keeps(choice),
                prepares=True,
                log=log,
                restricted=not data.shareable,
            )
            self._submit(job, partial(self._fitted, cell, data, missing))

    def _unopened(self, choice: Choice, part: Sequence[Cell], outcome: Outcome) -> None:
        """Nothing is written of data that do not open: what was asked for was not tried.

        Results that are there stay there: a disk that is not mounted must not cost a day's work.
        """
        assert outcome.code is not None
        self.summary.unopened[str(choice.dataset)] = outcome.code
        if outcome.code in ABSENT:
            self.results.forget_log(_data_log(choice))  # the terminal has said it all
        for cell in part:
            self.display.skip(1)
            for planned in self.planned[cell]:
                found = standing(self.results, cell, planned, None, self.spec.isolation)
                if found.state in ("missing", "failed"):
                    self.display.skip(1)
                else:
                    self._keep(cell, found)

    def _fitted(self, cell: Cell, data: DatasetRecord, missing: Sequence[Planned], outcome: Outcome) -> None:
        if outcome.status != "ok":
            self._give_up(cell, data, missing, outcome)
            return
        fitted = cast(Fitted, outcome.value)
        if not data.shareable:
            fitted = restricted_fit(fitted)
        self.waiting[cell] = len(missing)
        for planned in missing:
            job = Job(
                name=f"{title(cell)} {planned.name}",
                key=evaluation_job(cell, planned),
                device=cell.device,
                work=evaluate_task,
                argument=EvaluateTask(cell, self.place, planned, self.spec.isolation),
                answer=Evaluation,
                timeout=timeout(self.spec),
                log=self.results.log(cell.folder, planned.name),
                keeps=self._keeps(cell.choice, planned),
                alone=planned.evaluator.alone,
                restricted=not data.shareable,
            )
            self._submit(job, partial(self._evaluated, cell, data, planned, fitted))

    def _evaluated(self, cell: Cell, data: DatasetRecord, planned: Planned, fitted: Fitted, outcome: Outcome) -> None:
        if not outcome.elsewhere:
            self._write(cell, data, planned, fitted, outcome)
        self.waiting[cell] -= 1
        if not self.waiting[cell]:
            self._complete(cell, data)

    def _complete(self, cell: Cell, data: DatasetRecord) -> None:
        """Nothing of the cell is left to do: its releases go, unless they are wanted or a job may be tried again."""
        if not self.spec.keep_releases and not any(record.cell == cell.folder for record in self.summary.failures):
            keys = max(each.evaluator.keys(cell.choice.sizes) for each in self.planned[cell])
            drop_releases(cell, data, self.results, keys, apart=self.spec.isolation != "none")

    def _give_up(self, cell: Cell, data: DatasetRecord, missing: Sequence[Planned], outcome: Outcome) -> None:
        """Record the same outcome for all that can no longer run."""
        self.display.skip(len(missing))
        for planned in [] if outcome.elsewhere else missing:
            self._write(cell, data, planned, None, outcome)
            self.ledger.settle(evaluation_job(cell, planned), failed=outcome.status != "not-applicable")

    def _keep(self, cell: Cell, found: Standing) -> None:
        self.display.skip(1)
        if found.record is not None:
            self.display.cached(f"{title(cell)} {found.planned.name}")
            self.summary.records.append(found.record)
            self.display.measured(found.record)
        self.summary.kept[found.state] += 1

    def _write(
        self, cell: Cell, data: DatasetRecord, planned: Planned, fitted: Fitted | None, outcome: Outcome
    ) -> None:
        made = outcome_record(
            cell, data, planned, fitted, outcome, commitment=self.commitment,
            jobs=self.ledger.at_a_time(), isolation=self.spec.isolation,
        )  # fmt: skip
        try:
            before = self.before[cell, planned.name]
            kept = self.results.keep(made.record, made.pictures, self.signer, evidence=made.evidence, before=before)
        except NewerRecordError as error:  # another version has written it in the meantime
            self.display.message(str(error))
            self.summary.kept["newer"] += 1
        else:
            self.summary.records.append(kept)
            self.summary.computed += 1
            self.display.measured(kept)

    def _keeps(self, choice: Choice, planned: Planned | None = None) -> bool:
        """Whether a worker is kept for the next job: on CUDA, where it holds a context, if all of its code is ours."""
        if self.spec.device != "cuda" or self.spec.isolation == "none" or not opened_by_us(choice):
            return False
        return planned is None or (judged_by_us(planned) and not planned.evaluator.alone)

    def _submit(self, job: Job, follow: Callable[[Outcome], None]) -> None:
        job = replace(job, number=next(self.numbers))
        self.follow[job.number] = follow
        self.backend.submit(job)


def _data_log(choice: Choice) -> str:
    return f"data-{choice.dataset.name}"


def opened_text(choice: Choice, data: DatasetRecord) -> str:
    """What will be looked at, and what the data set says of itself."""
    return line(f"{choice.dataset}: {data.counts} rows; {'; '.join(data.notes)}".removesuffix("; "))
