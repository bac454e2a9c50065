"""What a plug-in raises, as it travels from its process to whoever asked, and is raised again there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from pydantic import JsonValue

from bench.contract.seal import ContractError
from bench.isolation.language import TEXT_CHARACTERS
from bench.types import NotApplicable
from bench.wire.tensors import TensorsError


class OutsideError(Exception):
    """A plug-in failed in its own process with an error of a kind of its own; the text names the kind first."""


class RefusedError(NotApplicable):
    """A method refuses rows, or an attack does not apply after a method from outside refused it something."""


class UnlikeError(ContractError):
    """A method does something else for Eve than for an owner; it is told to the judge, and never to Eve's process."""


ERRORS: Mapping[str, type[Exception]] = {
    "not-applicable": NotApplicable,
    "contract": ContractError,
    "value": ValueError,
    "memory": MemoryError,
}
"""The errors that mean the same on both sides."""


def told(error: BaseException) -> JsonValue:
    """An error as [kind, text]."""
    if isinstance(error, OutsideError):
        return ["outside", _bounded(error)]
    if isinstance(error, TensorsError):
        return ["contract", _bounded(error)]
    for kind, cls in ERRORS.items():
        if isinstance(error, cls):
            return [kind, _bounded(error)]
    return ["outside", f"{type(error).__name__[:100]}: {_bounded(error)}"]


def raise_told(error: JsonValue) -> NoReturn:
    """Raise what `told` wrote."""
    kind, text = error if isinstance(error, list) and len(error) == 2 else ("", "")
    said = str(text)[:TEXT_CHARACTERS]
    for name, cls in ERRORS.items():
        if kind == name:
            raise cls(said)
    raise OutsideError(said)


def _bounded(error: BaseException) -> str:
    """What an error says, as UTF-8 of bounded length; an error that cannot be printed says so."""
    try:
        text = str(error)[:TEXT_CHARACTERS]
    except Exception:
        text = "(its text cannot be had)"
    return text.encode(errors="replace").decode()
