"""Classes of rows: those with the same labels, a withheld label being a value like any other."""

from __future__ import annotations

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
