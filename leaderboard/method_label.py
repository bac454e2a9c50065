"""What a row's method is called: its name, and those of its parameters that are not as its preset has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.spec import UsageError, parameters, parse
from bench.results.records import Record

OWN = "veil-bench"
"""Where this project's own plug-ins come from, as their records say."""


def label(record: Record) -> str:
    """Method and parameters as the command line takes them: dp-simple[scale=20.0].

    Of this project's own methods, parameters that are as the preset has them are left out.
    """
    parameters = parameters_text(unusual(record))
    return f"{record.method.name}[{parameters}]" if parameters else record.method.name


def unusual(record: Record) -> dict[str, JsonValue]:
    """The parameters of its method; of this project's own those alone that are not as the preset has them."""
    usual = _usual(record.method.name, record.preset) if record.method.origin == OWN else {}
    return {name: v for name, v in record.method.parameters.items() if name not in usual or usual[name] != v}


@cache
def _usual(method: str, preset: str) -> Mapping[str, object]:
    """The parameters of a method of this project as a preset has them; none where there is no such method."""
    if method not in registry.own("methods"):
        return {}
    try:
        return dict(parameters(registry.build("methods", parse(method), preset)))
    except UsageError:  # it has no parameters of its own accord, or knows no such preset
        return {}


def parameters_text(parameters: Mapping[str, JsonValue]) -> str:
    """Parameters as name=value, sorted by name.

    >>> parameters_text({"scale": 20.0, "clip": None, "mode": "l1"})
    'clip=none,mode=l1,scale=20.0'
    """
    return ",".join(f"{name}={_plain(value)}" for name, value in sorted(parameters.items()))


def _plain(value: JsonValue) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
