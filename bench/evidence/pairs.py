"""Counts of pair scores: one attack on pairs against one method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from bench.evidence.person_risk import PersonRisk
from bench.pairs.sweep import PairCounts
from bench.types import NotApplicable


@dataclass(frozen=True, eq=False)
class PairLevel:
    """Counts under one notion of a correct pair.

    Args:
        counts: By key, then by data sample.
        links: (p, 2) int64 of the first key's whole release: raw row, released row.
        whole: By key, on the whole grid, the true links of people who can be exchanged; empty where nobody counted it.
        permuted: By key, then by set: the same counts with people exchanged at random
            (`bench.pairs.people.exchanged_links` gives both). What chance gives where a person's images score alike:
            scores that are drawn independently are no null for them. Where there are none, that null is the one used.
        full: By key, on the whole grid, all true links.
        owners: By key (c,) int64, the person (`PairEvidence.persons`) behind each released row with a link, in the
            order of `PairCounts.top_1`.
    """

    counts: Sequence[Sequence[PairCounts]]
    links: torch.Tensor
    whole: Sequence[PairCounts] = ()
    permuted: Sequence[Sequence[PairCounts]] = ()
    full: Sequence[PairCounts] = ()
    owners: Sequence[torch.Tensor] = ()

    def __post_init__(self) -> None:
        if self.permuted and not len(self.whole) == len(self.permuted) == len(self.counts):
            raise ValueError(
                f"permuted counts need the whole grid's own, for the same keys: expected {len(self.counts)} of each, "
                f"got {len(self.whole)} whole and {len(self.permuted)} permuted"
            )
        if not len(self.full) == len(self.owners) == len(self.counts):
            raise ValueError(
                f"the whole release and its rows' people are needed for every key: expected {len(self.counts)} of "
                f"each, got {len(self.full)} and {len(self.owners)}"
            )


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """One attack against one method: counts for every key and every data sample.

    Args:
        shape: (n, m) of the whole grid.
        images: A correct pair is the same image.
        patients: A correct pair is the same person; None where nobody knows the subjects.
        samples: The data samples: int64 raw rows, drawn by person without replacement.
        persons: (n,) int64, the person of each raw row, from 0; a person of its own for each row where nobody is known.
        known: Whether the data say who is who.
        draws: Seed of people drawn with replacement: the same for every method and attack on the same rows.
        resamples: A name that all evidence of the same people and resamples shares; empty where nothing does.
        seed: For the null distribution's own draws.
        primary: A correct pair is a released row and the raw row that it was made for; None where rows are not mixed.
        people: Whom Eve's first guesses found; None where nobody looked.
    """

    shape: tuple[int, int]
    images: PairLevel
    patients: PairLevel | None
    samples: Sequence[torch.Tensor]
    persons: torch.Tensor
    known: bool
    draws: int
    resamples: str
    seed: int
    primary: PairLevel | None = None
    people: PersonRisk | None = None

    def level(self, name: Literal["image", "patient"]) -> PairLevel:
        """The counts at that level; NotApplicable where the data set does not say who is who."""
        if name == "image":
            return self.images
        if self.patients is None:
            raise NotApplicable("patient-level figures need subjects: this data set does not say who is who")
        return self.patients
