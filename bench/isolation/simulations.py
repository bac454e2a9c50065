"""Simulations of the owner's form, in place of an attacker's own.

A method may know an attacker's call by what no form of rows hides: other rows than the owner's, or the history of a
process. So the judge releases the owner's rows under fresh keys, in processes that do what an owner's does, and an
attack trains on these. Its calls reach no method: a call with some of the owner's rows gets the part of a release that
shows them. It knows no more than before, because it has those rows as candidates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from bench.isolation.call_shape import Call, CallShape, UnlinkedError, digests
from bench.types import Dataset, NotApplicable, Release

KEPT = 4
"""One in so many releases, the first, serves no second key: attacks judge by keys that they draw first."""


@dataclass(frozen=True, eq=False)
class Simulations:
    """Releases of the owner's rows under fresh keys.

    Args:
        private: The owner's rows.
        shape: The form of the method's calls.
        count: Number of releases.
        release: The release of a number below `count`; links name rows of `private`.
    """

    private: Dataset
    shape: CallShape
    count: int
    release: Callable[[int], Release]
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, secret: bytes) -> int:
        """The release that stands for a key of that secret.

        If keys are more than releases, later ones share those that the first quarter of keys has not.
        """
        at = self._numbers.setdefault(secret, len(self._numbers))
        first = self.count // KEPT
        return at if at < self.count else first + (at - self.count) % (self.count - first)

    @cached_property
    def _names(self) -> list[bytes]:
        return digests(self.private.samples, self.shape.secret)

    def shown(self, number: int, given: Dataset) -> Release:
        """The part of a release that shows some of the owner's rows.

        Raises:
            NotApplicable: Other rows, or some of the rows without links.
        """
        free = defaultdict[bytes, list[int]](list)
        for row, name in enumerate(self._names):
            free[name].append(row)
        place = torch.full((len(self.private),), -1)
        for row, name in enumerate(digests(given.samples, self.shape.secret)):
            if not free[name]:
                raise NotApplicable("simulations of the owner's form show each of her rows once, and no others")
            place[free[name].pop(0)] = row
        others = place < 0
        place[others] = len(given) + torch.arange(int(others.sum()))
        release = self.release(number)
        if self.shape.labels == "none":  # raw ones, which the judge added for the owner
            release = replace(release, labels=None)
        try:
            return Call(given, self.private, place, self.shape.labels).returned(release)
        except UnlinkedError:
            raise NotApplicable("a release without links has no part that shows some of the rows") from None


@dataclass(frozen=True, eq=False)
class SimulatedKey:
    """A key of an attacker, whose one release the judge has made."""

    simulations: Simulations
    number: int

    def release(self, rows: Dataset) -> Release:
        """As `Simulations.shown`."""
        return self.simulations.shown(self.number, rows)
