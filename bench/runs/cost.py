"""Estimated hours of a board at another size, from recorded seconds.

Wall seconds grow as a power of the private rows: fitted to several sizes, in [0, 2]; 1 for a single size. The estimate
starts from the median at the largest size, and is rough: a preset changes more than rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import linear_regression, median

from bench.results.records import Record

_MOST_GROWTH = 2.0


@dataclass(frozen=True)
class EvaluatorCost:
    """The cost of an evaluator's jobs, by records of the largest size.

    `rows` are their private rows, `seconds` the median on the wall, `growth` the power of the rows, which is `fitted`
    or taken for 1, and `estimated` the seconds of a job at the size that was asked for.
    """

    kind: str
    device: str
    jobs: int
    rows: int
    seconds: float
    growth: float
    fitted: bool
    estimated: float

    @property
    def hours(self) -> float:
        """Hours of all its jobs."""
        return self.jobs * self.estimated / 3600


def costs(records: Iterable[Record], rows: int) -> list[EvaluatorCost]:
    """The cost by evaluator and device at so many private rows."""
    known: dict[tuple[str, str], dict[int, list[float]]] = {}
    for record in records:
        private = None if record.dataset is None else record.dataset.rows.get("private")
        if record.status == "ok" and private and (wall := record.seconds.get("wall")):
            known.setdefault((record.kind, record.device), {}).setdefault(private, []).append(wall)
    found = []
    for (kind, device), by_rows in sorted(known.items()):
        largest = max(by_rows)
        seconds, growth = median(by_rows[largest]), _growth(by_rows)
        power = 1.0 if growth is None else growth
        estimated = seconds * (rows / largest) ** power
        found.append(
            EvaluatorCost(kind, device, len(by_rows[largest]), largest, seconds, power, growth is not None, estimated)
        )
    return found


def hours_on(found: Iterable[EvaluatorCost], workers: int) -> float:
    """Hours on so many workers, at least those of the longest job."""
    found = list(found)
    longest = max((each.estimated for each in found), default=0.0) / 3600
    return max(sum(each.hours for each in found) / workers, longest)


def _growth(by_rows: dict[int, list[float]]) -> float | None:
    """Slope of log seconds over log rows; None for one size."""
    points = [(math.log(rows), math.log(median(seconds))) for rows, seconds in by_rows.items()]
    if len(points) < 2:
        return None
    slope = linear_regression(*zip(*points, strict=True)).slope
    return min(max(slope, 0.0), _MOST_GROWTH)
