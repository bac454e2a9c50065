"""A run: data, then fits, then evaluators, each in a worker; every outcome becomes a record the moment it is known."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import cast

from bench.plugins import registry
from bench.plugins.slug import slug
from bench.plugins.spec import UsageError
from bench.results.records import DatasetRecord, Kind, MetricRecord, Record, dumps, metric_record
from bench.results.store import content_key, write_atomically
from bench.runs.display import Display
from bench.runs.plan import RunSpec, Standing, record_path, remember_data, standing, to_run, work, write_plan
from bench.runs.tasks import Evaluation, Fitted, Task, evaluate_task, fit_task, open_task
from bench.runs.workers import Job, Outcome, Workers
from bench.types import Metric
from bench.workbench.cell import Cell, DataChoice, Evaluator, Place, evaluator_inputs, plugin_record
from bench.workbench.machine import git_state, versions
from bench.workbench.presets import PRESETS, PROBES, Preset
from bench.workbench.workbench import drop_releases

DATA_SECONDS = 24 * 3600.0  # decoding starts afresh after a stop, so a large set is never stopped by --timeout


@dataclass
class Summary:
    """What a run came to: all records of its cells, how many were computed now, and which data did not open."""

    records: list[Record] = field(default_factory=list)
    computed: int = 0
    unopened: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[Record]:
        """The records that say failed or timed out."""
        return [record for record in self.records if record.status in ("failed", "timed-out")]


def run(spec: RunSpec, place: Place, display: Display) -> Summary:
    """Do what is missing of `spec`, and return the records of all of it."""
    notify = display.progress
    with Workers(jobs=spec.jobs, memory=spec.memory, notify=notify) as workers:
        scheduler = _Scheduler(spec, place, display, workers)
        scheduler.start()
        while (finished := workers.next()) is not None:
            job, outcome = finished
            display.finished(job.name, outcome)
            scheduler.follow.pop(job.name)(outcome)
    return scheduler.summary


class _Scheduler:
    """Submits a job as soon as what it needs is there. `follow` says what to do with each job's outcome."""

    def __init__(self, spec: RunSpec, place: Place, display: Display, workers: Workers) -> None:
        self.spec, self.place, self.display, self.workers = spec, place, display, workers
        self.planned = work(spec)
        self.summary = Summary()
        self.follow: dict[str, Callable[[Outcome], None]] = {}
        self.waiting: dict[Cell, int] = {}
        for evaluator in {each for planned in self.planned.values() for each in planned}:
            described(evaluator.metrics)  # a metric that no record could describe shows before any work

    def start(self) -> None:
        """Open every choice of data; the rest follows."""
        by_data: dict[DataChoice, list[Cell]] = {}
        for cell, planned in self.planned.items():
            by_data.setdefault(cell.data, []).append(cell)
            write_plan(self.place, cell, planned)
        self.display.expect(len(by_data) + sum(1 + len(planned) for planned in self.planned.values()))
        for choice, part in by_data.items():
            name = f"{choice.dataset} seed {choice.seed}"
            log = self.place.results / "logs" / f"data-{slug(choice.dataset.name)}.log"
            argument = (choice, self.place, self.spec.device, max(1, (os.cpu_count() or 1) // self.spec.jobs))
            job = Job(f"data {name}", open_task, argument, DATA_SECONDS, log)
            self._submit(job, partial(self._opened, choice, part))

    def _opened(self, choice: DataChoice, part: Sequence[Cell], outcome: Outcome) -> None:
        if outcome.status != "ok":
            if "\n" in (outcome.reason or ""):  # the first line is already shown
                self.display.message(f"{choice.dataset}: {outcome.reason}")
            short = "the data could not be opened; the terminal says why"
            failed = Outcome(outcome.status, None, short, "data", outcome.seconds)
            for cell in part:
                # Results that are there stay there: a disk that is not mounted must not cost a day's work.
                stand = [standing(self.place, cell, each, None) for each in self.planned[cell]]
                for found in stand:
                    if found.state in ("done", "stale"):
                        self._keep(cell, found)
                self._give_up(
                    cell, None, [each.evaluator for each in stand if each.state in ("missing", "failed")], failed
                )
            self.summary.unopened.append(str(choice.dataset))
            return
        data = cast(DatasetRecord, outcome.value)
        remember_data(self.place, choice, data)
        for cell in part:
            missing = []
            for evaluator in self.planned[cell]:
                found = standing(self.place, cell, evaluator, data)
                if to_run(found, self.spec.overwrite):
                    missing.append(found.evaluator)
                else:
                    self._keep(cell, found)
            if not missing:
                self.display.skip(1)
                continue
            argument = (cell, self.place)
            log = record_path(self.place, cell, missing[0]).with_name("fit.log")
            job = Job(f"{_title(cell)} fit", fit_task, argument, self._timeout(), log)
            self._submit(job, partial(self._fitted, cell, data, missing))

    def _fitted(self, cell: Cell, data: DatasetRecord, missing: Sequence[Evaluator], outcome: Outcome) -> None:
        if outcome.status != "ok":
            self._give_up(cell, data, missing, outcome)
            return
        fitted = cast(Fitted, outcome.value)
        self.waiting[cell] = len(missing)
        for evaluator in missing:
            path = record_path(self.place, cell, evaluator)
            job = Job(
                name=f"{_title(cell)} {evaluator.name}",
                work=evaluate_task,
                argument=Task(cell, self.place, evaluator),
                timeout=self._timeout(),
                log=path.with_suffix(".log"),
                alone=evaluator.kind == "throughput",
            )
            self._submit(job, partial(self._evaluated, cell, data, evaluator, fitted))

    def _evaluated(
        self, cell: Cell, data: DatasetRecord, evaluator: Evaluator, fitted: Fitted, outcome: Outcome
    ) -> None:
        self._write(cell, data, evaluator, fitted, outcome)
        self.waiting[cell] -= 1
        failed = {record.cell for record in self.summary.failures}
        if self.waiting[cell] == 0 and cell.folder not in failed and not self.spec.keep_releases:
            drop_releases(cell, data, self.place)

    def _give_up(self, cell: Cell, data: DatasetRecord | None, missing: Sequence[Evaluator], outcome: Outcome) -> None:
        """Record the same outcome for all that can no longer run."""
        self.display.skip(len(missing) + (data is None))
        for evaluator in missing:
            self._write(cell, data, evaluator, None, outcome)

    def _keep(self, cell: Cell, found: Standing) -> None:
        self.display.skip(1)
        if found.record is not None:
            self.display.cached(f"{_title(cell)} {found.evaluator.name}")
            self.summary.records.append(found.record)

    def _write(
        self, cell: Cell, data: DatasetRecord | None, evaluator: Evaluator, fitted: Fitted | None, outcome: Outcome
    ) -> None:
        attack = evaluator.build(cell.data.preset)
        inputs = {} if data is None else evaluator_inputs(cell, data, evaluator)
        result = outcome.value if isinstance(outcome.value, Evaluation) else Evaluation({}, {}, {}, {}, {}, {}, {})
        if result.broken:
            reason = "; ".join(f"{name}: {text}" for name, text in result.broken.items())
            outcome = replace(outcome, status="failed", phase="judge", reason=reason)
        record = Record(
            status=outcome.status,
            phase=outcome.phase,
            reason=_public_reason(outcome, data),
            cell=cell.folder,
            evaluator=evaluator.name,
            kind=evaluator.kind,
            method=plugin_record("methods", cell.method, cell.build()),
            attack=None if evaluator.attack is None or attack is None
            else plugin_record("attacks", evaluator.attack, attack),
            dataset=data,
            claim=None if fitted is None else fitted.claim,
            scheme={} if fitted is None else dict(fitted.notes),
            threat_model=dict(result.threat_model),
            preset=cell.data.preset,
            seed=cell.data.seed,
            keys=_keys(evaluator.kind, PRESETS[cell.data.preset]),
            limit=cell.data.limit,
            metrics=described(evaluator.metrics),
            scores=dict(result.scores),
            not_applicable=dict(result.not_applicable),
            details=dict(result.details),
            seconds={**result.seconds, "wall": outcome.seconds},
            hardware={**result.hardware, "jobs": 1 if evaluator.kind == "throughput" else self.spec.jobs},
            versions=versions(),
            git=git_state(),
            key=content_key(inputs),
            inputs=inputs,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )  # fmt: skip
        path = record_path(self.place, cell, evaluator)
        path.with_suffix(".png").unlink(missing_ok=True)
        if result.picture is not None and data is not None and data.shareable:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".png").write_bytes(result.picture)
        write_atomically(path, dumps(record))
        self.summary.records.append(record)
        self.summary.computed += 1

    def _submit(self, job: Job, follow: Callable[[Outcome], None]) -> None:
        self.follow[job.name] = follow
        self.workers.submit(job)

    def _timeout(self) -> float:
        return self.spec.timeout if self.spec.timeout is not None else PRESETS[self.spec.preset].timeout


def described(metrics: Iterable[str]) -> dict[str, MetricRecord]:
    """What a record says of the metrics that it was asked for, by the names in the record.

    Raises:
        UsageError: A metric that tables could not show.
    """
    found = {}
    for name in metrics:
        cls = registry.load("metrics", name)
        try:
            found[cast("type[Metric[object]]", cls).name] = metric_record(cls)
        except (TypeError, ValueError) as error:
            raise UsageError(f"metric {name}: {error}") from error
    return found


def _keys(kind: Kind, preset: Preset) -> int:
    """Under how many keys an evaluator of that kind looks at releases."""
    several: dict[Kind, int] = {
        "attack": preset.keys, "membership": preset.keys, "utility": preset.utility_keys,
        "throughput": preset.repeats, "linear-probe": PROBES,
    }  # fmt: skip
    return several.get(kind, 1)


def _public_reason(outcome: Outcome, data: DatasetRecord | None) -> str | None:
    """The reason as a record may show it: no paths, and of an error on data under a use agreement only its kind."""
    if outcome.reason is None:
        return None
    if outcome.status == "failed" and data is not None and not data.shareable:
        return f"{outcome.reason.partition(':')[0]} (the rest is in the log: these data may not be shared)"
    return scrub(outcome.reason)


def scrub(text: str) -> str:
    """`text` without paths, which have no place in a record.

    >>> scrub("cannot read '/home/me/My Images/x.png': truncated, see files/p10/p10000032/y.jpg")
    'cannot read <path>: truncated, see <path>'
    """
    quoted = re.sub(r"(['\"])[^'\"]*[/\\][^'\"]*\1", "<path>", text)
    return re.sub(r"(?<![\w<])(?:[A-Za-z]:\\|/)[^\s:'\"]+|[^\s:'\"<]+/[^\s:'\"]+/[^\s:'\"]+", "<path>", quoted)


def _title(cell: Cell) -> str:
    seed = f" seed {cell.data.seed}" if cell.data.seed else ""
    return f"{cell.data.dataset}{seed} | {cell.method.shown}"
