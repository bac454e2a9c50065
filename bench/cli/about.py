"""What the command line says of plug-ins, found out by importing them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

from bench.plugins import registry
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import PluginSpec, UsageError, plugin_hint
from bench.types import Metric

_SHOWN = (
    "title", "meaning", "chance", "group", "source", "claims", "knowledge", "requires", "unit", "better", "public",
    "licence", "obtain",
)  # fmt: skip


def rows(group: Group) -> list[list[str]]:
    """Name, what it is, whence it comes and its state, of every plug-in of the group; a broken one with the reason."""
    found = []
    for name, entry in sorted(registry.entries(group).items()):
        error = registry.inspect(entry).error
        about = "" if error else _about(registry.load(group, name))
        ready = "ready" if group != "datasets" else "see `bench data list`"  # whether files are here changes
        found.append([name, about, entry.origin, error or ready])
    return found


def described(spec: PluginSpec, preset: str) -> str:
    """What is known about every plug-in of that name, as text. Raises UsageError where none takes the spec."""
    return "\n".join(line for group in groups_of(spec.name) for line in _described(group, spec, preset))


def _described(group: Group, spec: PluginSpec, preset: str) -> Iterator[str]:
    plugin, cls = spec.name, registry.load(group, spec.name)
    built = None if spec == PluginSpec(spec.name) else registry.build(group, spec, preset)
    yield f"{plugin}  ({registry.noun(group)}, from {registry.origin(group, plugin)})"
    yield f"  {summary(cls)}"
    column = getattr(cls, "column", None)  # metrics have one
    for name in _SHOWN:
        if value := getattr(cls, name, None) or getattr(column, name, None):
            yield f"  {name}: {value}"
    if "shareable" in vars(cls):
        yield f"  shareable: {'yes' if cls.shareable else 'no: its pixels stay on this machine'}"  # type: ignore[attr-defined]
    sized = getattr(cls, "presets", {}).get(preset, {})
    yield "  parameters:" if dataclasses.fields(cls) else "  parameters: none"
    for field in dataclasses.fields(cls):
        usual = sized.get(field.name, field.default)
        said = f"{usual} (preset {preset})" if field.name in sized else _default(usual)
        given = usual if built is None else getattr(built, field.name)
        yield f"    {field.name}: {field.type} = {said if given == usual else f'{given} (else {said})'}"
    if group == "methods":
        yield from _expected(plugin, preset)
    module = inspect.getdoc(inspect.getmodule(cls)) or ""
    yield "\n" + "\n".join(f"  {line}".rstrip() for line in module.splitlines())


def _expected(method: str, preset: str) -> Iterator[str]:
    """What quality to expect of a method: the ledger's figures of it, each with what it was measured with.

    Where none was measured with the preset, whose parameters stand above them, that is said.
    """
    from leaderboard.reproduction import shipped, stated

    found = shipped().of(method)
    if found:
        yield "  expected, of the papers' claims (`bench leaderboard ledger`):"
    figures = [one for _, _, row in found for one in row.ours if one.value is not None]
    if figures and not any(one.at(preset) for one in figures):
        yield f"    none of the figures is of the preset {preset}; each says what it was measured with"
    for paper, table, row in found:
        yield f"    {paper.cited}, {table.place}, {row.what}: the paper says {row.says}: {row.verdict}"
        yield from (f"      here {stated(one)}" for one in row.ours)


def groups_of(name: str) -> list[Group]:
    """The groups that know `name`; for a file, the one its class belongs to.

    Raises:
        UsageError: No group knows it.
    """
    if ".py:" in name:
        cls = registry.load("methods", name)
        found = [group for group in GROUPS if issubclass(cls, registry.kind(group))]
        if not found:
            bases = ", ".join(registry.kind(group).__name__ for group in GROUPS)
            raise UsageError(f"{name} is none of: {bases}")
        return found
    found = [group for group in GROUPS if name in registry.entries(group)]
    if not found:
        known = [known for group in GROUPS for known in registry.entries(group)]
        raise UsageError(f"unknown plug-in {name!r}; {plugin_hint(name, known)}")
    return found


def _default(usual: object) -> str:
    return "required" if usual is dataclasses.MISSING else str(usual)


def _about(cls: type) -> str:
    """What a table says of a plug-in: the first line of its docstring; of a metric, what pages say of it."""
    if not issubclass(cls, Metric):
        return summary(cls)
    chance = f" Chance gives {cls.column.chance}." if cls.column.chance else ""
    unit = f" ({cls.unit})" if cls.unit else ""
    return f"{cls.column.title}{unit}, {cls.better} is better; {cls.column.group}\n{cls.column.meaning}{chance}"


def summary(cls: type) -> str:
    """The first line of a plug-in's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
