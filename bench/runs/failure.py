"""Codes and texts of exceptions, the codes from a fixed list."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.isolation import DiedError, OutsideError, RefusedError
from bench.plugins.spec import UsageError
from bench.results.disk_errors import is_disk_failure
from bench.results.reason import Code
from bench.types import NotApplicable
from bench.wire.text import named, said

_OTHER: Code = "error"
_CODES: tuple[tuple[type[Exception], Code], ...] = (
    (RefusedError, "refused"),
    (NotApplicable, "not-applicable"),
    (MemoryError, "out-of-memory"),
    (ContractError, "contract"),
    (DiedError, "died"),
    (ValidationError, "contract"),
    (PydanticSerializationError, "contract"),
    (DataError, "data"),
    (UsageError, "usage"),
)


def code_of(error: BaseException) -> Code:
    """The code of an exception.

    >>> code_of(NotApplicable("no labels")), code_of(KeyError("patient 7"))
    ('not-applicable', 'error')
    """
    code = next((code for kind, code in _CODES if isinstance(error, kind)), _OTHER)
    return "disk" if code == _OTHER and not isinstance(error, OutsideError) and is_disk_failure(error) else code


def text_of(error: BaseException, code: Code) -> str:
    """The text of an exception, which may quote the data behind it."""
    if code == "out-of-memory":
        return f"out of memory: {said(error)}"
    return named(error) if code in ("error", "disk") and not isinstance(error, OutsideError) else said(error)
