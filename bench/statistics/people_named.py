"""People whom Eve's first guesses name, and the luck in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bench.evidence import PersonRisk
from bench.pairs.score_blocks import FirstGuesses
from bench.rows.grouping import person_groups, persons_of
from bench.types import Attributes, Dataset


def owned_rows(links: torch.Tensor, person: torch.Tensor) -> torch.Tensor:
    """(2, o) int64, distinct: people and the released rows that show them.

    Of links (p, 2) and the person (n,) of each raw row.
    """
    pairs: torch.Tensor = torch.unique(torch.stack((person[links[:, 0]], links[:, 1])), dim=1)
    return pairs


@dataclass(frozen=True, eq=False)
class Named:
    """Eve's first guesses under one key, and the `owned_rows` asked for."""

    guesses: FirstGuesses
    owned: torch.Tensor


def told_apart(named: Named, number: torch.Tensor) -> Named:
    """The same guesses; released rows that are equal share their hits.

    Eve's guess for equal rows is one guess. If it names a person for k of them and one shows the person, she is
    right once in k, and no more surely for that person than for the others behind these rows. The mean over all asked
    pairs stays.

    Args:
        named: Guesses of one key.
        number: (m,) int64, each released row's number among the distinct ones (`bench.rows.row_sets.distinct`).
    """
    group = number.cpu()[named.owned[1]]
    hits, pairs = torch.zeros(int(number.max()) + 1, dtype=torch.float64), torch.bincount(group)
    shared = hits.index_add_(0, group, named.guesses.hits)[group] / pairs[group]
    return Named(replace(named.guesses, hits=shared), named.owned)


def found_people(named: Sequence[Named], raw: Dataset, attributes: Attributes | None = None) -> PersonRisk:
    """People whom Eve's first guesses identify, by key.

    A person is found if Eve names the person for at least one of their released rows; ties of each released row are
    drawn by themselves. All people with a released row count, over the keys under which they have one.
    """
    n = len(raw)
    rows = torch.bincount(persons_of(raw))
    people = len(rows)
    hits, luck, chance, possible = [], [], [], []
    for key in named:
        columns = torch.bincount(key.owned[0], minlength=people)
        missed = torch.ones(people, dtype=torch.float64)
        missed.scatter_reduce_(0, key.owned[0], 1 - key.guesses.hits, "prod")
        hits.append(1 - missed)
        luck.append(met(columns, key.guesses.named, key.guesses.squares, key.guesses.rows))
        chance.append(1 - (1 - rows.double() / n) ** columns)
        possible.append(columns > 0)
    trials = torch.stack(possible)
    ever = trials.any(dim=0)
    usual = (torch.stack(chance) * trials).sum(dim=0)[ever] / trials.sum(dim=0)[ever]
    groups = {
        attribute: {group: members[ever] for group, members in members_by_group.items()}
        for attribute, members_by_group in person_groups(raw, attributes).items()
    }
    return PersonRisk(torch.stack(hits)[:, ever], torch.stack(luck)[:, ever], usual, groups, trials[:, ever])


def met(own: torch.Tensor, named: torch.Tensor, squares: torch.Tensor, m: int) -> torch.Tensor:
    """P(one of `own` random rows of m names the person), (P,) float64.

    The rows name the person with probabilities that sum to `named`, and their squares to `squares`. They count as
    named^2 / squares rows of the probability squares / named each, drawn without replacement: exact for one own row,
    and for any number if these probabilities are alike, as without ties.

    >>> own, named = torch.tensor([1, 2, 1]), torch.tensor([1.0, 1.0, 4.0])
    >>> [round(chance, 6) for chance in met(own, named, named, 4).tolist()]
    [0.25, 0.5, 1.0]
    >>> [round(chance, 6) for chance in met(own, named, torch.tensor([0.5, 0.5, 4.0]), 4).tolist()]
    [0.25, 0.458333, 1.0]
    """
    share = torch.where(named > 0, squares / named, 1.0).clamp(max=1.0)
    among = torch.where(named > 0, named / share, 0.0).clamp(max=m)
    miss = torch.zeros_like(named)
    for drawn in range(int(own.max()) + 1):
        miss += _drawn(drawn, own, among, m) * (1 - share) ** drawn
    return (1 - miss).clamp(0, 1)


def _drawn(k: int, own: torch.Tensor, among: torch.Tensor, m: int) -> torch.Tensor:
    """P(k of `own` rows drawn of m are `among` some), hypergeometric."""
    rest, left = m - among, (own - k).double()
    possible = (left >= 0) & (among >= k) & (rest >= left)
    drawn, every = torch.full_like(among, k), torch.full_like(among, m)
    ways = _ways(among, drawn) + _ways(rest, left) - _ways(every, own.double())
    chances: torch.Tensor = torch.where(possible, ways.exp(), 0.0)
    return chances


def _ways(count: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Logarithm of a binomial coefficient, for counts of any size."""
    return torch.lgamma(count + 1) - torch.lgamma(chosen + 1) - torch.lgamma(count - chosen + 1)
