"""Whom rows show.

Groups of people, from what is known of their rows.

Rows held out of training to judge by: whole people, so that nobody stands on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from bench.randomness import Stream
from bench.seeds import generator
from bench.types import Attributes, Dataset, NotApplicable


def persons_of(data: Dataset) -> torch.Tensor:
    """(n,) int64 on the CPU: the person of each row, from 0; every row its own where nobody is known."""
    if data.subjects is None:
        return torch.arange(len(data))
    persons: torch.Tensor = torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    return persons


IMAGES = ("1", "2", "3 and more")
"""Groups by how many images a person has."""
FEWEST = 10
"""People whom a group must have to be named in a record, and to have a figure of its own."""


def person_groups(data: Dataset, attributes: Attributes | None) -> Mapping[str, Mapping[str, torch.Tensor]]:
    """By attribute and group, (P,) bool on the CPU: the people with a row in it, in the order of `persons_of`.

    Findings and numbers of images stand beside the attributes of its rows, where these have any.
    """
    person = persons_of(data)
    rows = torch.bincount(person)

    def having(members: torch.Tensor) -> torch.Tensor:
        return torch.bincount(person[members.cpu()], minlength=len(rows)) > 0

    found = {
        name: {group: having(members) for group, members in groups.items()}
        for name, groups in (attributes.members() if attributes is not None else {}).items()
    }
    if data.labels is not None:
        found["finding"] = {name: having(data.labels[:, k] == 1) for k, name in enumerate(data.findings)}
    if data.subjects is not None:
        found["images"] = dict(zip(IMAGES, (rows == 1, rows == 2, rows > 2), strict=True))
    return found


def named_groups(parts: Sequence[tuple[Dataset, Attributes]]) -> dict[str, list[str]]:
    """By attribute, the names of groups with at least `FEWEST` people in all parts together, which share nobody.

    A word that only few people have may be what tells who they are.
    """
    found: dict[str, list[str]] = {}
    told = [(persons_of(part), attributes.members()) for part, attributes in parts]
    for name, groups in told[0][1].items() if told else ():
        people = {
            group: sum(len(torch.unique(person[members[name][group].cpu()])) for person, members in told)
            for group in groups
        }
        if named := [group for group, count in people.items() if count >= FEWEST]:
            found[name] = named
    return found


def hold_out(data: Dataset, share: float, chosen: int | Stream) -> tuple[torch.Tensor, torch.Tensor]:
    """Training rows and held-out rows (int64 indices, ascending): about `share` of them, no person on both sides.

    Somebody stands on either side: where the first person drawn has more rows than the share, more are held out.
    `chosen` decides who: a seed, or a secret's stream where the rows are private.

    Raises:
        NotApplicable: There are fewer than two people (rows where nobody knows the people).
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
