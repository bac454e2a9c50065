"""The harness: it splits, times, checks, shuffles, scores and records.

In scripts and notebooks, `bench.run` and its like are the functions of `bench.api`.
"""

__figures__ = True

from importlib import import_module
from typing import TYPE_CHECKING

import bench.shadowing  # before torch and pydantic

if TYPE_CHECKING:
    from bench.api.frames import Results
    from bench.api.scripting import BenchError, attack, compare, load_dataset, load_results, release, run

__all__ = ["BenchError", "Results", "attack", "compare", "load_dataset", "load_results", "release", "run"]


def __getattr__(name: str) -> object:
    """The functions of `bench.api`, which are imported at their first use."""
    if name in __all__:
        bench.shadowing.check_folder()
        return getattr(import_module("bench.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
