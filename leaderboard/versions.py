"""Records computed by earlier code than others of the same results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.results.records import PluginRecord, Record
from bench.workbench.inputs import is_code


def by_earlier_code(records: Iterable[Record]) -> frozenset[tuple[str, str]]:
    """Cell and name of the records that older code computed.

    Pages cannot know the code that is installed; what they can see is that two records of one method, attack, evaluator
    or metric were not computed alike.
    """
    newest: dict[tuple[str, str], tuple[str, str]] = {}
    known = list(records)
    for record in known:
        for what, code in _codes(record):
            newest[what] = max(newest.get(what, ("", "")), (record.created, code))
    return frozenset(
        (record.cell, record.evaluator)
        for record in known
        if any(code != newest[what][1] for what, code in _codes(record))
    )


def versions_text(record: Record) -> str:
    """The versions of Python and packages behind a record."""
    return ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))


def _codes(record: Record) -> Iterator[tuple[tuple[str, str], str]]:
    """Code hashes behind a record, by kind and name."""
    of = {
        "method code": _plugin(record.method),
        "attack code": "" if record.attack is None else _plugin(record.attack),
        "evaluator code": record.kind,
    }
    for name, value in record.inputs.items():
        if is_code(name) and isinstance(value, str):
            yield (name, of.get(name, "")), value


def _plugin(found: PluginRecord) -> str:
    """The identity of a plug-in with code of its own."""
    nested = any(isinstance(value, str) and "[" in value for value in found.parameters.values())
    return f"{found.origin} {found.written if nested else found.name}"
