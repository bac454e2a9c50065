"""Types and values in words, for users of the command line."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Literal, Union, get_args, get_origin

from bench.plugins import registry
from bench.plugins.groups import GROUPS
from bench.plugins.spec import holds_plugin, text

_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "none"}


def words(hint: object) -> str:
    """A type in words.

    >>> words(float | None), words(Literal["a", "b"])
    ('number or none', 'a, b')
    """
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(str(value) for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(part) for part in inner))
    if origin is typing.Annotated:
        return words(inner[0])
    if holds_plugin(hint):
        group = next((group for group in GROUPS if issubclass(hint, registry.kind(group))), None)  # type: ignore[arg-type]
        return f"another {registry.noun(group)}" if group else str(hint)
    if origin in (list, tuple, frozenset, set):
        within = " or ".join(dict.fromkeys(words(part) for part in inner if part is not Ellipsis))
        return f"list of ({within})" if " or " in within else f"list of {within}"
    if origin is not None and issubclass(origin, Mapping):
        return "mapping"
    return hint.__name__ if isinstance(hint, type) else str(hint)


def fields(cls: type) -> tuple[dataclasses.Field[object], ...]:
    """The fields of a class; none of one that is no dataclass."""
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def default(field: dataclasses.Field[object]) -> str:
    """The default of a dataclass field in words."""
    if field.default is not dataclasses.MISSING:
        return value(field.default)
    return "required" if field.default_factory is dataclasses.MISSING else value(field.default_factory())


def value(found: object) -> str:
    """A value as the command line writes it."""
    if found is None or isinstance(found, bool | int | float | str):
        return text(found) if found != "" else '""'
    if isinstance(found, Mapping):
        return ", ".join(f"{key}: {value(inner)}" for key, inner in found.items()) or "none"
    if isinstance(found, type):
        return found.__name__
    if isinstance(found, Iterable):
        inner = sorted(found) if isinstance(found, frozenset | set) else found
        return ", ".join(value(part) for part in inner) or "none"
    return str(found)
