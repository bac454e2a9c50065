"""A submission: a method, two attacks and their controls on digits, and its forgeries."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.exchange import check
from bench.exchange.bundle_tiers import Verified, assign_tiers
from bench.exchange.disclosed_secrets import keep_cell_secrets
from bench.exchange.submit import submit
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import signed_json
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.verdict import Judged
from bench.runs.display import Display
from bench.runs.engine import Engine, Future, Job, Outcome
from bench.runs.plan import evaluators, plan_run
from bench.runs.run import run as run_plan
from bench.runs.run_spec import RunSpec
from bench.types import NotApplicable
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import planned_of
from bench.workbench.place import Place
from made import submissions

METHOD, ATTACKS = "mosaic", ("chance", "nearest-neighbour")
METRICS = ("reid-auc", "throughput")
RECORDED_ATTACKS, RECORDED_METRICS = (*ATTACKS, "moments", "dcr"), ("reid-auc", "membership-auc")
CHOICE = {"dataset": "digits", "preset": "smoke"}


def few(choice: Choice, *, recorded: bool = False) -> list[Planned]:
    """What a row needs in these tests, in place of all that the project measures."""
    attacks, metrics = (RECORDED_ATTACKS, RECORDED_METRICS) if recorded else (ATTACKS, METRICS)
    return evaluators([configure("attacks", name, choice.preset) for name in attacks], metrics)


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
         metrics: Sequence[str] = METRICS, choice: Choice | None = None) -> RunSpec:  # fmt: skip
    return RunSpec(
        choices=(choice or Choice.read(CHOICE),),
        methods=tuple(configure("methods", name, "smoke") for name in methods),
        attacks=tuple(configure("attacks", name, "smoke") for name in attacks), metrics=tuple(metrics),
        controls=controls, evaluators=(), device="cpu", jobs=1, timeout=None, memory=2**33, overwrite="failed",
        keep_releases=False, isolation="none",
    )  # fmt: skip


def run(wanted: RunSpec, where: Place) -> None:
    """Measure in this process, and say that it was a sandbox's: what is tested here is what becomes of records."""
    display = Display(Console(file=io.StringIO()))
    run_plan(plan_run(wanted, where.results), where, display, engine=Inline())
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


def again(
    folder: Path, cache: Path, records: Sequence[Record], secrets: Mapping[str, Secret] | None = None
) -> Mapping[str, Record]:
    """As `bench.exchange.verify.run_again`, in this process; results under secrets are kept."""
    known = sorted(secret.commitment() for secret in (secrets or {}).values())
    where = place_of(folder / content_key({"secrets": known}), cache)  # type: ignore[dict-item]
    keep_cell_secrets(where.results, records, secrets or {})
    for record in records:
        cell, planned = planned_of(record)
        attacks = [] if planned.attack is None else [str(planned.attack)]
        method = [str(cell.method)]
        run(spec(method, controls=False, attacks=attacks, metrics=planned.metrics, choice=cell.choice), where)
    made = (found for _, found in where.results.records() if isinstance(found, Record))
    return {f"{record.cell}/{record.evaluator}": record for record in made}


@dataclass(frozen=True)
class Handed:
    """An author's folder, the bundle made of it, and the prepared data."""

    folder: Path
    results: Results
    bundle: Bundle
    cache: Path


def hand_in(folder: Path) -> Handed:
    """Measure, and pack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        results = submissions.handed_in(folder / "results", folder / "cache")
        assert submit(results, folder / "a.bundle.zip", disclose=True)[1] == ()
    return Handed(folder, results, Bundle.open(folder / "a.bundle.zip"), folder / "cache")


Change = Callable[[dict[str, Any]], object]


def forged(handed: Handed, changes: Mapping[str, Change], **files: bytes | None) -> Bundle:
    """The bundle with records changed, as a forger does who knows how digests and keys are made.

    Args:
        handed: What was handed in.
        changes: By the end of a record's name.
        files: Other files, in place of those whose names begin so; None takes them out.
    """
    made: dict[str, bytes] = {}
    for name, content in handed.bundle.files.items():
        told = [change for end, change in changes.items() if name.endswith(end) and name.startswith("cells/")]
        for change in told:
            record = signed_json.parsed(content)
            change(record)
            record["key"] = content_key(record["inputs"])  # type: ignore[arg-type]
            content = signed_json.written(signed_json.attest(record, "record"))
        made[name] = content
    for name, other in files.items():
        made = {each: text for each, text in made.items() if not each.startswith(name)}
        if other is not None:
            made[name] = other
    # No forger leaves evidence behind that no record speaks of any more: its name ends with the start of its hash.
    spoken = b"".join(content for name, content in made.items() if name.endswith(".json"))
    ending = ".safetensors"
    idle = {name for name in handed.bundle.files.keys() & made.keys() if name.endswith(ending)
            and name.removesuffix(ending).rpartition("-")[2].encode() not in spoken}  # fmt: skip
    return packed(handed, {name: content for name, content in made.items() if name not in idle})


def packed(handed: Handed, files: Mapping[str, bytes]) -> Bundle:
    """The bundle with other files, its manifest made anew: what `Bundle.open` would give."""
    return replace(handed.bundle, files=files)


def judged(of: Bundle, **more: Any) -> Verified:
    return assign_tiers(of, **more)


def tiers(found: Verified) -> dict[str, str]:
    """The tiers of the method's own records, by evaluator."""
    assert found.verdict is not None, found.refused
    return {
        f"{evaluator}.json": judged.tier.word
        for cell, row in found.verdict.rows.items()
        if f"/{submissions.METHOD}--" in f"/{cell.partition('/')[2]}"
        for evaluator, judged in row.records.items()
    }


def found_of(found: Verified) -> list[Judged]:
    """What was found of every record."""
    assert found.verdict is not None, found.refused
    return [judged for row in found.verdict.rows.values() for judged in row.records.values()]
