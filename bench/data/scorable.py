"""Which findings of split data can be scored, and labels as data owners publish them."""

from __future__ import annotations

from dataclasses import replace

from bench.data.balance import balance, equal_classes
from bench.data.splits import Splits
from bench.seeds import derive
from bench.types import Dataset

MINIMUM_CASES = 5


def scorable(splits: Splits, seed: int, *, balanced: bool) -> tuple[Splits, list[str]]:
    """Splits whose private-side findings have enough cases to train and score on, and notes on what was left out.

    Args:
        splits: Of the data.
        seed: Decides which labels are withheld.
        balanced: Whether private and control labels are balanced as in Syfer.
    """
    parts = (splits.private, splits.control, splits.test)
    kept = [
        k
        for k in range(len(splits.private.findings))
        if all(int((part.labels[:, k] == value).sum()) >= MINIMUM_CASES for part in parts for value in (0, 1)
               if part.labels is not None)
    ]  # fmt: skip
    dropped = [name for k, name in enumerate(splits.private.findings) if k not in kept]
    if dropped and not splits.private.exclusive:
        splits = replace(
            splits,
            private=_columns(splits.private, kept), control=_columns(splits.control, kept),
            test=_columns(splits.test, kept),
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
    """The same with exclusive classes that are equally frequent among private and control rows, and a note.

    The surplus of labels is withheld, as of findings; test rows keep their prevalence. Nothing is done, and the note is
    empty, where classes are equally frequent, or labels are findings or not known.
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
    made = replace(
        splits, private=replace(splits.private, labels=left), control=replace(splits.control, labels=balanced),
        natural=labels if splits.natural is None else splits.natural,
    )  # fmt: skip
    return made, note


def _columns(data: Dataset, kept: list[int]) -> Dataset:
    labels = data.labels[:, kept] if kept and data.labels is not None else None
    return replace(data, labels=labels, findings=tuple(data.findings[k] for k in kept))


def _balanced(data: Dataset, seed: int) -> Dataset:
    return data if data.labels is None else replace(data, labels=balance(data.labels, seed, exclusive=data.exclusive))
