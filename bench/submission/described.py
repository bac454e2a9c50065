"""Whether a record of the code that is installed says of itself what that code says: who measured what, under how many
keys, by which metrics, and what Eve knew. It takes no data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from bench.plugins import registry
from bench.results.records import PluginRecord, Record, metric_record
from bench.types import Method, Metric
from bench.wire.text import line
from bench.workbench.currency import planned_of
from bench.workbench.inputs import plugin_record

SHARED = ("choice", "dataset", "device", "method", "claim", "scheme")
"""What the records of one row say alike, as far as they got."""


def misdescribed(record: Record) -> Iterator[str]:
    """What a record of the code that is here says wrongly of itself; nothing of one whose data were never opened."""
    if record.dataset is None:
        return
    for name, described in record.metrics.items():
        cls = registry.load("metrics", described.written)
        if cast("type[Metric[object]]", cls).name != name or metric_record(cls, described.written) != described:
            yield f"what it says of {name} is not what the metric {described.written} says of itself"
    cell, planned = planned_of(record)
    yield from _of_plugin("method", record.method, plugin_record(cell.method))
    if record.attack is not None and planned.attack is not None:
        yield from _of_plugin("attack", record.attack, plugin_record(planned.attack))
        knows = record.threat_model.get("eve", planned.attack.plugin.knowledge)
        if record.dataset.shareable and knows != planned.attack.plugin.knowledge:
            yield "what it says that Eve knows is not what the attack says"
    # A parameter that records do not show (a path) is part of a folder's name: then nobody else can tell it.
    if cell.folder != record.cell and cell.method.placeless == str(cell.method):
        yield f"it lies in another cell than its own, {cell.folder}"
    if (keys := planned.evaluator.keys(cell.choice.sizes)) != record.keys:
        yield f"its evaluator looks at {keys} keys, and the record says {record.keys}"
    if record.claim is not None and cell.method.plugin.claims == Method.claims:
        yield "it holds a formal claim, and its method makes none"


def _of_plugin(what: str, said: PluginRecord, here: PluginRecord) -> Iterator[str]:
    if said.role != here.role:
        yield f"its {what} is {here.role or 'no reference'}, and the record says {said.role or 'no reference'}"
    for name in ("source", "origin"):
        if (told := getattr(said, name)) != (known := getattr(here, name)):
            yield f"the {name} of its {what} is {line(known, 80)!r}, and the record says {line(told, 80)!r}"


def apart(records: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Records of one row that do not say the same of what they share, by name, and in what."""
    cells: dict[str, list[tuple[str, Record]]] = {}
    for name, record in records.items():
        cells.setdefault(record.cell, []).append((name, record))
    for mine in cells.values():
        yield from _apart(mine)


def _apart(mine: Sequence[tuple[str, Record]]) -> Iterator[tuple[str, str]]:
    done = [(name, record) for name, record in mine if record.status == "ok"]
    (first_name, first), *others = done or mine[:1]
    for name, record in others:
        if differ := [part for part in SHARED if getattr(record, part) != getattr(first, part)]:
            yield name, f"it and {first_name} are of one row, and differ in {', '.join(differ)}"
    for name, record in mine:  # what did not come so far says nothing of the fitted method, or the same
        for part in ("claim", "scheme"):
            if record.status != "ok" and getattr(record, part) and getattr(record, part) != getattr(first, part):
                yield name, f"it and {first_name} are of one row, and differ in {part}"
