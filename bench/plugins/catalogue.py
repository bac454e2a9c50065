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


@dataclass(frozen=True)
class Parameter:
    """A parameter's type, default in a preset, and value."""

    name: str
    kind: str
    default: str
    value: str


@dataclass(frozen=True)
class Details:
    """All that is known of a plug-in.

    Args:
        group, name, origin, about: As `Listed`.
        declared: What its class says, by name.
        parameters: In order.
        text: Of its module.
    """

    group: Group
    name: str
    origin: str
    about: str
    declared: dict[str, str]
    parameters: list[Parameter]
    text: str


def details(spec: PluginSpec, preset: str) -> list[Details]:
    """Every plug-in of that name as data. Raises as `described`."""
    return [_details(group, spec, preset) for group in groups_of(spec.name)]


def _details(group: Group, spec: PluginSpec, preset: str) -> Details:
    entry = registry.entries(group).get(spec.name)
    if entry is not None and (added := _added(entry)) is not None:
        return _details_as_added(entry, added, spec, preset)
    cls = registry.load(group, spec.name)
    built = None if spec == PluginSpec(spec.name) else registry.build(group, spec, preset)
    column = getattr(cls, "column", None)  # metrics have one
    told = {name: getattr(cls, name, None) or getattr(column, name, None) for name in _SHOWN}
    declared = {name: str(value) for name, value in told.items() if value}
    if "shareable" in vars(cls):
        declared["shareable"] = "yes" if cls.shareable else "no: its pixels stay on this machine"  # type: ignore[attr-defined]
    sized = getattr(cls, "presets", {}).get(preset, {})
    found = []
    for field in dataclasses.fields(cls):
        usual = sized.get(field.name, field.default)
        default = f"{usual} (preset {preset})" if field.name in sized else _default(usual)
        given = usual if built is None else getattr(built, field.name)
        found.append(Parameter(field.name, str(field.type), default, default if given == usual else str(given)))
    text = inspect.getdoc(inspect.getmodule(cls)) or ""
    return Details(group, spec.name, registry.origin(group, spec.name), summary(cls), declared, found, text)


def _described(group: Group, spec: PluginSpec, preset: str, expected: Expected) -> Iterator[str]:
    each = _details(group, spec, preset)
    yield f"{each.name}  ({registry.noun(group)}, from {each.origin})"
    yield f"  {each.about}"
    yield from (f"  {name}: {value}" for name, value in each.declared.items())
    yield "  parameters:" if each.parameters else "  parameters: none"
    for one in each.parameters:
        yield f"    {one.name}: {one.kind} = {one.value}" + (
            "" if one.value == one.default else f" (else {one.default})"
        )
    entry = registry.entries(group).get(spec.name)
    if group == "methods" and (entry is None or entry.environment is None):
        yield from expected(each.name, preset)
    yield "\n" + "\n".join(f"  {line}".rstrip() for line in each.text.splitlines())


def _added(entry: registry.Entry) -> AddedPlugin | None:
    """A plug-in in its environment's manifest; None for this interpreter's."""
    return None if entry.environment is None else read(entry.environment).plugin(entry.group, entry.name)


def _details_as_added(entry: registry.Entry, added: AddedPlugin, spec: PluginSpec, preset: str) -> Details:
    made = read(str(entry.environment)).manifest
    plugin = stand_in(entry.group, spec, preset)
    declared = {name: str(value) for name in _SHOWN if name != "group" and (value := getattr(plugin, name, None))}
    declared["environment"] = f"{entry.environment}, {made.python}, digest {made.digest}"
    declared["added"] = f"{made.added}, packages built: {made.built}"
    if made.repository is not None:
        declared["repository"] = "\n  ".join(made.repository.told())
    found = []
    for name, kind in added.kinds:
        value = str(getattr(plugin, name, "required"))
        found.append(Parameter(name, kind, value, value))
    origin = f"{entry.origin} {added.version}".strip()
    return Details(entry.group, spec.name, origin, added.about, declared, found, added.text)


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
