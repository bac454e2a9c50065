"""Findings that can be scored, and class-balanced labels and rows."""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.data.splits import Splits
from bench.seeds import derive, generator
from bench.types import Dataset

FLOOR = 5
"""Rows that an exclusive class must have for the others to be cut down to its size."""
MINIMUM_CASES = 5


def balance(labels: torch.Tensor, seed: int, *, exclusive: bool) -> torch.Tensor:
    """Labels (n, k) balanced in each column: a random surplus becomes NaN.

    The task filter of the Syfer paper (section 5) for training rows, which keeps one random negative per positive; here
    also the other way round if positives are more. Exclusive classes come back as they are (see `equal_classes`).

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


def equal_classes(labels: torch.Tensor, seed: int) -> torch.Tensor:
    """One-hot labels (n, k) with classes cut to the smallest one's size.

    A random surplus becomes NaN.
    The Syfer paper's footnote 2 (Alice "can down-sample her dataset to a class-balanced subset"). Classes of fewer than
    `FLOOR` rows, which would take nearly all labels away, lose theirs instead, if two others are left.

    >>> equal_classes(torch.eye(2)[[0, 0, 0, 1]], 0).isnan().any(dim=1).sum().item()
    2
    """
    classes = [(labels[:, column] == 1).nonzero()[:, 0] for column in range(labels.shape[1])]
    columns = [column for column, rows in enumerate(classes) if len(rows) >= FLOOR]
    columns = columns if len(columns) > 1 else [column for column, rows in enumerate(classes) if len(rows)]
    fewest = min((len(classes[column]) for column in columns), default=0)
    left = torch.full_like(labels, torch.nan)
    for column in columns:
        order = torch.randperm(len(classes[column]), generator=generator(derive(seed, "class", column)))
        rows = classes[column][order[:fewest].to(labels.device)]
        left[rows] = labels[rows]
    return left


def balanced_rows(labels: torch.Tensor, seed: int) -> torch.Tensor:
    """Indices (int64, ascending) of labelled rows with equally frequent classes.

    Args:
        labels: (n, 1): 1, 0 or NaN; or one-hot (n, k) of exclusive classes; classes without rows are ignored.
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


def scorable(splits: Splits, seed: int, *, balanced: bool) -> tuple[Splits, list[str]]:
    """Splits without findings that have too few cases, and notes on those.

    `balanced` balances private and control labels as in Syfer, by `seed`.
    """
    parts = (splits.private, splits.control, splits.test)
    columns = [
        k
        for k in range(len(splits.private.findings))
        if all(int((part.labels[:, k] == value).sum()) >= MINIMUM_CASES for part in parts for value in (0, 1)
               if part.labels is not None)
    ]  # fmt: skip
    dropped = [name for k, name in enumerate(splits.private.findings) if k not in columns]
    if dropped and not splits.private.exclusive:
        splits = replace(
            splits,
            private=_columns(splits.private, columns), control=_columns(splits.control, columns),
            test=_columns(splits.test, columns),
        )  # fmt: skip
        note = f"findings with fewer than {MINIMUM_CASES} cases on either side of a split are not scored: "
        notes = [note + ", ".join(dropped)]
    else:
        notes = []
    if not balanced or splits.private.exclusive:
        return splits, notes
    return replace(
        splits,
        private=_balanced(splits.private, derive(seed, "balance", "private")),
        control=_balanced(splits.control, derive(seed, "balance", "control")),
        natural=splits.private.labels,
    ), notes


def of_equal_classes(splits: Splits, seed: int) -> tuple[Splits, str]:
    """Splits with equally frequent exclusive classes, and a note ("" if unchanged).

    The surplus of private and control labels is withheld, as of findings; test rows keep their prevalence.
    """
    labels = splits.private.labels
    if labels is None or not splits.private.exclusive:
        return splits, ""
    left = equal_classes(labels, derive(seed, "classes", "private"))
    if not bool((left.isnan() & ~labels.isnan()).any()):
        return splits, ""
    sizes = left.nan_to_num().sum(dim=0).int().tolist()
    gone = [name for name, size in zip(splits.private.findings, sizes, strict=True) if not size]
    control = splits.control.labels
    balanced = None if control is None else equal_classes(control, derive(seed, "classes", "control"))
    note = f"labels of exclusive classes are withheld at random until {max(sizes)} private rows of each class have one"
    note += f"; of these none has: {', '.join(gone)}" if gone else ""
    result = replace(
        splits, private=replace(splits.private, labels=left), control=replace(splits.control, labels=balanced),
        natural=labels if splits.natural is None else splits.natural,
    )  # fmt: skip
    return result, note


def _columns(data: Dataset, columns: list[int]) -> Dataset:
    labels = data.labels[:, columns] if columns and data.labels is not None else None
    return replace(data, labels=labels, findings=tuple(data.findings[k] for k in columns))


def _balanced(data: Dataset, seed: int) -> Dataset:
    return data if data.labels is None else replace(data, labels=balance(data.labels, seed, exclusive=data.exclusive))
