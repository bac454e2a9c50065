"""Rows grouped by person, by attribute and by label; hold-out by person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch

from bench.randomness import Stream
from bench.seeds import generator
from bench.types import Attributes, Dataset, NotApplicable


def persons_of(data: Dataset) -> torch.Tensor:
    """Person number (n,) of each row; row numbers without subjects."""
    if data.subjects is None:
        return torch.arange(len(data))
    persons: torch.Tensor = torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    return persons


IMAGES = ("1", "2", "3 and more")
"""Groups by number of images."""
FEWEST = 10
"""Smallest group that a record names and gives a figure."""


def person_groups(data: Dataset, attributes: Attributes | None) -> Mapping[str, Mapping[str, torch.Tensor]]:
    """Members (P,) bool of each group, by attribute, finding, number of images.

    People are in the order of `persons_of`; a person is in a group if one row is.
    """
    person = persons_of(data)
    images = torch.bincount(person)

    def having(rows: torch.Tensor) -> torch.Tensor:
        return torch.bincount(person[rows.cpu()], minlength=len(images)) > 0

    people_by_group = {
        name: {group: having(rows) for group, rows in groups.items()}
        for name, groups in (attributes.members() if attributes is not None else {}).items()
    }
    if data.labels is not None:
        people_by_group["finding"] = {name: having(data.labels[:, k] == 1) for k, name in enumerate(data.findings)}
    if data.subjects is not None:
        people_by_group["images"] = dict(zip(IMAGES, (images == 1, images == 2, images > 2), strict=True))
    return people_by_group


def named_groups(parts: Sequence[tuple[Dataset, Attributes]]) -> dict[str, list[str]]:
    """Groups with at least `FEWEST` people over all parts, by attribute."""
    groups_by_name: dict[str, list[str]] = {}
    people_and_groups = [(persons_of(part), attributes.members()) for part, attributes in parts]
    for name, groups in people_and_groups[0][1].items() if people_and_groups else ():
        people = {
            group: sum(len(torch.unique(person[members[name][group].cpu()])) for person, members in people_and_groups)
            for group in groups
        }
        if named := [group for group, count in people.items() if count >= FEWEST]:
            groups_by_name[name] = named
    return groups_by_name


def hold_out(
    data: Dataset, share: float, chosen: int | Stream, *, of: Literal["rows", "people"] = "rows"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and held-out rows (int64, ascending), split by person.

    Args:
        data: The rows.
        share: Of the rows, at most: people are taken until one has too many rows. Of the people, exactly.
        chosen: Draws the people: a seed, or a secret's stream if the rows are private.
        of: What is shared. Of few people, some of whom have many rows, a share of the rows may be a single person.

    Raises:
        NotApplicable: There are fewer than two people (without subjects, rows), so that one side has none.
    """
    rows = torch.arange(len(data), device=data.samples.device)
    people = rows if data.subjects is None else data.subjects
    _, member, sizes = torch.unique(people, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        raise NotApplicable(
            f"rows of other people are held out to judge by: {data.name} has {len(sizes)}, needs at least 2"
        )
    if isinstance(chosen, Stream):
        order = chosen.permutation(len(sizes)).to(rows.device)
    else:
        order = torch.randperm(len(sizes), generator=generator(chosen)).to(rows.device)
    within = sizes[order].cumsum(0) <= share * len(rows)
    count = int(within.sum()) if of == "rows" else round(share * len(sizes))
    held = torch.isin(member, order[: min(max(1, count), len(sizes) - 1)])
    return rows[~held], rows[held]


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
    """Index sets of n and m rows to compare within a class.

    A class has the same labels, NaN included. A row is compared with all m if its class is not released, if either
    side has no labels, or if the label columns differ in number. Each of the n rows is in one group.
    """
    if labels is None or released is None or labels.shape[1:] != released.shape[1:]:
        yield torch.arange(n), torch.arange(m)
        return
    classes, _ = label_classes(torch.cat((labels, released)), n + m)
    all_rows = torch.arange(m, device=classes.device)
    for label in torch.unique(classes[:n]):
        rows, others = ((side == label).nonzero()[:, 0] for side in (classes[:n], classes[n:]))
        yield rows, others if len(others) else all_rows
