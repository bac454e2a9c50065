"""Links between people instead of images, and what is left of them when people are exchanged at random."""

from __future__ import annotations

import torch

from bench.seeds import generator

SETS = 19
"""Sets of exchanged links worth having: with one key, a two-sided p can then reach .1, with two keys .005."""
FEWEST = 10
"""People with the same number of images who are exchanged; fewer have too few arrangements to tell much."""


def patient_links(links: torch.Tensor, subjects: torch.Tensor) -> torch.Tensor:
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
    pairs: torch.Tensor = torch.unique(torch.stack((rows, cols), dim=1), dim=0)
    return pairs


def exchanged_links(
    links: torch.Tensor, subjects: torch.Tensor | None, n: int, *, sets: int = SETS, seed: int
) -> list[torch.Tensor]:
    """Links (p', 2) int64 of people who can be exchanged: the true links, then `sets` times with people exchanged.

    If scores know nothing of who is who, the true links are one more draw of the same kind: ranking their figure among
    those of the exchanged links tests that whatever the scores look like (Phipson and Smyth 2010, "Permutation p-values
    should never be zero"). Only raw rows change their names, so k-to-one and mixed links keep their structure, and the
    released rows of one person stay together.

    People with as many raw rows stand in a random circle and move on by a number of places, another for every set, so
    that no two sets, the true one among them, give a person the same rows: the true links of a few people among those
    of an attack that works would pass for what chance gives. All sets are exchangeable, and the test is exact, where
    every such circle has more people than there are sets. After a smaller one's last place comes another circle; p is
    then a little low, by a share of the order of one in the number of its people. Where fewer than `FEWEST` people
    share a number of rows, nobody can take theirs: their links are left out of all sets alike; they stay in the grid.
    For people as the match, apply `patient_links` to each set.

    Args:
        links: (p, 2) int64, image level, raw row first.
        subjects: (n,) int64 of the raw rows; None makes every row a person of its own.
        n: Raw rows.
        sets: How many.
        seed: The same seed gives the same exchanges, whatever the links.

    Returns:
        1 + sets tensors; none at all where no links are left.

    >>> exchanged_links(torch.tensor([[0, 0], [10, 1]]), torch.tensor([*range(10), 10, 10]), 12, sets=0, seed=0)
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
    circles = []
    for alike in torch.unique(size).tolist():
        people = (size == alike).nonzero().flatten()
        if len(people) >= FEWEST:
            circles.append([_circle(people, random) for _ in range(sets // (len(people) - 1) + 1)])
    rows, first = torch.argsort(codes, stable=True), size.cumsum(0) - size
    person = codes[rows]
    nth = torch.arange(n) - first[person]
    found = [links]
    for number in range(sets):
        place = torch.arange(len(size))
        for rounds in circles:
            circle, moves = rounds[number // len(rounds[0][1])]
            place[circle] = circle.roll(int(moves[number % len(moves)]))
        renamed = torch.empty_like(rows)
        renamed[rows] = rows[first[place[person]] + nth]
        found.append(torch.stack((renamed[links[:, 0]], links[:, 1]), dim=1))
    return found


def _circle(people: torch.Tensor, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """People in random order, and by how many places they may move on, all numbers but 0, in random order."""
    order, moves = (torch.randperm(many, generator=random) for many in (len(people), len(people) - 1))
    return people[order], 1 + moves
