"""Estimated hours of a board at another size, from recorded seconds.

Wall seconds grow as a power of the private rows: fitted to several sizes, in [0, 2]; 1 for a single size. The estimate
starts from the median at the largest size, and is rough: a preset changes more than rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression, median

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


TYPICAL: Mapping[str, float] = {
    "data": 10.0, "fit": 4.0, "honesty": 8.0, "utility": 13.5, "throughput": 2.7, "sets": 1.8, "tables": 0.7,
    "audit": 27.6, "anonymity": 2.1, "decoding": 27.9, "learning-curve": 17.4, "linear-probe": 3.1, "probes": 74.1,
    "reidentification": 10.0, "reidentification-absolute-correlation": 19.2, "reidentification-chance": 4.4,
    "reidentification-contrastive": 37.4, "reidentification-contrastive-labels": 34.5,
    "reidentification-float-holes": 7.9, "reidentification-invariants": 7.7, "reidentification-leverage": 10.2,
    "reidentification-likelihood": 10.0, "reidentification-moments": 28.0, "reidentification-nearest-neighbour": 5.7,
    "reidentification-relational": 18.8, "reidentification-surrogate": 28.5, "membership": 5.5,
}  # fmt: skip
"""Median seconds of jobs of the published rows at the preset first-look: only their ratios are used.

An attack or evaluator that is not listed takes the seconds of its kind, or `UNKNOWN`.
"""
UNKNOWN = 10.0
LATEST = 3
"""So many jobs of a kind say how long the next takes: a machine that other work shares slows down and recovers."""


def typical(job: str) -> float:
    """Seconds of a kind of job: an evaluator, "fit" or "data"."""
    return next((TYPICAL[name] for name in (job, job.partition("-")[0]) if name in TYPICAL), UNKNOWN)


def seconds_left(
    waiting: Iterable[str], running: Iterable[tuple[str, float]], past: Mapping[str, Sequence[float]]
) -> float:
    """Seconds of work in jobs that wait or run.

    A job takes the mean of the latest of its own kind; without one, its typical seconds times the speed of this
    machine, which the finished jobs of other kinds tell. One that has run for longer takes half its time again.

    Args:
        waiting: The kind of each job that has not begun.
        running: The kind of each job at work, and its seconds so far.
        past: The seconds of finished jobs, by kind.
    """
    latest = {kind: seconds[-LATEST:] for kind, seconds in past.items() if seconds}
    spent = sum(map(sum, latest.values()))
    usual = sum(len(seconds) * typical(kind) for kind, seconds in latest.items())
    speed = spent / usual if usual else 1.0

    def expected(kind: str) -> float:
        return fmean(latest[kind]) if kind in latest else speed * typical(kind)

    left = sum(map(expected, waiting))
    return left + sum(max(expected(kind) - seconds, seconds / 2) for kind, seconds in running)


@dataclass(frozen=True)
class Forecast:
    """The time and space of jobs that would run.

    `seconds` are those of all jobs one after the other, and `size` the bytes of their records (None if nothing tells).
    `records` is the number of earlier records, of the same preset and device, that say so; without any, typical seconds
    do.
    """

    seconds: float
    size: int | None
    records: int

    @classmethod
    def of(
        cls, kinds: Sequence[str], earlier: Iterable[Record], sizes: Sequence[int], like: tuple[str, str]
    ) -> Forecast:
        """Of jobs by their kinds.

        Args:
            kinds: The kind of each job, as `typical` takes it.
            earlier: Records of the results folder.
            sizes: Bytes of such records.
            like: Preset and device of the run.
        """
        past: dict[str, list[float]] = {}
        count = 0
        for record in earlier:
            wall = record.seconds.get("wall")
            if record.status == "ok" and wall and (record.preset, record.device) == like:
                past.setdefault(record.evaluator, []).append(wall)
                past.setdefault("fit", []).append(record.seconds.get("fit", 0.0))
                count += 1
        size = round(fmean(sizes) * len(kinds)) if sizes and count else None
        return cls(seconds_left(kinds, (), past), size, count)


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
