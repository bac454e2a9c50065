"""Whom Eve's first guesses find: a person, where she names the person for at least one of their released rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.evidence import PersonRisk
from bench.rows.person_groups import person_groups
from bench.rows.persons import persons_of
from bench.types import Attributes, Dataset


@dataclass(frozen=True, eq=False)
class Named:
    """Eve's first guesses under one key.

    Args:
        guesses: (m,) int64, the raw row that she names for each released row.
        links: (p, 2) int64 of the image level: raw row, released row.
    """

    guesses: torch.Tensor
    links: torch.Tensor


def found_people(named: Sequence[Named], raw: Dataset, attributes: Attributes | None = None) -> PersonRisk:
    """Whom she found under each key.

    Args:
        named: By key.
        raw: The n raw rows, with people where they are known; without, every row is a person of its own.
        attributes: What is known of these rows; None where nothing is.

    Returns:
        The risk of everybody with a released row under some key, over the keys under which they have one, in the order
        of their numbers.
    """
    n = len(raw)
    person = persons_of(raw)
    rows = torch.bincount(person)
    people = len(rows)
    found, luck, chance, asked = [], [], [], []
    for key in named:
        m = len(key.guesses)
        owned = torch.unique(torch.stack((person[key.links[:, 0]], key.links[:, 1])), dim=1)
        columns = torch.bincount(owned[0], minlength=people)
        guessed = person[key.guesses]
        found.append(torch.bincount(owned[0][guessed[owned[1]] == owned[0]], minlength=people) > 0)
        luck.append(met(columns, torch.bincount(guessed, minlength=people), m))
        chance.append(1 - (1 - rows.double() / n) ** columns)
        asked.append(columns > 0)
    trials = torch.stack(asked)
    ever = trials.any(dim=0)
    usual = (torch.stack(chance) * trials).sum(dim=0)[ever] / trials.sum(dim=0)[ever]
    groups = {
        attribute: {group: members[ever] for group, members in of.items()}
        for attribute, of in person_groups(raw, attributes).items()
    }
    return PersonRisk(torch.stack(found)[:, ever], torch.stack(luck)[:, ever], usual, groups, trials[:, ever])


def met(own: torch.Tensor, named: torch.Tensor, m: int) -> torch.Tensor:
    """(P,) float64: the chance that `named` of m rows, taken at random, hold at least one of `own` of them.

    >>> [round(chance, 6) for chance in met(torch.tensor([1, 2, 1]), torch.tensor([1, 1, 4]), 4).tolist()]
    [0.25, 0.5, 1.0]
    """

    def ways(count: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(count + 1) - torch.lgamma(chosen + 1) - torch.lgamma(count - chosen + 1)

    rest, named = m - own.double(), named.double()
    missed = torch.exp(ways(rest, named.minimum(rest)) - ways(torch.full_like(named, m), named))
    return torch.where(named > rest, 1.0, 1 - missed).clamp(0, 1)
