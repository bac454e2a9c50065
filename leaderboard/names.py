"""Names of rows: safe file names, and methods with their parameters."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.spec import UsageError, parameters, parse
from bench.results.records import Record

LENGTH = 48
_HASHED = re.compile("(^|-)[0-9a-f]{8}$")


def slug(name: str) -> str:
    """A safe file stem for any text; changed names carry a hash.

    >>> slug("dp-image"), slug("../../etc/passwd")
    ('dp-image', 'etc-passwd-3754d6cb')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LENGTH].strip("-")
    return plain if plain and plain == name and not _HASHED.search(plain) else f"{plain}-{digest(name)}".strip("-")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """A slug for every name, unique among them."""
    given: dict[str, str] = {}
    for name in sorted(set(names)):
        stem = slug(name)
        while stem in given.values():
            stem = f"{stem}-{digest(name)}"
        given[name] = stem
    return given


def digest(text: str, length: int = 8) -> str:
    """So many hexadecimal digits that depend on all of `text`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


OWN = "veil-bench"
"""Where this project's own plug-ins come from, as their records say."""


def label(record: Record) -> str:
    """Method and parameters as the command line takes them: dp-simple[scale=20.0].

    Of this project's own methods, parameters that are as the preset has them are left out.
    """
    parameters = parameters_text(unusual(record))
    return f"{record.method.name}[{parameters}]" if parameters else record.method.name


def choices(row: Sequence[Record]) -> dict[str, str]:
    """Choices of a row's records besides data set, preset and seed."""
    first = row[0]
    own = {
        name: str(value) for name, value in sorted(first.choice.items()) if name not in ("dataset", "preset", "seed")
    }
    return own | {"keys": str(max(record.keys for record in row)), "device": first.device}


def choices_apart(own: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> str:
    """The choices that other rows of the same label have otherwise.

    >>> choices_apart({"eve": "other-study", "size": "64"}, [{"eve": "same-image", "size": "64"}])
    ' (eve other-study)'
    """
    apart = [name for name in own if any(other.get(name) != own[name] for other in others)]
    return f" ({', '.join(f'{name} {own[name]}' for name in apart)})" if apart else ""


def unusual(record: Record) -> dict[str, JsonValue]:
    """Parameters of a record's method that differ from its preset."""
    usual = _usual(record.method.name, record.preset) if record.method.origin == OWN else {}
    return {name: v for name, v in record.method.parameters.items() if name not in usual or usual[name] != v}


@cache
def _usual(method: str, preset: str) -> Mapping[str, object]:
    """The parameters of one of our methods by preset; else none."""
    if method not in registry.own("methods"):
        return {}
    try:
        return dict(parameters(registry.build("methods", parse(method), preset)))
    except UsageError:  # it has no parameters of its own accord, or knows no such preset
        return {}


def parameters_text(parameters: Mapping[str, JsonValue], *, empty: bool = True) -> str:
    """Parameters as name=value, sorted by name; without empty texts if not `empty`.

    >>> parameters_text({"scale": 20.0, "clip": None, "mode": "l1"})
    'clip=none,mode=l1,scale=20.0'
    >>> parameters_text({"scale": 20.0, "weights_sha256": ""}, empty=False)
    'scale=20.0'
    """
    told = sorted((name, value) for name, value in parameters.items() if empty or value != "")
    return ",".join(f"{name}={_plain(value)}" for name, value in told)


def _plain(value: JsonValue) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def shortened(text: str, length: int) -> str:
    """One line of at most that many characters.

    >>> shortened("k-same  variant=within-class", 12)
    'k-same vari…'
    """
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
