"""Forecasts of a run's time, and hours of a board.

Of a board, wall seconds grow as a power of the private rows: fitted to several sizes, in [0, 2]; 1 for a single size.
The estimate starts from the median at the largest size, and is rough: a preset changes more than rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
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
    "reidentification-label-linkage": 6.9, "reidentification-re-clustering": 6.9, "copies": 21.4,
    "reidentification-verification": 116.5, "membership-quantile-regression": 14.7, "membership-rmia": 28.2,
    "classifier-membership": 33.8,
}  # fmt: skip
"""Median seconds of jobs of the published rows at the preset first-look, with `KEYS` keys and `ROWS` private rows.

An attack or evaluator that is not listed takes the seconds of its kind, or `UNKNOWN`.
"""
UNKNOWN = 10.0
KEYS, ROWS = 5, 600
KEY_SECONDS: Mapping[str, float] = {
    "reidentification": 1.0, "reidentification-absolute-correlation": 9.2, "reidentification-contrastive-labels": 5.7,
    "reidentification-label-linkage": 2.9, "reidentification-re-clustering": 2.0, "reidentification-surrogate": 4.8,
    "reidentification-verification": 22.3, "membership": 5.5, "membership-domias": 2.4, "membership-monte-carlo": 0.7,
    "membership-quantile-regression": 1.94, "membership-rmia": 4.65, "classifier-membership": 5.75, "honesty": 0.15,
}  # fmt: skip
"""Seconds of another key at `ROWS` rows: medians of published jobs with 33 keys less those with 5, for each of 28 keys.

As for `TYPICAL`, an attack that is not listed takes the seconds of its kind. `reidentification-verification`,
`membership-quantile-regression`, `membership-rmia` and `classifier-membership` were published with 33 keys alone: both
numbers are that median less `START_SECONDS`, in equal shares of a key.
"""
START_SECONDS = 5.0
"""Of a job's seconds, those that the start of its processes takes; the rest grows with the rows."""
SKEW = 0.5
"""Logarithm of mean over median of a job's seconds around what was expected."""


@dataclass(frozen=True)
class Work:
    """A job as a forecast sees it.

    `kind` is "data", "fit" or the name of an evaluation; `keys` are those that it looks at, `rows` its private rows.
    """

    kind: str
    keys: int = KEYS
    rows: int = ROWS

    @property
    def typical(self) -> float:
        """Median seconds on a core without other work.

        >>> Work("fit").typical, Work("reidentification-likelihood", keys=33).typical
        (4.0, 38.0)
        """
        names = self.kind, self.kind.partition("-")[0]
        seconds = next((TYPICAL[name] for name in names if name in TYPICAL), UNKNOWN)
        if self.kind in ("data", "fit"):
            return seconds
        start = min(seconds, START_SECONDS)
        each, rest = next((KEY_SECONDS[name] for name in names if name in KEY_SECONDS), 0.0), seconds - start
        if each:
            rest = rest + each * (self.keys - KEYS) if self.keys > KEYS else rest * self.keys / KEYS
        return start + rest * self.rows / ROWS


class Usual:
    """Seconds that jobs take as a rule.

    Earlier records of a folder, of the same preset and device, say by how much its jobs differ from the typical ones:
    of the same kind, or else all of them. Without any, jobs are typical.

    Args:
        earlier: Records of the results folder.
        like: Preset and device of the run.
    """

    def __init__(self, earlier: Iterable[Record] = (), like: tuple[str, str] = ("", "")) -> None:
        taken, typical = defaultdict[str, float](float), defaultdict[str, float](float)
        self.records = 0
        for record in earlier:
            wall = record.seconds.get("wall")
            if record.status != "ok" or not wall or (record.preset, record.device) != like:
                continue
            self.records += 1
            rows = ROWS if record.dataset is None else record.dataset.rows.get("private", ROWS)
            done = [(Work(record.evaluator, record.keys, rows), wall)]
            if fit := record.seconds.get("fit"):
                done.append((Work("fit"), fit))
            for work, seconds in done:
                taken[work.kind] += seconds
                typical[work.kind] += work.typical
        self._shares = {kind: taken[kind] / typical[kind] for kind in taken}
        evaluations = [kind for kind in taken if kind != "fit"]
        whole = sum(typical[kind] for kind in evaluations)
        self._share = sum(taken[kind] for kind in evaluations) / whole if whole else math.exp(SKEW)

    def seconds(self, work: Work) -> float:
        """Expected seconds of a job."""
        other = math.exp(SKEW) if work.kind in ("data", "fit") else self._share
        return work.typical * self._shares.get(work.kind, other)

    def by_kind(self, jobs: Iterable[Work]) -> list[tuple[str, float]]:
        """The kind and the expected seconds of each job."""
        return [(job.kind, self.seconds(job)) for job in jobs]


_LEVEL, _FIRST, _KIND, _MOST = 0.25, 0.6, 0.5, 1.5
_NOT_APPLICABLE = 3.0  # seconds of a job that finds so, as long as none did
_SLOW = 0.8


class TimeLeft:
    """Time left of a run, corrected by each job that ends.

    A job's error is the logarithm of its seconds over the expected ones, at most 1.5 either way. It corrects what all
    jobs that are to come are expected to take, and more so those of its kind: a machine that other work shares slows
    down and recovers, and a method may be slow under each attack. (An exponential moving average of each; data and fits
    correct their own kind alone.) Jobs that are not applicable end early: their share among a kind's is counted.
    """

    def __init__(self) -> None:
        self._usual: dict[str, tuple[float, int]] = {}
        self._level, self._jobs = 0.0, 0
        self._kinds = defaultdict[str, float](float)
        self._tried, self._idle = Counter[str](), Counter[str]()
        self._idle_seconds = _NOT_APPLICABLE

    def expect(self, kind: str, seconds: float, *, jobs: int = 1) -> None:
        """More jobs of a kind, with their usual seconds together."""
        total, known = self._usual.get(kind, (0.0, 0))
        self._usual[kind] = total + seconds, known + jobs

    def finished(self, kind: str, seconds: float, *, applies: bool = True) -> None:
        """A job has ended; it `applies` unless it is not applicable."""
        alone = kind in ("data", "fit")
        if not alone:
            self._tried[kind] += 1
        if not applies:
            self._idle[kind] += 1
            self._idle_seconds += seconds
            return
        error = math.log(max(seconds, 0.1) / self._full(kind)) + SKEW
        error = max(-_MOST, min(_MOST, error))
        self._kinds[kind] += _KIND * error
        if not alone:
            self._jobs += 1
            self._level += max(_LEVEL, _FIRST / (self._jobs + 2)) * error

    def _full(self, kind: str) -> float:
        """Mean seconds of a job that applies."""
        total, jobs = self._usual.get(kind, (0.0, 0))
        usual = total / jobs if jobs else Usual().seconds(Work(kind))
        level = 0.0 if kind in ("data", "fit") else self._level
        return usual * math.exp(level + self._kinds[kind])

    def seconds(self, kind: str) -> float:
        """Expected seconds of the next job of a kind."""
        full, tried, idle = self._full(kind), self._tried.total(), self._idle.total()
        if kind in ("data", "fit"):
            return full
        share = (idle / (tried + 1) + self._idle[kind]) / (1 + self._tried[kind])
        return share * min(self._idle_seconds / (idle + 1), full) + (1 - share) * full

    def left(self, waiting: Iterable[str], running: Iterable[tuple[str, float]], workers: float) -> float:
        """Seconds until all jobs have ended.

        All workers share the work, and the longest job bounds it. A job that takes longer than expected is expected to
        take eight tenths of its time again.

        Args:
            waiting: The kind of each job that has not begun.
            running: The kind of each job at work, and its seconds so far.
            workers: Number of jobs at a time.
        """
        each = [self.seconds(kind) for kind in waiting]
        each += [max(self.seconds(kind) - seconds, _SLOW * seconds) for kind, seconds in running]
        return max(sum(each) / max(workers, 1.0), max(each, default=0.0))


@dataclass(frozen=True)
class Forecast:
    """The time and space of jobs that would run.

    `seconds` are those of a run on so many workers, and `size` the bytes of its records (None if nothing tells).
    `records` is the number of earlier records, of the same preset and device, that say so; without any, typical seconds
    do.
    """

    seconds: float
    size: int | None
    records: int

    @classmethod
    def of(cls, jobs: Sequence[Work], usual: Usual, sizes: Sequence[int], workers: int) -> Forecast:
        """Of jobs, with the bytes of earlier records."""
        left = TimeLeft()
        for job in jobs:
            left.expect(job.kind, usual.seconds(job))
        size = round(fmean(sizes) * len(jobs)) if sizes and usual.records else None
        return cls(left.left([job.kind for job in jobs], (), workers), size, usual.records)


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
