"""Classes of rows: those with the same labels, a withheld label being a value like any other.

Rows of two sets, compared class by class where their labels mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch


def label_classes(labels: torch.Tensor | None, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The class of each row, and what the classes are.

    Args:
        labels: (n, k) float32: 1, 0, NaN; None where there are none; that, and k = 0, makes one class.
        n: Rows.

    Returns:
        (n,) int64 numbers of classes, and the classes' labels (c, k) float32, in ascending order, NaN first.

    >>> number, classes = label_classes(torch.tensor([[1.0], [float("nan")], [0.0], [1.0]]), 4)
    >>> number.tolist(), classes.flatten().tolist()
    ([2, 0, 1, 2], [nan, 0.0, 1.0])
    """
    if labels is None or not labels.shape[1]:  # torch.unique takes no empty rows
        return torch.zeros(n, dtype=torch.int64), torch.zeros(1, 0)
    unknown = -1.0
    classes, number = torch.unique(labels.nan_to_num(unknown), dim=0, return_inverse=True)
    return number, torch.where(classes == unknown, torch.nan, classes)


def labelled(labels: torch.Tensor) -> torch.Tensor:
    """The rows (int64 indices) of labels (n, k) with at least one known label."""
    return (~labels.isnan()).any(dim=1).nonzero()[:, 0]


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
