"""Labels and rows in which every class is equally frequent, as data owners publish them."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.seeds import derive, generator


def balance(labels: Tensor, seed: int, *, exclusive: bool) -> Tensor:
    """Labels (n, k) with as many positives as negatives in each column: a random surplus becomes NaN.

    The task filter of the Syfer paper (section 5) for training rows, which keeps one random negative per positive; here
    also the other way round where positives are more. Exclusive classes come back as they are.

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


def balanced_rows(labels: Tensor, seed: int) -> Tensor:
    """Rows (int64, ascending) with known labels, drawn so that every class is equally frequent.

    Args:
        labels: (n, 1): 1, 0 or NaN; or one-hot (n, k) of exclusive classes.
        seed: Decides which rows of the larger classes stay.

    >>> balanced_rows(torch.tensor([[1.0], [0.0], [0.0], [float("nan")]]), 0).shape
    torch.Size([2])
    """
    known = (~labels.isnan()).all(dim=1).nonzero()[:, 0]
    classes = labels[known, 0].long() if labels.shape[1] == 1 else labels[known].argmax(dim=1)
    members = [known[classes == number] for number in range(max(2, labels.shape[1]))]
    size = min(len(part) for part in members)
    random = generator(seed)
    chosen = [part[torch.randperm(len(part), generator=random)[:size].to(part.device)] for part in members]
    rows: Tensor = torch.cat(chosen).sort().values
    return rows
