"""A record compared with its data, fit and measurement made again here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bench.exchange.disclosed_secrets import keep_cell_secrets
from bench.exchange.tolerance import alike, score_difference
from bench.plugins.third_party import StandIn
from bench.randomness import Secret
from bench.results.reason import SAID, Code
from bench.results.records import DatasetRecord, Record
from bench.runs.tasks import FitTask, Fitted, OpenTask, fit_task, open_task
from bench.types import NotApplicable
from bench.wire.text import line
from bench.workbench.inputs import planned_of
from bench.workbench.place import Place


@dataclass(frozen=True)
class Refitted:
    """The data and the fitted method of a cell, obtained here.

    Args:
        data: The data that were opened.
        fitted: The result of fitting; None if the method does not apply.
    """

    data: DatasetRecord | None
    fitted: Fitted | None

    @classmethod
    def of(cls, record: Record) -> Refitted:
        """Those of a record that was measured here."""
        if record.status != "ok" and record.claim is None and not record.scheme:  # else it was fitted all the same
            return cls(record.dataset, None)
        fitted = Fitted(claim=record.claim, notes=record.scheme, seconds=record.seconds.get("fit", 0.0))
        return cls(record.dataset, fitted)


def recheck_fit(record: Record, people: Mapping[str, Secret], place: Place) -> Refitted | None:
    """Open a record's data and fit its method on public rows.

    None for methods of other authors, which run in a sandbox only, when something is measured again.

    Args:
        record: The record.
        people: The secrets that draw its people, by name; empty if none does.
        place: The folders to work in.

    Raises:
        UsageError: A plug-in or an option that the record names is not installed here.
        DataError: Its data are not here.
    """
    keep_cell_secrets(place.results, [record], people)
    cell, _ = planned_of(record)
    if isinstance(cell.method.plugin, StandIn):
        return None
    data = open_task(OpenTask(cell.choice, place, cell.device, 1)).data
    try:
        return Refitted(data, fit_task(FitTask(cell, place, "none")))
    except NotApplicable:
        return Refitted(data, None)


def misfits(record: Record, here: Refitted) -> Iterator[str]:
    """Wrong statements of a record about its data and fitted method."""
    if record.dataset != here.data:
        yield "its data are not those that its choice of data gives here"
    if here.fitted is None:
        if record.claim is not None or record.scheme:
            yield "it speaks of a fitted method, which does not apply to these data"
        return
    if record.status != "ok" and record.claim is None and not record.scheme:
        return
    stated, claim = record.claim, here.fitted.claim
    if (stated is None) != (claim is None):
        yield f"it holds {'no' if stated is None else 'a'} formal claim, and its method {'one' if claim else 'none'}"
    elif stated is not None and claim is not None:
        held, made = dict(stated), dict(claim)
        if "person" not in stated.model_fields_set:  # which earlier records lack
            del held["person"], made["person"]
        yield from _differences("its formal claim", held, made)
    if record.dataset is not None and record.dataset.shareable:
        yield from _differences("what its method says of itself", record.scheme, dict(here.fitted.notes))


def _differences(what: str, stated: dict[str, JsonValue], here: dict[str, JsonValue]) -> Iterator[str]:
    for name in sorted(stated.keys() | here.keys()):
        if name not in stated or name not in here or not alike(stated[name], here[name]):
            first, second = (line(str(values.get(name, "nothing")), 80) for values in (stated, here))
            yield f"{what}: {line(name, 40)} is {first} in the record, and {second} here"


BY_THE_MACHINE: frozenset[Code] = frozenset({"timed-out", "died", "out-of-memory", "disk", "data", "usage", "shadowed"})
"""Why a new measurement has no result that says nothing of the record: causes that may be this machine's."""


def unmeasured(measured: Record | None) -> str | None:
    """The reason that a new measurement has no result, or None."""
    if measured is None:
        return "not measured: no record was made here; the messages of the run say why"
    if measured.code is None or measured.code not in BY_THE_MACHINE:
        return None
    return f"not measured: {measured.status} here: {line(measured.reason or SAID[measured.code])}"


def disagreement(record: Record, measured: Record) -> str | None:
    """The first difference from a new measurement beyond the tolerance, or None."""
    if measured.status != record.status:
        reason = f": {measured.reason}" if measured.reason else ""
        return f"it says {record.status}, and here it is {measured.status}{reason}"
    if (misfit := next(misfits(record, Refitted.of(measured)), None)) is not None:
        return misfit
    if not alike(dict(record.threat_model), dict(measured.threat_model)):
        return "its account of Eve's knowledge is wrong here"
    if record.keys != measured.keys:
        return f"it says {record.keys} keys, and here they are {measured.keys}"
    for what, stated, here in (
        ("has a figure", record.scores, measured.scores),
        ("is said not to apply", record.not_applicable, measured.not_applicable),
    ):
        if apart := sorted(stated.keys() ^ here.keys()):
            return f"{apart[0]} {what} {'in the record' if apart[0] in stated else 'here'} alone"
    scores = ((name, score_difference(score, measured.scores[name])) for name, score in record.scores.items())
    return next((f"{name}: {difference}" for name, difference in scores if difference is not None), None)
