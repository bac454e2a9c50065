"""ReID AUC of true links and of links with people exchanged.

An attack whose scores hold nothing about who is who makes the true links one more draw of the exchanged ones (Phipson
and Smyth 2010). One renaming of people serves all keys, so the test also holds for a method whose releases do not vary
with the key; it serves all attacks too, so that they can be judged together.
"""

from __future__ import annotations

__figures__ = True

import torch

from bench.pairs.person_links import FEWEST
from bench.seeds import generator
from bench.types import PairScores

SETS, FEWEST_SETS = 1023, 199
"""Exchanges of people, usual and of very many rows: p can reach 1/1,024 or 1/200."""
MOST_RENAMED = 1 << 24
MOST_RANKED = 1 << 20
"""Pairs whose scores make the ranking; of more, so many are drawn."""
COLUMNS = 256
TOGETHER = 1 << 22
"""Numbers looked up at a time."""


def exchanged_people(subjects: torch.Tensor | None, n: int, *, sets: int | None = None, seed: int) -> torch.Tensor:
    """(1 + sets, n) int32: the row that each becomes, first itself.

    There are `SETS` exchanges, or fewer if `sets` says so or rows are very many. People with equally many rows are
    permuted at random, each permutation as likely as any other; a person's rows become another's in order. Those who
    share their number with fewer than `FEWEST` people stay (`exchangeable`).

    >>> exchanged_people(None, 12, sets=1, seed=0).shape
    torch.Size([2, 12])
    """
    sets = min(SETS, max(FEWEST_SETS, MOST_RENAMED // n)) if sets is None else sets
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    size, random = torch.bincount(codes), generator(seed)
    rows, first = torch.argsort(codes, stable=True), size.cumsum(0) - size
    renamed = torch.arange(n).repeat(1 + sets, 1)
    for rows_each in torch.unique(size).tolist():
        people = (size == rows_each).nonzero().flatten()
        if len(people) < FEWEST:
            continue
        own = rows[first[people][:, None] + torch.arange(rows_each)]
        for number in range(1, 1 + sets):
            renamed[number, own] = own[torch.randperm(len(people), generator=random)]
    return renamed.to(torch.int32)


def exchangeable(subjects: torch.Tensor | None, n: int) -> torch.Tensor:
    """(n,) bool: raw rows of people who are exchanged."""
    if subjects is None:
        return torch.full((n,), n >= FEWEST)
    codes = torch.unique(subjects, return_inverse=True)[1]
    size = torch.bincount(codes)
    return (torch.bincount(size)[size] >= FEWEST)[codes]


def exchanged_areas(scores: PairScores, links: torch.Tensor, renamed: torch.Tensor, *, seed: int) -> torch.Tensor:
    """(1 + sets,) float64 in [0, 1]: mean mid-rank of linked pairs.

    Up to a factor close to 1 it is the ReID AUC; ties count half. The ranking is that of all pairs, or of
    `MOST_RANKED` random ones: every exchange is ranked alike, so the test stays exact.

    Args:
        scores: (n, m).
        links: (p, 2) int64 of exchangeable rows: raw row, released row.
        renamed: As `exchanged_people` gives it.
        seed: Of the random pairs.
    """
    values, below, tied = _ranking(scores, seed)
    links = links[torch.argsort(links[:, 1], stable=True)]
    columns = links[:, 1].contiguous()
    total = torch.zeros(len(renamed), dtype=torch.float64)
    n, m = scores.shape
    for start in range(0, m, COLUMNS):
        first, last = torch.searchsorted(columns, torch.tensor([start, min(start + COLUMNS, m)])).tolist()
        if first == last:
            continue
        block = scores.block(slice(0, n), slice(start, min(start + COLUMNS, m))).cpu()
        ranked = len(block) <= len(renamed)  # fewer scores than look-ups of exchanged pairs
        block = _ranks(block, values, below, tied) if ranked else block
        inside, batch = links[first:last], max(1, TOGETHER // (last - first))
        for begin in range(0, len(renamed), batch):
            rows = renamed[begin : begin + batch, inside[:, 0]].long()
            found = block[rows, inside[:, 1] - start]
            ranks = found if ranked else _ranks(found, values, below, tied)
            total[begin : begin + batch] += ranks.sum(dim=1)
    return total / len(links)


def _ranking(scores: PairScores, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Distinct scores ascending, and the shares of pairs below and at each."""
    n, m = scores.shape
    if n * m <= MOST_RANKED:
        drawn = scores.block(slice(0, n), slice(0, m)).cpu().flatten()
    else:
        random, many = generator(seed), -(-m // COLUMNS)
        each, parts = max(1, MOST_RANKED // many), []
        for start in range(0, m, COLUMNS):
            block = scores.block(slice(0, n), slice(start, min(start + COLUMNS, m))).cpu().flatten()
            parts.append(block[torch.randint(len(block), (each,), generator=random)])
        drawn = torch.cat(parts)
    values, counts = torch.unique(drawn, return_counts=True)
    shares = counts.double() / len(drawn)
    return values, shares.cumsum(0) - shares, shares


def _ranks(scores: torch.Tensor, values: torch.Tensor, below: torch.Tensor, tied: torch.Tensor) -> torch.Tensor:
    """Share of ranked pairs below each score, and half of equal ones."""
    place = torch.searchsorted(values, scores.contiguous()).clamp(max=len(values) - 1)
    ranks = below[place] + torch.where(values[place] == scores, tied[place] / 2, 0.0)
    return torch.where(scores > values[-1], 1.0, ranks)
