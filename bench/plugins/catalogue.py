"""Descriptions of plug-ins as text; they are imported for that."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.plugins import registry
from bench.plugins.environments import AddedPlugin, read
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import PluginSpec, UsageError, plugin_hint
from bench.plugins.third_party import stand_in
from bench.types import FIDELITY, SIMILARITY, Metric

Expected = Callable[[str, str], Iterator[str]]
_SHOWN = (
    "title", "meaning", "chance", "group", "source", "claims", "knowledge", "requires", "unit", "better", "public",
    "licence", "obtain",
)  # fmt: skip


@dataclass(frozen=True)
class Listed:
    """A listed plug-in: name, purpose, distribution, and "ready" or its fault."""

    name: str
    about: str
    origin: str
    state: str


def listed(group: Group) -> list[Listed]:
    """Every plug-in of the group by name."""
    rows = []
    for name, entry in sorted(registry.entries(group).items()):
        error = registry.inspect(entry).error
        about = "" if error else added.about if (added := _added(entry)) else _about(registry.load(group, name))
        ready = "ready" if group != "datasets" else "see `bench data list`"  # the files may be absent
        rows.append(Listed(name, about, entry.origin, error or ready))
    return rows


def described(spec: PluginSpec, preset: str, expected: Expected) -> str:
    """Every plug-in of that name as text.

    `expected` gives lines on a method's figures.

    Raises:
        UsageError: No plug-in has the name, or none takes the parameters.
    """
    return "\n".join(line for group in groups_of(spec.name) for line in _described(group, spec, preset, expected))


def _described(group: Group, spec: PluginSpec, preset: str, expected: Expected) -> Iterator[str]:
    entry = registry.entries(group).get(spec.name)
    if entry is not None and (added := _added(entry)) is not None:
        yield from _described_as_added(entry, added, spec, preset)
        return
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
        default = f"{usual} (preset {preset})" if field.name in sized else _default(usual)
        given = usual if built is None else getattr(built, field.name)
        yield f"    {field.name}: {field.type} = {default if given == usual else f'{given} (else {default})'}"
    if group == "methods":
        yield from expected(plugin, preset)
    module = inspect.getdoc(inspect.getmodule(cls)) or ""
    yield "\n" + "\n".join(f"  {line}".rstrip() for line in module.splitlines())


def _added(entry: registry.Entry) -> AddedPlugin | None:
    """A plug-in in its environment's manifest; None for this interpreter's."""
    return None if entry.environment is None else read(entry.environment).plugin(entry.group, entry.name)


def _described_as_added(
    entry: registry.Entry, added: AddedPlugin, spec: PluginSpec, preset: str
) -> Iterator[str]:  # fmt: skip
    made = read(str(entry.environment)).manifest
    yield f"{spec.name}  ({registry.noun(entry.group)}, from {entry.origin} {added.version})".replace(" )", ")")
    yield f"  {added.about}"
    plugin = stand_in(entry.group, spec, preset)
    for name in _SHOWN:
        if name != "group" and (value := getattr(plugin, name, None)):
            yield f"  {name}: {value}"
    yield f"  environment: {entry.environment}, {made.python}, digest {made.digest}"
    yield f"  added: {made.added}, packages built: {made.built}"
    if made.repository is not None:
        yield from (f"  {text}" for text in made.repository.told())
    yield "  parameters:" if added.kinds else "  parameters: none"
    for name, kind in added.kinds:
        yield f"    {name}: {kind} = {getattr(plugin, name, 'required')}"
    yield "\n" + "\n".join(f"  {line}".rstrip() for line in added.text.splitlines())


def groups_of(name: str) -> list[Group]:
    """The groups that know `name`, or that a file's class belongs to.

    Raises:
        UsageError: No group knows it.
    """
    if ".py:" in name:
        cls = registry.load("methods", name)
        groups = [group for group in GROUPS if issubclass(cls, registry.kind(group))]
        if not groups:
            bases = ", ".join(registry.kind(group).__name__ for group in GROUPS)
            raise UsageError(f"{name} is none of: {bases}")
        return groups
    groups = [group for group in GROUPS if name in registry.entries(group)]
    if not groups:
        known = [known for group in GROUPS for known in registry.entries(group)]
        raise UsageError(f"unknown plug-in {name!r}; {plugin_hint(name, known, 'bench list')}")
    return groups


def _default(usual: object) -> str:
    return "required" if usual is dataclasses.MISSING else str(usual)


def _about(cls: type) -> str:
    """A plug-in's text in a table: its docstring or a metric's column."""
    if not issubclass(cls, Metric):
        return summary(cls)
    chance = f" Chance gives {cls.column.chance}." if cls.column.chance else ""
    unit = f" ({cls.unit})" if cls.unit else ""
    better = "" if cls.column.group in (SIMILARITY, FIDELITY) else f"{cls.better} is better; "
    return f"{cls.column.title}{unit}, {better}{cls.column.group}\n{cls.column.meaning}{chance}"


def needs_argument(cls: type) -> bool:
    """If a plug-in has a parameter without a default."""
    return any(field.init and field.default is dataclasses.MISSING for field in dataclasses.fields(cls))


def summary(cls: type) -> str:
    """The first line of a plug-in's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
