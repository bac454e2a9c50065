"""Plug-ins of third parties, as the judge knows them without running them.

Code that runs in the judge's process can change what it judges. So methods and attacks of other authors are
imported in processes of their own only; here stands a stand-in with their names, parameters and class variables.
Metrics, evaluators, data sets and extractors are parts of the judge: who adds one trusts it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NoReturn, cast

from pydantic import JsonValue

from bench.contract.evaluator import NAME
from bench.plugins import environments, registry
from bench.plugins.environments import Environment
from bench.plugins.groups import SAID, Group
from bench.plugins.interview import interview
from bench.plugins.spec import PluginSpec, UsageError, parse, text
from bench.types import Attack, Attacker, Dataset, Method, Parameter, Plugin, Scheme, State, View
from bench.wire.text import line

HELD = frozenset({"written", "told", "asked", "group", "role", "confidential", "presets"})
"""What a stand-in's class holds, and no parameter may be called."""
LONGEST_NAME = 60
MOST_SIDE = 4096
"""Pixels: a whole data set is prepared at what a method of another author says."""
KINDS: Mapping[str, type] = {
    **dict.fromkeys(
        (
            "uses_labels", "needs_labels", "encodes_labels", "uses_subjects", "needs_subjects", "needs_public",
            "equal_classes", "learns",
        ), bool
    ),
    "unlearned": list, "sides": dict,
}  # fmt: skip
"""What is said that is no text."""


class StandIn(Plugin):
    """The base of stand-ins; `written` is the canonical spec."""

    written: ClassVar[PluginSpec]
    told: ClassVar[Mapping[str, JsonValue]]
    asked: ClassVar[PluginSpec]
    group: ClassVar[Group]


class StandInMethod(StandIn, Method):
    """Stands for another author's method, which runs in another process."""

    def fit(self, public: Dataset, seed: int) -> Scheme:
        """Never done here."""
        _refuse(self)

    def load(self, state: State) -> Scheme:
        """Never done here."""
        _refuse(self)


class StandInAttack(StandIn, Attack):
    """Stands for another author's attack, which runs in another process."""

    def fit(self, view: View, seed: int) -> Attacker:
        """Never done here."""
        _refuse(self)


def _refuse(plugin: StandIn) -> NoReturn:
    raise RuntimeError(f"{plugin.name} is third-party code: it must not run in the judge's process")


def is_outside(group: Group, spec: PluginSpec) -> bool:
    """If a plug-in or one that it holds is third-party."""
    if group not in SAID:
        return False
    if ".py:" in spec.name:
        return True
    entry = registry.entries(group).get(spec.name)
    if entry is not None and entry.origin != registry.HOME:
        return True
    return any(is_outside(inner, plugin) for inner, plugin in nested(spec))


def nested(spec: PluginSpec) -> Iterator[tuple[Group, PluginSpec]]:
    """The methods and attacks that a spec gives as parameters."""
    for value in (spec.argument, *(value for _, value in spec.parameters)):
        if not isinstance(value, str):
            continue
        name = value if ".py:" in value else value.partition("[")[0]
        group: Group = "methods" if name in registry.entries("methods") else "attacks"
        if ".py:" in value or name in registry.entries(group):
            yield group, parse(value)


@cache
def stand_in(group: Group, spec: PluginSpec, preset: str) -> StandIn:
    """The stand-in of a third-party plug-in, from its own description.

    Only claims that harm their author alone are believed.

    Raises:
        UsageError: It cannot be built; the text says why.
    """
    placed = _placed(spec)
    entry = registry.entries(group).get(placed.name)
    if entry is not None and entry.error is not None:
        raise UsageError(f"{registry.noun(group)} {entry.name!r} from {entry.origin} cannot be used: {entry.error}")
    if held := next((inner.name for kind, inner in nested(placed) if environment_of(kind, inner) is not None), None):
        raise UsageError(f"{held} is in an environment of its own, so that no other plug-in can hold it")
    files, environment = tuple(files_of(group, placed)), environment_of(group, placed)
    if environment is None:
        return rebuild(group, placed, preset, described(group, placed, preset, files))
    return rebuild(group, placed, preset, environment.described(group, placed, preset, files))


def environment_of(group: Group, spec: PluginSpec) -> Environment | None:
    """The environment that a plug-in was added with, or None."""
    if group not in SAID or ".py:" in spec.name:
        return None
    entry = registry.entries(group).get(spec.name)
    return None if entry is None or entry.environment is None else environments.read(entry.environment)


def rebuild(group: Group, spec: PluginSpec, preset: str, told: Mapping[str, JsonValue]) -> StandIn:
    """The stand-in that a description gives. Raises UsageError where it is none.

    Which files it is made of, and which it may read, is decided by what the user wrote, never by what it says.
    """
    try:
        variables = {name: believed(name, value) for name, value in cast("dict[str, JsonValue]", told["said"]).items()}
        if missing := [name for name in SAID[group] if name not in variables]:
            raise ValueError(f"it must say its {' and its '.join(missing)}: class variables of text")
        if set(variables) != set(SAID[group]):
            raise ValueError("unknown class variables")
        if variables["name"] in registry.entries(group) and variables["name"] != spec.name:
            raise ValueError(
                f"its name, {variables['name']}, is that of a registered {registry.noun(group)}: choose another"
            )
        values = {str(name): value for name, value in cast("list[list[Any]]", told["parameters"])}
        usual = cast("dict[str, JsonValue]", told["defaults"])
        base = StandInMethod if group == "methods" else StandInAttack
        if taken := [name for name in values if not name.isidentifier() or hasattr(base, name) or name in HELD]:
            raise ValueError(f"a parameter may not be called {line(taken[0])!r}: every plug-in has that")
        arguments = {name: _value(value, spec, preset) for name, value in values.items()}
        hidden = frozenset(map(str, cast("list[str]", told["confidential"])))
        _keyed_by_content({name: value for name, value in spec.parameters if name in hidden})
        namespace: dict[str, Any] = {
            **variables,
            "confidential": hidden,
            "written": _canonical(spec, _told_spec(told, values)),
            "group": group,
            "told": told,
            "asked": spec,
        }
        fields = [
            (name, object, dataclasses.field(default=_value(usual[name], spec, preset)))
            if name in usual
            else (name, object, dataclasses.field())
            for name in arguments
        ]
        title = str(told["class"])
        cls = dataclasses.make_dataclass(
            title if title.isidentifier() else "StandIn", fields, bases=(base,), namespace=namespace, frozen=True,
            kw_only=True,
        )  # fmt: skip
        return cast(StandIn, cls(**arguments))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{spec.shown} has a description that cannot be used: {line(str(error))}") from error


def _keyed_by_content(confidential: Mapping[str, Parameter]) -> None:
    """Raise ValueError for confidential values that no content key covers.

    What a file holds counts in the hash of the plug-in that reads it (`bench.plugins.code_digest`); a text does not.
    """
    for name, value in confidential.items():
        if not (isinstance(value, str) and Path(value).is_absolute() and Path(value).exists()):
            raise ValueError(f"{name} is confidential, so that it must name a file or a folder by its full path")


def _placed(spec: PluginSpec) -> PluginSpec:
    """The user's spec with full paths of files, nested ones too."""
    parameters = tuple(
        (name, str(_placed(parse(value))) if isinstance(value, str) and ".py:" in value else value)
        for name, value in spec.parameters
    )
    return dataclasses.replace(spec, name=registry.placed_name(spec.name), parameters=parameters)


def _told_spec(told: Mapping[str, JsonValue], values: Mapping[str, Any]) -> PluginSpec:
    """The spec of a description, with all parameters."""
    if "spec" in told:
        return parse(str(told["spec"]))
    return PluginSpec("", None, tuple((name, text(value)) for name, value in values.items()))


def _canonical(asked: PluginSpec, told: PluginSpec) -> PluginSpec:
    """The user's spec in canonical form: defaults left out, numbers plain.

    Text stays as the user wrote it: a path that he did not name would be shown to the plug-in.
    """
    written, said = dict(asked.parameters), dict(told.parameters)
    shared = {name: value for name, value in written.items() if name in said}
    plain = {name: said[name] if _same_number(value, said[name]) else value for name, value in shared.items()}
    return dataclasses.replace(asked, parameters=tuple(sorted(plain.items())))


def _same_number(a: Parameter, b: Parameter) -> bool:
    try:
        return float(str(a)) == float(str(b))
    except ValueError:
        return str(a).lower() == str(b).lower() and not isinstance(a, str)


def believed(name: str, value: JsonValue) -> object:
    """A class variable as a stand-in repeats it. Raises ValueError if unusable."""
    kind = KINDS.get(name, str)
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {kind.__name__}, got {type(value).__name__}")
    if name == "scores" and value not in ("pairs", "membership"):
        raise ValueError("scores must be pairs or membership")
    if name == "name" and (NAME.fullmatch(str(value)) is None or len(str(value)) > LONGEST_NAME):
        raise ValueError(f"a name must be of a-z, 0-9 and single hyphens, and at most {LONGEST_NAME} long")
    if isinstance(value, dict):
        if bad := [side for side in value.values() if type(side) is not int or not 1 <= side <= MOST_SIDE]:
            raise ValueError(f"{name} must be pixels, {MOST_SIDE} at most, got {line(str(bad[0]))}")
        return value
    if isinstance(value, list):
        return frozenset(map(str, value))
    return line(value) if isinstance(value, str) else value


def _value(value: JsonValue, spec: PluginSpec, preset: str) -> Parameter | Plugin:
    """A parameter's value; inner plug-ins are ours or the user's choice."""
    if isinstance(value, dict):
        group, written = cast("list[str]", value["plugin"])
        inner = parse(written)
        if group not in SAID:
            raise ValueError("a plug-in may contain only methods and attacks")
        for named_group, named in nested(spec):
            if named_group == group and registry.placed_name(inner.name) == registry.placed_name(named.name):
                return _held(named_group, named, preset)
        if is_outside(cast(Group, group), inner):
            raise ValueError("it holds a plug-in that was not named")
        return cast(Plugin, registry.build(cast(Group, group), inner, preset))
    if value is not None and not isinstance(value, int | float | str | bool):
        raise ValueError(f"a parameter must be a number, a text, true, false or none, got {type(value).__name__}")
    return value


def _held(group: Group, spec: PluginSpec, preset: str) -> Plugin:
    if is_outside(group, spec):
        return stand_in(group, spec, preset)
    return cast(Plugin, registry.build(group, spec, preset))


def files_of(group: Group, spec: PluginSpec) -> Iterator[Path]:
    """The files of a third-party plug-in, and those it may read."""
    if ".py:" in spec.name:
        yield Path(spec.name.rpartition(":")[0]).resolve()
    for value in (spec.argument, *(value for _, value in spec.parameters)):
        if isinstance(value, str) and ".py:" not in value and Path(value).is_absolute() and Path(value).exists():
            yield Path(value)
    for inner, plugin in nested(spec):
        yield from files_of(inner, plugin)


def described(group: Group, spec: PluginSpec, preset: str, files: Sequence[Path]) -> dict[str, JsonValue]:
    """A plug-in's description of itself, from a sandboxed process if possible.

    Args:
        group, spec, preset: What is asked for, with files by their full path.
        files: What the process may read.

    Raises:
        UsageError: It says nothing, or what is wrong with it.
    """
    if missing := [path for path in files if not path.exists()]:
        raise UsageError(f"no such plug-in file: {missing[0]} (expected FILE.py:CLASS)")

    def command(answer: int) -> list[str]:
        return [sys.executable, "-P", "-m", "bench.plugins.self_description", group, str(spec), preset, str(answer)]

    return cast("dict[str, JsonValue]", interview(command, spec.shown, files=files))
