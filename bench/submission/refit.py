"""What a record says of its data and its fitted method, held against both here: fingerprints, claims, caveats."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from bench.plugins.outside import StandIn
from bench.results.records import DatasetRecord, Record
from bench.runs.answers import Fitted
from bench.runs.tasks import FitTask, OpenTask, fit_task, open_task
from bench.types import NotApplicable
from bench.wire.text import line
from bench.workbench.currency import planned_of
from bench.workbench.place import Place

CLOSE = 0.02
"""Of numbers that training gives: on another machine its sums are rounded in other ways."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Refitted:
    """A cell as it came out here.

    Args:
        data: What was opened.
        fitted: What fitting gave; None where nothing was fitted, for the method does not apply.
    """

    data: DatasetRecord | None
    fitted: Fitted | None

    @classmethod
    def of(cls, made: Record) -> Refitted:
        """What a record that was measured here says of its cell."""
        if made.status != "ok":
            return cls(made.dataset, None)
        fitted = Fitted(claim=made.claim, notes=made.scheme, seconds=made.seconds.get("fit", 0.0))
        return cls(made.dataset, fitted)


def refit(record: Record, place: Place) -> Refitted | None:
    """Open the data of a record and fit its method on the public rows: no key is made, and no release.

    None for methods of other authors, which are run in a sandbox only, where something is measured again.

    Raises:
        UsageError: Something that it names is not here.
        DataError: Its data are not here.
    """
    cell, _ = planned_of(record)
    if isinstance(cell.method.plugin, StandIn):
        return None
    data = open_task(OpenTask(cell.choice, place, cell.device, 1)).data
    try:
        return Refitted(data, fit_task(FitTask(cell, place, "none")))
    except NotApplicable:
        return Refitted(data, None)


def misfitted(record: Record, here: Refitted) -> Iterator[str]:
    """What a record says of its data and of its fitted method that is not so here, in words."""
    if record.dataset != here.data:
        yield "its data are not those that its choice of data gives here"
    if here.fitted is None:
        if record.claim is not None or record.scheme:
            yield "it speaks of a fitted method, which does not apply to these data"
        return
    if record.status != "ok" and record.claim is None and not record.scheme:
        return
    said, found = record.claim, here.fitted.claim
    if (said is None) != (found is None):
        yield f"it holds {'no' if said is None else 'a'} formal claim, and its method {'one' if found else 'none'}"
    elif said is not None and found is not None:
        yield from _unlike("its formal claim", dict(said), dict(found))
    if record.dataset is not None and record.dataset.shareable:
        yield from _unlike("what its method says of itself", record.scheme, dict(here.fitted.notes))


def _unlike(what: str, said: dict[str, JsonValue], found: dict[str, JsonValue]) -> Iterator[str]:
    for name in sorted(said.keys() | found.keys()):
        if name not in said or name not in found or not alike(said[name], found[name]):
            told, here = (line(str(each.get(name, "nothing")), 80) for each in (said, found))
            yield f"{what}: {line(name, 40)} is {told} in the record, and {here} here"


def alike(a: JsonValue, b: JsonValue) -> bool:
    """Whether two values are the same but for what another machine rounds otherwise, numbers within texts too.

    >>> alike("scale 2.001", "scale 2.002"), alike("scale 2", "scale 3"), alike(True, 1)
    (True, False, False)
    """
    if isinstance(a, str) and isinstance(b, str):
        if a == b:
            return True
        numbers = [list(map(float, NUMBER.findall(text))) for text in (a, b)]
        return NUMBER.sub("#", a) == NUMBER.sub("#", b) and all(map(_close, *numbers))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _close(a, b)
    return a == b


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-9)
