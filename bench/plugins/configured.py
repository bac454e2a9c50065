"""A configured plug-in: built once from a spec, written canonically."""

from __future__ import annotations

__lookups__ = ("configure",)

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.groups import Group
from bench.plugins.spec import PluginSpec, defaults, parse
from bench.plugins.third_party import StandIn, is_outside, rebuild, stand_in
from bench.types import Attack, Extractor, Method, Metric, Source

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", covariant=True)


@dataclass(frozen=True)
class Configured(Generic[P]):
    """A plug-in with its canonical spec; equal specs and presets are equal.

    Another process builds the plug-in again from the spec: what travels is text.

    Args:
        group: Its group.
        spec: Parameters sorted, those at their defaults left out.
        preset: It is sized for.
        plugin: What was built.
        written: The spec as the user wrote it.
    """

    group: Group
    spec: PluginSpec
    preset: str
    plugin: P = field(compare=False, repr=False)
    written: PluginSpec = field(compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.spec)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.plugin, StandIn):
            return _rebuilt, (self.group, self.plugin.asked, self.preset, self.plugin.told)
        return _here, (self.group, str(self.spec), self.preset)

    @property
    def name(self) -> str:
        """As registered, or `path/to/file.py:Class`."""
        return self.spec.name

    @property
    def origin(self) -> str:
        """The distribution or the file that it comes from."""
        return registry.origin(self.group, self.spec.name)

    @property
    def ours(self) -> bool:
        """True if it and the plug-ins that it holds are this project's."""
        return self.origin == registry.HOME and not is_outside(self.group, self.spec)

    @property
    def placeless(self) -> str:
        """The spec without confidential values, for names of rows and folders."""
        return str(self._without({}))

    @property
    def shown(self) -> str:
        """The spec with confidential values as PARAMETER, for records and commands."""
        return self.shown_but()

    def shown_but(self, *left_out: str) -> str:
        """The same without some confidential parameters, which another option gives."""
        return self._without({name: name.upper() for name in self._confidential - {*left_out}}).shown

    @property
    def _confidential(self) -> frozenset[str]:
        return registry.confidential(type(self.plugin))

    def _without(self, instead: dict[str, str]) -> PluginSpec:
        """The spec with confidential values replaced, or left out."""
        first = registry.first_parameter(type(self.plugin))
        hidden = first in self._confidential
        parameters = tuple(
            (name, instead.get(name, value))
            for name, value in self.spec.parameters
            if name not in self._confidential or name in instead
        )
        argument = self.spec.argument
        if argument is not None and hidden and first is not None:
            argument = instead.get(first)
        return replace(self.spec, argument=argument, parameters=parameters)


@overload
def configure(
    group: Literal["methods"], written: str | PluginSpec, preset: str, *, here: bool = ...
) -> Configured[Method]: ...
@overload
def configure(
    group: Literal["attacks"], written: str | PluginSpec, preset: str, *, here: bool = ...
) -> Configured[Attack]: ...
@overload
def configure(group: Literal["datasets"], written: str | PluginSpec, preset: str) -> Configured[Source]: ...
@overload
def configure(group: Literal["features"], written: str | PluginSpec, preset: str) -> Configured[Extractor]: ...
@overload
def configure(group: Literal["metrics"], written: str | PluginSpec, preset: str) -> Configured[Metric[Any]]: ...
def configure(group: Group, written: str | PluginSpec, preset: str, *, here: bool = False) -> Configured[Any]:
    """The plug-in that `written` describes, built and sized for a preset.

    A method or an attack from outside this project is not run here unless `here` says so: a stand-in takes its place
    (see `bench.plugins.third_party`).

    Raises:
        UsageError: As `registry.build`.
    """
    request = parse(written) if isinstance(written, str) else written
    if not here and is_outside(group, request):
        plugin = stand_in(group, request, preset)
        return Configured(group, plugin.written, preset, plugin, request)
    spec = registry.canonical(group, request, preset)
    return Configured(group, spec, preset, registry.build(group, spec, preset), request)


def _here(group: Group, written: str, preset: str) -> Configured[Any]:
    return configure(cast(Any, group), written, preset, here=True)


def _rebuilt(group: Group, asked: PluginSpec, preset: str, told: Mapping[str, JsonValue]) -> Configured[Any]:
    plugin = rebuild(group, asked, preset, told)
    return Configured(group, plugin.written, preset, plugin, plugin.written)


def to_fit(method: Method) -> Method:
    """The method to fit: parameters that fit ignores stand at defaults."""
    stands = defaults(type(method))
    return cast(Method, replace(cast("DataclassInstance", method), **{name: stands[name] for name in method.unlearned}))
