"""Links between people instead of images, and what is left of them when people are exchanged at random."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.seeds import generator

SETS = 19
"""Sets of exchanged links worth having: with one key, a two-sided p can then reach .1, with two keys .005."""
FEWEST = 5
"""People with the same number of images who are exchanged; fewer have too few arrangements to tell much."""


def patient_links(links: Tensor, subjects: Tensor) -> Tensor:
    """All (raw row, released row) pairs that show the same person, (p', 2) int64.

    Args:
        links: (p, 2) int64, image level.
        subjects: (n,) int64 of the raw rows.

    >>> patient_links(torch.tensor([[0, 1], [1, 0], [2, 2]]), torch.tensor([7, 7, 9])).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    """
    owners = torch.unique(torch.stack((subjects[links[:, 0]], links[:, 1]), dim=1), dim=0)
    order = torch.argsort(subjects, stable=True)
    ranked = subjects[order]
    start = torch.searchsorted(ranked, owners[:, 0].contiguous())
    size = torch.searchsorted(ranked, owners[:, 0].contiguous(), right=True) - start
    first = torch.repeat_interleave(start - size.cumsum(0) + size, size)
    rows = order[first + torch.arange(int(size.sum()))]
    cols = torch.repeat_interleave(owners[:, 1], size)
    pairs: Tensor = torch.unique(torch.stack((rows, cols), dim=1), dim=0)
    return pairs


def exchanged_links(links: Tensor, subjects: Tensor | None, n: int, *, sets: int = SETS, seed: int) -> list[Tensor]:
    """Links (p', 2) int64 of people who can be exchanged: the true ones first, then `sets` times with people exchanged.

    If scores know nothing of who is who, the true links are one more draw of the same kind: ranking their figure among
    those of the exchanged links tests that whatever the scores look like (Phipson and Smyth 2010, "Permutation p-values
    should never be zero"). Only raw rows change their names, so k-to-one and mixed links keep their structure, and the
    released rows of one person stay together.

    People with as many raw rows change places along a random cycle: nobody keeps their own, for the true links of a few
    people among those of an attack that works would pass for what chance gives. (Pairs of the true and one exchanged
    set are exchangeable; several sets are so but for that, which is of the order of one in the number of people.) Where
    fewer than `FEWEST` people share a number of rows, nobody can take theirs: their links are left out of all sets
    alike; they stay in the grid. For people as the match, apply `patient_links` to each set.

    Args:
        links: (p, 2) int64, image level, raw row first.
        subjects: (n,) int64 of the raw rows; None makes every row a person of its own.
        n: Raw rows.
        sets: How many.
        seed: The same seed gives the same exchanges, whatever the links.

    Returns:
        1 + sets tensors; none at all where no links are left.

    >>> exchanged_links(torch.tensor([[0, 0], [5, 1]]), torch.tensor([1, 2, 3, 4, 5, 6, 6]), 7, sets=0, seed=0)
    [tensor([[0, 0]])]
    """
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    if len(codes) != n:
        raise ValueError(f"subjects must name the person of every raw row: expected {n}, got {len(codes)}")
    size = torch.bincount(codes)
    exchanged = torch.bincount(size)[size] >= FEWEST
    links = links[exchanged[codes[links[:, 0]]]]
    if len(links) == 0:
        return []
    random = generator(seed)
    found = [links]
    for _ in range(sets):
        turn = torch.randperm(len(size), generator=random)
        first = torch.full((int(size.max()) + 1,), len(turn)).scatter_reduce_(0, size, turn, "amin")
        last = torch.where(turn == first[size], len(turn), turn)
        renamed = torch.empty_like(codes)
        renamed[_rows_by_person(codes, size, turn)] = _rows_by_person(codes, size, last)
        found.append(torch.stack((renamed[links[:, 0]], links[:, 1]), dim=1))
    return found


def _rows_by_person(codes: Tensor, size: Tensor, turn: Tensor) -> Tensor:
    """All raw rows, listed person by person: by the number of rows, then by the person's turn."""
    return torch.argsort((size * (len(turn) + 1) + turn)[codes], stable=True)
