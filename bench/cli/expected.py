"""What utility to expect of a method at a preset: figures of it that the ledger quotes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from bench.plugins import registry
from bench.plugins.spec import parse

if TYPE_CHECKING:
    from leaderboard.reproduction import Measured

GROUP = "Utility"


def expected(method: str, preset: str) -> Iterator[str]:
    """A line with what the ledger has of the method's utility (and its flow's quality) at the preset.

    Where it has figures of the method, and none of these, the line says so; of a method that it does not know there is
    no line.
    """
    from leaderboard.reproduction import briefly, shipped

    of_it = [one for _, _, row in shipped().of(method) for one in row.ours if _speaks_of(method, one)]
    if not of_it:
        return
    told = [briefly(one) for one in of_it if one.at(preset) and _tells_quality(one)]
    said = "; ".join(dict.fromkeys(told)) or f"nothing of its utility (`bench info {method}` shows all figures)"
    yield f"expected of {method} at {preset}, by the ledger: {said}"


def _speaks_of(method: str, one: Measured) -> bool:
    """Whether a figure is of the method, and not of what its row compares it with."""
    words = pairwise(shlex.split(one.command))
    return any(flag == "--method" and parse(value).name == method for flag, value in words)


def _tells_quality(one: Measured) -> bool:
    from leaderboard.reproduction import NOTE

    if one.score.startswith(NOTE):
        return True
    column = getattr(registry.load("metrics", one.score), "column", None)
    return column is not None and column.group == GROUP
