"""Rows of two sets, compared class by class where their labels mean the same."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.rows.label_classes import label_classes


def class_groups(
    labels: torch.Tensor | None, released: torch.Tensor | None, n: int, m: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Which of n rows are compared with which of m: int64 indices of both, every one of the n in one group.

    Rows are of one class that have the same labels (withheld labels included). A row whose class is not released is
    compared with all rows; so is every row where either side has no labels, or they have other columns.

    Args:
        labels: (n, k) float32 or None.
        released: (m, k) float32 or None.
        n, m: Rows.
    """
    if labels is None or released is None or labels.shape[1:] != released.shape[1:]:
        yield torch.arange(n), torch.arange(m)
        return
    number, _ = label_classes(torch.cat((labels, released)), n + m)
    everything = torch.arange(m, device=number.device)
    for each in torch.unique(number[:n]):
        own, theirs = ((of == each).nonzero()[:, 0] for of in (number[:n], number[n:]))
        yield own, theirs if len(theirs) else everything
