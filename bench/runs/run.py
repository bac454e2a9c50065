"""The graph of a run's jobs: data, fits, evaluations, and their records.

The process of the run holds the graph of jobs and writes all records. If it is killed, the same command goes on:
fits, releases and records are kept by content. Two commands on one folder share the cells by locks.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from filelock import FileLock, Timeout

from bench.contract.preset import PRESETS
from bench.contract.source import DataError
from bench.isolation import remove_unused
from bench.plugins import registry
from bench.plugins.configured import Configured
from bench.plugins.spec import UsageError, parse
from bench.results.build_folder import own_lock
from bench.results.reason import ABSENT, Code
from bench.results.records import DatasetRecord, NewerRecordError, Record
from bench.results.signed_json import content_key
from bench.results.signing_key import SigningKey
from bench.runs.cost import Usual
from bench.runs.display import Display, kind_of
from bench.runs.engine import Engine, Future, Job, Outcome
from bench.runs.local_engine import LocalEngine
from bench.runs.outcome_record import described, outcome_record, restricted_data, restricted_fit
from bench.runs.plan import (
    Condition,
    Plan,
    Standing,
    data_key,
    standings,
    title,
    to_run,
    unchanged,
    write_plan,
)
from bench.runs.tasks import (
    EvaluateTask,
    Evaluation,
    FitTask,
    Fitted,
    Opened,
    OpenTask,
    evaluate_task,
    fit_task,
    open_task,
)
from bench.types import Method
from bench.wire.text import line
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import cell_secret, record_inputs
from bench.workbench.place import Place
from bench.workbench.workbench import drop_releases

DATA_SECONDS = 24 * 3600.0  # decoding starts afresh after a stop, so a large set is never stopped by --timeout
_WAIT_SECONDS = 1.0


@dataclass
class Summary:
    """The records of a run, and how many were computed now.

    Args:
        records: In the order of the plan.
        kept: Counts by their condition the records that were not computed now.
        unopened: Data that did not open, and why; they have no records but those of earlier runs.
        reasons: The same in words, as the terminal has them.
        refused: Jobs that the engine did not take, and why; they have no new records either.
        planned: Number of records if all goes well.
        stopped: The signal or Ctrl-C that ended the run early.
    """

    records: list[Record] = field(default_factory=list)
    computed: int = 0
    kept: Counter[Condition] = field(default_factory=Counter)
    unopened: dict[str, Code] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    planned: int = 0
    stopped: KeyboardInterrupt | None = None

    @property
    def failures(self) -> list[Record]:
        """The records that are failed or timed out."""
        return [record for record in self.records if record.status in ("failed", "timed-out")]

    def add(self, other: Summary) -> None:
        """Add the summary of another part of the same run."""
        self.records += other.records
        self.computed += other.computed
        self.kept += other.kept
        self.unopened |= other.unopened
        self.reasons |= other.reasons
        self.refused |= other.refused
        self.planned += other.planned
        self.stopped = self.stopped or other.stopped


def run(
    plan: Plan,
    place: Place,
    display: Display,
    signer: SigningKey | None = None,
    engine: Engine | None = None,
    usual: Usual | None = None,
) -> Summary:
    """Compute missing records, and return all.

    A signal or Ctrl-C ends the jobs, and the summary holds it in place of an exception; the next one is raised.

    Args:
        plan: The wanted run beside what is on record.
        place: The place of its work.
        display: The user's display.
        signer: Signs new records; it never leaves this process.
        engine: Runs the jobs, and stays open; None for workers on this machine.
        usual: The seconds of its jobs as a rule, for the time left.
    """
    spec = plan.spec
    with contextlib.ExitStack() as stack:
        stack.callback(remove_unused, place.results.rooms)  # of workers that were killed
        if engine is None:
            workers = LocalEngine(jobs=spec.jobs, memory=spec.memory, notify=display.progress)
            engine = stack.enter_context(contextlib.closing(workers))
        graph = _Graph(plan, place, display, engine, signer, usual or Usual())
        stack.callback(graph.release)
        try:
            graph.start()
            while (future := engine.next()) is not None or graph.go_on():
                if future is not None:
                    graph.finished(future)
        except KeyboardInterrupt as stopped:
            graph.summary.stopped = stopped
        graph.sort()
        return graph.summary


class _Graph:
    """The jobs of a run; `_follow` holds what each outcome leads to."""

    def __init__(
        self, plan: Plan, place: Place, display: Display, engine: Engine, signer: SigningKey | None, usual: Usual
    ) -> None:
        self.plan, self.spec, self.display, self.engine = plan, plan.spec, display, engine
        self.place, self.usual = replace(place, memory=plan.spec.memory), usual
        self.signer = signer  # never part of a job: workers run plug-ins
        self.results = place.results
        self.summary = Summary(planned=sum(len(each) for each in plan.cells.values()))
        self._follow: dict[Future, Callable[[Future], None]] = {}
        self._left: dict[Cell, int] = {}  # evaluations without an outcome
        self._locks: dict[Cell, FileLock] = {}
        self._commitments: dict[Cell, str] = {}
        self._taken: list[tuple[Cell, DatasetRecord]] = []  # that another command works on
        self._said_taken = set[Cell]()
        self._looked = 0.0
        for evaluator in {each.planned for found in plan.cells.values() for each in found}:
            described(evaluator.metrics)  # a metric that no record could describe shows before any work

    def start(self) -> None:
        """Open every choice of data; the rest follows."""
        jobs = self.plan.work(kept=True)
        self.display.expect(len(jobs), self.usual.by_kind(jobs))
        self.display.workers = self.engine.at_a_time
        for choice, known in self.plan.known.items():
            cells = self.plan.of(choice)
            nothing_left = not any(self.plan.again(cell) for cell in cells)
            if known is not None and nothing_left and unchanged(choice, self.place, known):
                self.display.skip(1, "data")
                self._opened(choice, cells, known)
                continue
            workers = max(1, (os.cpu_count() or 1) // self.spec.jobs)
            job = Job(
                name=f"data {choice.dataset} seed {choice.seed}",
                work=open_task,
                argument=OpenTask(choice, self.place, self.spec.device, workers),
                answer=Opened,
                timeout=DATA_SECONDS,
                keeps=self._keeps(choice),
                prepares=True,
                device=self.spec.device,
                log=self.results.log(_data_log(choice)),
                restricted=not choice.dataset.plugin.shareable,
                heard=(DataError, UsageError),
            )
            self._submit([job], [partial(self._data, choice, cells)])

    def finished(self, future: Future) -> None:
        """Take a job's outcome, and submit what it was needed for."""
        if future.ran:
            self.display.finished(future.job.name, cast(Outcome, future.outcome))
        else:
            self.display.skip(1, kind_of(future.job.name))
        self._follow.pop(future)(future)
        self.engine.forget(future)
        self.go_on(wait=False)

    def go_on(self, *, wait: bool = True) -> bool:
        """Take up cells that another command left; True if some were waiting."""
        if not self._taken or (not wait and time.monotonic() - self._looked < _WAIT_SECONDS):
            return False
        self._looked = time.monotonic()
        taken, self._taken = self._taken, []
        for cell, data in taken:
            self._cell(cell, data, again=True)
        if wait and len(self._taken) == len(taken):
            time.sleep(_WAIT_SECONDS)
        return True

    def release(self) -> None:
        """Let other commands have the cells that this one has not finished."""
        for lock in self._locks.values():
            lock.release()

    def sort(self) -> None:
        """Put the records into the order of the plan."""
        planned = ((cell.folder, each.planned.name) for cell, found in self.plan.cells.items() for each in found)
        places = {name: place for place, name in enumerate(planned)}
        self.summary.records.sort(key=lambda record: places[record.cell, record.evaluator])

    def _data(self, choice: Choice, cells: Sequence[Cell], future: Future) -> None:
        outcome = cast(Outcome, future.outcome)
        if not future.ok:
            self._unopened(choice, cells, future)
            return
        data = cast(Opened, outcome.value).data
        if not data.shareable:
            data = restricted_data(data)
        self.results.journal.keep_data(data_key(choice), data)
        self.display.message(opened_text(choice, data))
        self._opened(choice, cells, data)

    def _opened(self, choice: Choice, cells: Sequence[Cell], data: DatasetRecord) -> None:
        if self.place.results.began_under is None:
            commitment = self.results.keep_secret().root.commitment()  # before any worker asks for it
            self.place = replace(self.place, results=replace(self.results, began_under=commitment))
        for cell in cells:
            write_plan(self.results, cell, [each.planned for each in self.plan.cells[cell]])
            self._cell(cell, data, again=data != self.plan.known[choice])

    def _cell(self, cell: Cell, data: DatasetRecord, *, again: bool) -> None:
        """Submit the jobs of a cell, planned again if data changed."""
        found: Sequence[Standing] = self.plan.cells[cell]
        if again:
            found = standings(self.results, cell, [each.planned for each in found], data, self.spec)
        wanted = [each for each in found if to_run(each, self.spec.overwrite)]
        if wanted and not self._locked(cell):
            if cell not in self._said_taken:
                self._said_taken.add(cell)
                self.display.message(f"another command works on {title(cell)}: this one takes up what that leaves")
            self._taken.append((cell, data))
            return
        if not again and any(self._appeared(cell, each) for each in wanted):
            self._cell(cell, data, again=True)  # another command was faster
            return
        for each in found:
            if each not in wanted:
                self._keep(cell, each)
            elif each.state != "missing":
                self.display.message(f"again: {title(cell)} {each.planned.name}: {line(each.reason)}")
        if not wanted:
            self.display.skip(1, "fit")
            if self._locked(cell):
                self._complete(cell, data)  # a run that was killed may have left releases
                self._unlock(cell)
            return
        self._submit_cell(cell, data, wanted)

    def _appeared(self, cell: Cell, found: Standing) -> bool:
        missing = found.state == "missing" and found.record is None
        return missing and self.results.holds(cell.folder, found.planned.name)

    def _submit_cell(self, cell: Cell, data: DatasetRecord, wanted: Sequence[Standing]) -> None:
        """The fit of a cell, and its evaluations after it."""
        self._commitments[cell] = cell_secret(self.place.results, cell, data).commitment()
        timeout = self.spec.timeout if self.spec.timeout is not None else PRESETS[self.spec.preset].timeout
        common = partial(Job, device=cell.device, timeout=timeout, restricted=not data.shareable)
        fit = common(
            name=f"{title(cell)} fit",
            work=fit_task,
            argument=FitTask(cell, self.place, self.spec.isolation),
            answer=Fitted,
            keeps=self._keeps(cell.choice, cell.method),
            prepares=True,
            log=self.results.log(cell.folder, "fit"),
        )
        (fitted,) = self._submit([fit], [lambda future: None])
        self._left[cell] = len(wanted)
        jobs = [
            common(
                name=f"{title(cell)} {each.planned.name}",
                work=evaluate_task,
                argument=EvaluateTask(cell, self.place, each.planned, self.spec.isolation),
                answer=Evaluation,
                keeps=self._keeps(cell.choice, cell.method, each.planned),
                alone=each.planned.evaluator.alone,
                log=self.results.log(cell.folder, each.planned.name),
                key=self._key(cell, data, each),
            )
            for each in wanted
        ]
        self._submit(jobs, [partial(self._evaluated, cell, data, each, fitted) for each in wanted], after=[fitted])

    def _key(self, cell: Cell, data: DatasetRecord, found: Standing) -> str:
        """The content key of an evaluation, for outcomes that outlive a run."""
        if not self.engine.keeps_outcomes:
            return ""
        inputs = record_inputs(cell, data, found.planned, self._commitments[cell])
        before = None if found.record is None else found.record.digest
        return content_key({"inputs": inputs, "isolation": self.spec.isolation, "before": before})

    def _unopened(self, choice: Choice, cells: Sequence[Cell], future: Future) -> None:
        """Write no records for data that do not open.

        Results that are there stay there: a disk that is not mounted must not cost a day's work.
        """
        outcome = cast(Outcome, future.outcome)
        if future.refused is not None:
            self.summary.refused[future.job.name] = future.refused
        else:
            assert outcome.code is not None
            self.summary.unopened[str(choice.dataset)] = outcome.code
            self.summary.reasons[str(choice.dataset)] = outcome.reason or outcome.code
            if outcome.code in ABSENT:
                self.results.forget_log(_data_log(choice))  # the terminal has said it all
        for cell in cells:
            self.display.skip(1, "fit")
            for found in self.plan.cells[cell]:
                if found.state in ("missing", "failed"):
                    self.display.skip(1, found.planned.name)
                else:
                    self._keep(cell, found)

    def _evaluated(self, cell: Cell, data: DatasetRecord, found: Standing, fit: Future, future: Future) -> None:
        if future.refused is not None:
            self.summary.refused[future.job.name] = future.refused
        else:
            fitted = None if not fit.ok else cast(Fitted, cast(Outcome, fit.outcome).value)
            if fitted is not None and not data.shareable:
                fitted = restricted_fit(fitted)
            self._write(cell, data, found, fitted, cast(Outcome, future.outcome))
        self._left[cell] -= 1
        if not self._left[cell]:
            if fit.ok:
                self._complete(cell, data)
            self._unlock(cell)

    def _complete(self, cell: Cell, data: DatasetRecord) -> None:
        """Drop the releases of a finished cell, unless they are still needed."""
        if not self.spec.keep_releases and not any(record.cell == cell.folder for record in self.summary.failures):
            keys = max(each.planned.evaluator.keys(cell.choice.sizes) for each in self.plan.cells[cell])
            drop_releases(cell, data, self.results, keys, apart=self.spec.isolation != "none")

    def _keep(self, cell: Cell, found: Standing) -> None:
        self.display.skip(1, found.planned.name)
        if found.record is not None:
            self.display.cached(f"{title(cell)} {found.planned.name}")
            self.summary.records.append(found.record)
            self.display.measured(found.record)
        self.summary.kept[found.state] += 1

    def _write(self, cell: Cell, data: DatasetRecord, found: Standing, fitted: Fitted | None, outcome: Outcome) -> None:
        made = outcome_record(
            cell, data, found.planned, fitted, outcome, commitment=self._commitments[cell],
            jobs=self.engine.at_a_time, isolation=self.spec.isolation,
        )  # fmt: skip
        before = None if found.record is None else found.record.digest
        try:
            kept = self.results.keep(made.record, made.pictures, self.signer, evidence=made.evidence, before=before)
        except NewerRecordError as error:  # another version has written it in the meantime
            self.display.message(str(error))
            self.summary.kept["newer"] += 1
        else:
            self.summary.records.append(kept)
            self.summary.computed += 1
            self.display.measured(kept)

    def _locked(self, cell: Cell) -> bool:
        """True if this command holds the cell's lock."""
        if cell in self._locks:
            return True
        lock = own_lock(self.results.cell_lock(cell.folder))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        except (NotImplementedError, OSError):  # no locks here: work may be done twice
            return True
        self._locks[cell] = lock
        return True

    def _unlock(self, cell: Cell) -> None:
        if (lock := self._locks.pop(cell, None)) is not None:
            lock.release()

    def _keeps(self, choice: Choice, method: Configured[Method] | None = None, planned: Planned | None = None) -> bool:
        """True if all code that the worker runs is this project's."""
        parts: list[Configured[Any] | None] = [choice.dataset, choice.beside, choice.extractor]
        if self.spec.isolation == "none":  # else these work in processes of their own
            parts += [method, None if planned is None else planned.attack]
        if any(part is not None and not part.ours for part in parts):
            return False
        return planned is None or (_judged_by_us(planned) and not planned.evaluator.alone)

    def _submit(
        self, jobs: Sequence[Job], follow: Sequence[Callable[[Future], None]], after: Sequence[Future] = ()
    ) -> list[Future]:
        futures = self.engine.submit(jobs, after)
        self._follow.update(zip(futures, follow, strict=True))
        return futures


def _judged_by_us(planned: Planned) -> bool:
    """True if the evaluator and its metrics are this project's."""
    origins = [registry.origin("evaluators", planned.written)]
    origins += [registry.origin("metrics", parse(name).name) for name in planned.metrics]
    return all(origin == registry.HOME for origin in origins)


def _data_log(choice: Choice) -> str:
    return f"data-{choice.dataset.name}"


def opened_text(choice: Choice, data: DatasetRecord) -> str:
    """The rows of each split, and the notes of the data set."""
    return line(f"{choice.dataset}: {data.counts} rows; {'; '.join(data.notes)}".removesuffix("; "))
