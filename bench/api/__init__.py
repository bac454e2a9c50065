"""The Python face of the harness: functions that return data.

`scripting` holds the functions of scripts and notebooks, which are imported at their first use; `running` holds runs
and plug-ins, `boards` what is made of records and data, and `bench.cli` prints what these return.
"""

__figures__ = False

from importlib import import_module
from typing import TYPE_CHECKING

from bench import __all__ as __all__

if TYPE_CHECKING:
    from bench import *  # noqa: F403


def __getattr__(name: str) -> object:
    """The functions of `scripting`, which imports what they need."""
    if name in __all__:
        return getattr(import_module("bench.api.scripting"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
