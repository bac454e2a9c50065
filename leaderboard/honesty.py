"""Rating of privacy figures: only if promises were checked and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.plugins.registry import HOME
from bench.results.records import Record

KIND = "honesty"
"""The evaluator that checks a method's promises."""
FIGURE = "broken-promises"
"""The metric whose parts say which promises a method breaks."""


def unrated(records: Sequence[Record]) -> str:
    """The reason why a cell's privacy figures are not rated; else empty.

    Reference methods serve as controls of attacks, and are never ranked.
    """
    if records[0].method.role is not None:
        return ""
    if any(_exposed(record) for record in records):
        return "a third-party plug-in ran without a sandbox"
    if failed := _of_ours(records, lambda record: record.status in ("failed", "timed-out")):
        return f"attacks on it failed: {', '.join(failed)}"
    scored = {record.kind for record in records if record.attack is not None and record.scores}
    if refused := _of_ours(records, lambda record: record.code == "refused" and record.kind in scored):
        return f"it refused requests of attacks: {', '.join(refused)}"
    found = next((record for record in records if record.kind == KIND), None)
    figure = None if found is None else found.scores.get(FIGURE)
    if found is None or (found.status == "ok" and figure is None):
        return "the check of its promises did not run"
    if found.status == "not-applicable":  # nothing is released that could be looked into, or that could be attacked
        attacked = any(record.attack is not None and record.scores for record in records)
        return "attacks found a release, but the check of its promises found none" if attacked else ""
    if figure is None:
        return f"the check of its promises {found.status.replace('-', ' ')}"
    from bench.evaluators.honesty import Honesty  # imports SciPy, which a table of honest methods need not wait for

    return ", ".join(Honesty.said.get(name, name) for name, part in sorted(figure.parts.items()) if part.value)


def _exposed(record: Record) -> bool:
    """True if third-party code could reach secrets, for lack of a sandbox."""
    outside = [plugin for plugin in (record.method, record.attack) if plugin is not None and plugin.origin != HOME]
    return bool(outside) and record.isolation != "sandbox"


def _of_ours(records: Sequence[Record], ended: Callable[[Record], bool]) -> list[str]:
    """This project's attacks that a third-party method may have stopped."""
    if records[0].method.origin == HOME:
        return []
    attacks = [record for record in records if record.attack is not None and record.attack.origin == HOME]
    return sorted({each.attack.name for each in attacks if each.attack and ended(each)})
