"""Labels and rows in which every class is equally frequent, as data owners publish them."""

from __future__ import annotations

import torch

from bench.seeds import derive, generator


def balance(labels: torch.Tensor, seed: int, *, exclusive: bool) -> torch.Tensor:
    """Labels (n, k) with as many positives as negatives in each column: a random surplus becomes NaN.

    The task filter of the Syfer paper (section 5) for training rows, which keeps one random negative per positive; here
    also the other way round where positives are more. Exclusive classes come back as they are (see `equal_classes`).

    >>> balance(torch.tensor([[1.0], [0.0], [0.0], [float("nan")]]), 0, exclusive=False).isnan().sum().item()
    2
    """
    if exclusive:
        return labels
    balanced = labels.clone()
    for column in range(labels.shape[1]):
        sides = [torch.nonzero(labels[:, column] == value)[:, 0] for value in (0, 1)]
        fewer, more = sorted(sides, key=len)
        order = torch.randperm(len(more), generator=generator(derive(seed, "balance", column)))
        balanced[more[order[len(fewer) :].to(labels.device)], column] = float("nan")
    return balanced


FLOOR = 5
"""Rows that an exclusive class must have for the others to be cut down to its size."""


def equal_classes(labels: torch.Tensor, seed: int) -> torch.Tensor:
    """One-hot labels (n, k) of which as many of each class are left as the smallest has: a random surplus becomes NaN.

    The Syfer paper's footnote 2 (Alice "can down-sample her dataset to a class-balanced subset"). Classes of fewer than
    `FLOOR` rows, which would take nearly all labels away, lose theirs instead, where two others are left.

    >>> equal_classes(torch.eye(2)[[0, 0, 0, 1]], 0).isnan().any(dim=1).sum().item()
    2
    """
    classes = [(labels[:, column] == 1).nonzero()[:, 0] for column in range(labels.shape[1])]
    kept = [column for column, rows in enumerate(classes) if len(rows) >= FLOOR]
    kept = kept if len(kept) > 1 else [column for column, rows in enumerate(classes) if len(rows)]
    fewest = min((len(classes[column]) for column in kept), default=0)
    left = torch.full_like(labels, torch.nan)
    for column in kept:
        order = torch.randperm(len(classes[column]), generator=generator(derive(seed, "class", column)))
        rows = classes[column][order[:fewest].to(labels.device)]
        left[rows] = labels[rows]
    return left


def balanced_rows(labels: torch.Tensor, seed: int) -> torch.Tensor:
    """Rows (int64, ascending) with known labels, drawn so that every class is equally frequent.

    Args:
        labels: (n, 1): 1, 0 or NaN; or one-hot (n, k) of exclusive classes, of which those that occur count.
        seed: Decides which rows of the larger classes stay.

    >>> balanced_rows(torch.tensor([[1.0], [0.0], [0.0], [float("nan")]]), 0).shape
    torch.Size([2])
    """
    known = (~labels.isnan()).all(dim=1).nonzero()[:, 0]
    several = labels.shape[1] > 1
    classes = labels[known].argmax(dim=1) if several else labels[known, 0].long()
    members = [known[classes == number] for number in range(max(2, labels.shape[1]))]
    if several and sum(len(part) > 0 for part in members) > 1:
        members = [part for part in members if len(part)]
    size = min(len(part) for part in members)
    random = generator(seed)
    chosen = [part[torch.randperm(len(part), generator=random)[:size].to(part.device)] for part in members]
    rows: torch.Tensor = torch.cat(chosen).sort().values
    return rows
