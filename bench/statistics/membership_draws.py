"""What membership figures are compared with: people drawn anew, and membership exchanged among people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bench.evidence import MembershipEvidence
from bench.seeds import derive, generator
from bench.statistics.resampling import ONE_EACH, draw_weights, name_of
from bench.types import NotApplicable, Replicates

DRAWS = 400
TOGETHER = 1_000_000
"""Numbers that are drawn at a time."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in falling order of one key's scores.

    Args:
        order: (n,) int64, rows from the highest score down.
        first, last: (n,) int64, by row: how many rows score higher, and how many at least as high.
    """

    order: torch.Tensor
    first: torch.Tensor
    last: torch.Tensor

    @classmethod
    def of(cls, scores: torch.Tensor) -> Self:
        """The ranking of scores (n,)."""
        order = torch.argsort(scores, descending=True, stable=True)
        falling = -scores[order]
        first, last = (torch.searchsorted(falling, -scores, right=right) for right in (False, True))
        return cls(order, first, last)

    def sums(self, weights: torch.Tensor) -> torch.Tensor:
        """(b, n + 1): what the first 0, 1, ..., n rows of the order weigh together, for weights (b, n)."""
        return torch.nn.functional.pad(weights.index_select(1, self.order).cumsum(dim=1), (1, 0))


Figure = Callable[[Ranking, torch.Tensor, torch.Tensor], torch.Tensor]
"""From a key's ranking, and how often each row counts as a member and as none, (b, n) int64 both: (b,) float64."""


@dataclass(frozen=True, eq=False)
class People:
    """Who the candidates are.

    Args:
        codes: (n,) int64, the person of each row, from 0.
        members: (keys, people) bool.
    """

    codes: torch.Tensor
    members: torch.Tensor

    def exchanged(self, key: int, draws: int, seed: int) -> Iterator[torch.Tensor]:
        """Random choices of as many people as are members under a key, in batches (b, members) int64."""
        people, chosen = self.members.shape[1], int(self.members[key].sum())
        random = generator(derive(seed, key))
        for size in _batches(draws, people):
            places = torch.rand(size, people, generator=random, dtype=torch.float64)
            yield torch.from_numpy(np.argpartition(places.numpy(), chosen - 1, axis=1)[:, :chosen])

    def rows(self, chosen: torch.Tensor) -> torch.Tensor:
        """(b, n) int64: 1 where a row belongs to one of the people in (b, members)."""
        mask = torch.zeros(len(chosen), self.members.shape[1], dtype=torch.int64).scatter_(1, chosen, 1)
        return mask.index_select(1, self.codes)


def people_of(evidence: MembershipEvidence) -> People:
    """The people behind the candidates; without subjects every row is a person of its own.

    Raises:
        NotApplicable: Under some key there are no members, or no others.
        ValueError: Somebody is on both sides.
    """
    codes = torch.arange(len(evidence.scores[0]))
    if evidence.subjects is not None:
        codes = torch.unique(evidence.subjects, return_inverse=True)[1]
    count, sides = int(codes.max()) + 1, []
    for members in evidence.members:
        if not 0 < int(members.sum()) < len(members):
            raise NotApplicable(
                f"telling members from others takes both, got {int(members.sum())} members of {len(members)} rows"
            )
        inside, outside = (torch.bincount(codes[part], minlength=count) > 0 for part in (members, ~members))
        if bool((inside & outside).any()):
            both = int((inside & outside).sum())
            raise ValueError(f"a person is a member of a key or none, got {both} people who are both")
        sides.append(inside)
    return People(codes, torch.stack(sides))


def unknown(evidence: MembershipEvidence) -> str:
    """What a note adds where nobody is known."""
    return "" if evidence.subjects is not None else f"; {ONE_EACH}"


def replicates(evidence: MembershipEvidence, rankings: Sequence[Ranking], figure: Figure) -> Replicates:
    """A figure by key, and on people drawn with replacement.

    Where people are known they have the same numbers for every method and attack, so that figures can be compared.
    """
    members, n, dropped = evidence.members, len(evidence.members[0]), 0
    by_key = [
        float(figure(ranking, own.long()[None], (~own).long()[None]))
        for ranking, own in zip(rankings, members, strict=True)
    ]
    drawn: list[list[float]] = [[] for _ in rankings]
    for number, size in enumerate(_batches(DRAWS, n)):
        times = draw_weights(evidence.subjects, n, size, seed=derive(evidence.draws, number))
        both = [(times[:, side].sum(dim=1) > 0)[:, None] for own in members for side in (own, ~own)]
        times = times[torch.cat(both, dim=1).all(dim=1)]  # of few people, a draw may hold one side alone
        dropped += size - len(times)
        for of_key, ranking, own in zip(drawn, rankings, members, strict=True):
            of_key += figure(ranking, times * own, times * ~own).tolist()
    people = people_of(evidence)
    inside = people.members
    fewer = int(torch.minimum(inside.sum(dim=1), (~inside).sum(dim=1)).min())
    alike = evidence.subjects is not None and not dropped
    name = name_of(torch.tensor([evidence.draws, inside.shape[1], n])) if alike else ""
    return Replicates(by_key, drawn, float(min(max(1, 2 * (fewer - 1)), DRAWS - 1)), name, "share")


def _batches(draws: int, width: int) -> list[int]:
    """How many draws of `width` numbers to make at a time."""
    size = max(1, TOGETHER // width)
    return [min(size, draws - start) for start in range(0, draws, size)]
