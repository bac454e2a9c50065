"""Groups of people, from what is known of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from bench.rows.persons import persons_of
from bench.types import Attributes, Dataset

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
