"""Classes of rows with the same labels; NaN is a label too."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def label_classes(labels: torch.Tensor | None, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Class number of each row, and the labels of each class.

    Args:
        labels: (n, k) float32: 1, 0, NaN. None or k = 0 makes one class.
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
    """Indices (int64) of the rows with a known label."""
    return (~labels.isnan()).any(dim=1).nonzero()[:, 0]


def class_groups(
    labels: torch.Tensor | None, released: torch.Tensor | None, n: int, m: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Index sets (int64) of n and of m rows to compare.

    Rows are compared within a class: the same labels, NaN included. A row is compared with all m if its class is not
    released, if either side has no labels, or if the label columns differ in number. Each of the n rows is in one
    group.

    Args:
        labels: (n, k) float32 or None.
        released: (m, k) float32 or None.
        n, m: Rows.
    """
    if labels is None or released is None or labels.shape[1:] != released.shape[1:]:
        yield torch.arange(n), torch.arange(m)
        return
    classes, _ = label_classes(torch.cat((labels, released)), n + m)
    all_rows = torch.arange(m, device=classes.device)
    for label in torch.unique(classes[:n]):
        rows, others = ((side == label).nonzero()[:, 0] for side in (classes[:n], classes[n:]))
        yield rows, others if len(others) else all_rows
