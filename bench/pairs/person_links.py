"""Links between people, and null links by exchange of people."""

from __future__ import annotations

import torch

from bench.seeds import generator

SETS = 19
"""Sets of exchanged links: p can reach .05 with one key, .0025 with two."""
FEWEST = 10
"""Smallest number of people with equally many images who are exchanged."""


def patient_links(links: torch.Tensor, subjects: torch.Tensor) -> torch.Tensor:
    """All (raw row, released row) pairs of one person, (p', 2) int64.

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
    """Links (p', 2) int64 of exchangeable people: true, then `sets` times exchanged.

    Scores without identity information make the true links one more draw of the same kind: the rank of their figure
    among those of the exchanged links is an exact test for any scores (Phipson and Smyth 2010, "Permutation p-values
    should never be zero"). Only raw rows are renamed, so k-to-one and mixed links keep their structure, and one
    person's released rows stay together.

    People with equally many raw rows stand in a random circle and shift by a number of places, another for every set.
    So no two sets, the true one among them, give a person the same rows: else the true links of a few people would
    enter the null of an attack that works. All sets are exchangeable, and the test is exact, if every such circle has
    more people than there are sets. A smaller circle is drawn again when its shifts are used up; p is then too low by
    about one in the number of its people. If fewer than `FEWEST` people share a number of rows, their links are left
    out of all sets; their rows stay in the grid. For person-level links, apply `patient_links` to each set.

    Args:
        links: (p, 2) int64, image level, raw row first.
        subjects: (n,) int64 of the raw rows; None makes every row a person of its own.
        n: Raw rows.
        sets: Number of exchanged sets.
        seed: The same seed gives the same exchanges for any links.

    Returns:
        1 + sets tensors; an empty list if no links are left.

    >>> exchanged_links(torch.tensor([[0, 0], [10, 1]]), torch.tensor([*range(10), 10, 10]), 12, sets=0, seed=0)
    [tensor([[0, 0]])]
    """
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    if len(codes) != n:
        raise ValueError(f"subjects must name the person of every raw row: expected {n}, got {len(codes)}")
    size = torch.bincount(codes)
    exchangeable = torch.bincount(size)[size] >= FEWEST
    links = links[exchangeable[codes[links[:, 0]]]]
    if len(links) == 0:
        return []
    random = generator(seed)
    circles = []
    for rows_each in torch.unique(size).tolist():
        people = (size == rows_each).nonzero().flatten()
        if len(people) >= FEWEST:
            circles.append([_circle(people, random) for _ in range(sets // (len(people) - 1) + 1)])
    rows, first = torch.argsort(codes, stable=True), size.cumsum(0) - size
    person = codes[rows]
    nth = torch.arange(n) - first[person]
    link_sets = [links]
    for number in range(sets):
        place = torch.arange(len(size))
        for rounds in circles:
            circle, moves = rounds[number // len(rounds[0][1])]
            place[circle] = circle.roll(int(moves[number % len(moves)]))
        renamed = torch.empty_like(rows)
        renamed[rows] = rows[first[place[person]] + nth]
        link_sets.append(torch.stack((renamed[links[:, 0]], links[:, 1]), dim=1))
    return link_sets


def _circle(people: torch.Tensor, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """People in random order, and all shifts but 0 in random order."""
    order, moves = (torch.randperm(many, generator=random) for many in (len(people), len(people) - 1))
    return people[order], 1 + moves
