"""People in data sets: their rows, groups, and hold-out by person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """Members (P,) bool on the CPU of each group, by attribute.

    People are in the order of `persons_of`; a person is in a group if one row is. Findings and numbers of images count
    as attributes beside those of the rows.
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


def hold_out(data: Dataset, share: float, chosen: int | Stream) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and held-out rows (int64, ascending), split by person.

    About `share` of the rows are held out, and at least one person is on either side: if the first person drawn has
    more rows than the share, more are held out. `chosen` draws the people: a seed, or a secret's stream if the rows are
    private.

    Raises:
        NotApplicable: Fewer than two people (rows, if the subjects are unknown).
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
    count = int((sizes[order].cumsum(0) <= share * len(rows)).sum())
    held = torch.isin(member, order[: min(max(1, count), len(sizes) - 1)])
    return rows[~held], rows[held]
