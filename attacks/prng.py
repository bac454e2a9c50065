"""Guessed keys: Eve, the attacker, tries all keys of a scheme.

Source: this project. A generator that is fed few bits (torch's on a CPU keeps 32 of a seed) has few keys, however large
they look. Eve estimates their number from keys of her own (`bench.eve.key_space`). She makes trial releases of
candidates under as many keys as her budget allows, and looks for their rows, to the last bit, among the released ones.
A key whose rows are there is the owner's. She then releases every candidate under it: a pair scores 1 if the released
row is the candidate's own, and 0 if not. If no key is found, all scores are 0, which is chance.

A key of her own tells Eve the rows of a trial. If rows do not depend on their order, a trial has one candidate, a few,
or all of them. If noise depends on the place, it has one candidate in every place. If noise depends on the content and
order of all rows, a trial needs the owner's order of rows as well. Then no key is tried, and the notes give the cost of
trying every key for an attacker who knows the order.

Keys without any secret are a space of one key: identity, like all that anyone can compute, is found at once. A good key
may seed a short generator within a release. Eve notices that only if two keys that she draws give the same numbers.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import torch

from bench.eve.key_space import KeySpace, survey
from bench.progress import report, stage
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, Dataset, Key, NotApplicable, PairScores, Parameter, Release, View
from bench.validation import at_least

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 16
TIMED = 8  # releases that are timed where no key can be tried
VERIFIED = 4  # keys that are looked at closely, of those whose rows seem to be there
REPORTED = 1 << 10
ROWS = 256  # that are hashed at a time
YEAR = 365.25 * 24 * 3600.0
Marks: TypeAlias = "NDArray[np.uint64]"


@dataclass(frozen=True)
class PRNG(Attack):
    """Tries keys, if there are few, until one gives the released rows.

    Args:
        tries: Keys that are tried, at most.
        numbers: Numbers that trial releases hold in all, at most.
    """

    name: ClassVar[str] = "prng"
    source: ClassVar[str] = "this project: exhaustive search of keys that are made from few bits"
    makes_releases = True
    knowledge: ClassVar[str] = (
        "the raw rows, the release to the last bit, and the scheme, whose keys she draws and loads"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"tries": 1 << 14}}

    tries: int = 1 << 18
    numbers: int = 1 << 30

    def __post_init__(self) -> None:
        at_least(1, tries=self.tries, numbers=self.numbers)

    def fit(self, view: View, seed: int) -> PRNGAttacker:
        """Count the keys; make trial releases. Raises NotApplicable without links."""
        stage("count keys")
        candidates, own = view.candidates, view.scheme.sample_key(Secret.of_seed(seed, "own"))
        trial, least = _trial(own, candidates, derive(seed, "order")), _least(own, candidates)
        space = survey(view.scheme, seed, lambda key: hashlib.sha256(_bytes(key.release(least).samples)).digest())
        stage("try keys")
        shown = candidates if trial is None else trial.rows
        budget = TIMED if trial is None else max(1, min(self.tries, self.numbers // shown.samples.numel()))
        marks: list[Marks] = []
        start = time.perf_counter()
        for number, key in enumerate(islice(space.keys(), budget)):
            marks.append(_marks(key.release(shown).samples))
            if number % REPORTED == 0:
                report("try keys", number, budget)
        seconds = (time.perf_counter() - start) / len(marks)
        return PRNGAttacker(candidates, space, trial, [] if trial is None else marks, seconds, self.numbers)


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows released to try a key, and if all are one candidate."""

    rows: Dataset
    placed: bool


@dataclass(eq=False)
class PRNGAttacker(Attacker):
    """The candidates (n, ...), keys, trial (None: untried), and outcome.

    Args:
        marks: Hashes of the rows that each tried key released.
        seconds: A try takes on the wall: the method may do it in a process of its own.
        numbers: Numbers that may be released to score candidates.
    """

    candidates: Dataset
    space: KeySpace
    trial: Trial | None
    marks: list[Marks]
    seconds: float
    numbers: int
    found: int = 0
    scored: int = 0

    def score(self, sealed: Release) -> FoundScores:
        """1 for pairs that the owner's key makes; 0 if not found."""
        self.scored += 1
        shape = len(self.candidates), len(sealed)
        columns = _columns(sealed.samples)
        for number in self._matches(_marks(sealed.samples)):
            key = next(islice(self.space.keys(), number, None))
            pairs = sorted({(row, column) for row, own in self._own(key) for column in columns.get(own, ())})
            if pairs:
                self.found += 1
                return FoundScores(shape, torch.tensor(pairs))
        return FoundScores(shape, torch.empty(0, 2, dtype=torch.int64))

    def _matches(self, released: Marks) -> list[int]:
        """Numbers of keys that released such rows, those with most matches first."""
        if not self.marks:
            return []
        keys = np.repeat(np.arange(len(self.marks)), [len(marks) for marks in self.marks])
        counted = Counter(keys[np.isin(np.concatenate(self.marks), released)].tolist())
        return [number for number, _ in counted.most_common(VERIFIED)]

    def _own(self, key: Key) -> Iterator[tuple[int, bytes]]:
        """Candidates, and what they become under a key."""
        n, trial = len(self.candidates), self.trial
        if trial is None or not trial.placed:
            yield from _linked(key.release(self.candidates))
            return
        for row in range(min(n, max(1, self.numbers // self.candidates.samples.numel()))):
            for _, own in _linked(key.release(_repeated(self.candidates, row))):
                yield row, own

    def notes(self) -> Mapping[str, int | float | str]:
        """Counts of existing, tried and found keys, and the full search's cost."""
        space = self.space
        notes = {
            "key bits": round(space.bits, 1),
            "key bits known by": space.basis,
            "keys drawn": space.drawn,
            "different keys drawn": space.different,
            "keys tried": len(self.marks),
            "keys found": f"{self.found} of {self.scored}",
            "seconds a key": self.seconds,
            "years for all keys, in turn": self.seconds * 2.0**space.bits / YEAR,
        }
        return notes if self.trial else notes | {"not tried": "a release depends on all rows in their owner's order"}


class FoundScores(PairScores):
    """1 for pairs (p, 2) int64 of raw and released rows."""

    def __init__(self, shape: tuple[int, int], pairs: torch.Tensor) -> None:
        self.shape, self._pairs = shape, pairs

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """float32, 0 or 1."""
        (top, bottom, _), (left, right, _) = rows.indices(self.shape[0]), cols.indices(self.shape[1])
        at = self._pairs - torch.tensor([top, left])
        at = at[((at >= 0) & (at < torch.tensor([bottom - top, right - left]))).all(dim=1)]
        scores = torch.zeros(bottom - top, right - left)
        scores[at[:, 0], at[:, 1]] = 1
        return scores


def _trial(own: Key, candidates: Dataset, seed: int) -> Trial | None:
    """The fewest rows, or one repeated, that the whole release contains."""
    n, device = len(candidates), candidates.samples.device
    release = own.release(candidates.take(torch.randperm(n, generator=generator(seed)).to(device)))
    if release.links is None:
        raise NotApplicable("no raw row stands in a row of this release")
    all_rows = set(_columns(release.samples))
    for first in _first(candidates):
        if (shown := _released(own, first)) and shown <= all_rows:
            return Trial(first, placed=False)
    placed = _repeated(candidates, 0)
    return Trial(placed, placed=True) if _released(own, placed) & all_rows else None


def _least(own: Key, candidates: Dataset) -> Dataset:
    """The fewest rows that a key releases."""
    return next(first for first in _first(candidates) if len(first) == len(candidates) or _released(own, first))


def _first(candidates: Dataset) -> Iterator[Dataset]:
    """One candidate, a few, all."""
    for count in sorted({1, min(FEW, len(candidates)), len(candidates)}):
        yield candidates.take(torch.arange(count, device=candidates.samples.device))


def _released(key: Key, rows: Dataset) -> set[bytes]:
    """Released rows; none if the method refuses, or repeats a row."""
    try:
        return set(_columns(key.release(rows).samples))
    except (NotApplicable, ValueError):
        return set()


def _repeated(candidates: Dataset, row: int) -> Dataset:
    return candidates.take(torch.full((len(candidates),), row, device=candidates.samples.device))


def _linked(release: Release) -> Iterator[tuple[int, bytes]]:
    """Raw rows by number, and a released row that each stands in."""
    assert release.links is not None
    rows = _digests(release.samples)
    for raw, released in release.links.tolist():
        yield raw, rows[released]


def _columns(samples: torch.Tensor) -> dict[bytes, list[int]]:
    """Places of each row."""
    places: dict[bytes, list[int]] = {}
    for column, row in enumerate(_digests(samples)):
        places.setdefault(row, []).append(column)
    return places


def _digests(samples: torch.Tensor) -> list[bytes]:
    """Hashes that tell rows apart to the last bit, read in parts."""
    return [hashlib.sha256(_bytes(row)).digest() for some in torch.split(samples, ROWS) for row in some[:]]


def _bytes(numbers: torch.Tensor) -> bytes:
    return numbers.detach().cpu().contiguous().numpy().tobytes()


def _marks(samples: torch.Tensor) -> Marks:
    """Hashes (m,) uint64 of rows (m, ...) float32; equal for equal rows."""
    return np.concatenate([_marked(some[:]) for some in torch.split(samples, ROWS)])


def _marked(samples: torch.Tensor) -> Marks:
    words = samples.detach().cpu().contiguous().flatten(1).numpy().view(np.uint32).astype(np.uint64)
    marks: Marks = (words * _factors(words.shape[1])).sum(axis=1, dtype=np.uint64)
    return marks


@lru_cache(maxsize=4)
def _factors(width: int) -> Marks:
    return np.random.default_rng(0).integers(1 << 64, size=width, dtype=np.uint64) | np.uint64(1)
