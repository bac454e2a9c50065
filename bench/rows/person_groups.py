"""Groups of people, from what is known of their rows."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bench.rows.persons import persons_of
from bench.types import Dataset

IMAGES = ("1", "2", "3 and more")
"""Groups by how many images a person has."""


def person_groups(data: Dataset) -> Mapping[str, Mapping[str, Tensor]]:
    """By attribute and group, (P,) bool on the CPU: the people with a row in it, in the order of `persons_of`.

    Findings and numbers of images stand beside the attributes of the data.
    """
    person = persons_of(data)
    rows = torch.bincount(person)

    def having(members: Tensor) -> Tensor:
        return torch.bincount(person[members.cpu()], minlength=len(rows)) > 0

    found = {
        name: {group: having(members) for group, members in groups.items()}
        for name, groups in (data.attributes.members() if data.attributes is not None else {}).items()
    }
    if data.labels is not None:
        found["finding"] = {name: having(data.labels[:, k] == 1) for k, name in enumerate(data.findings)}
    if data.subjects is not None:
        found["images"] = dict(zip(IMAGES, (rows == 1, rows == 2, rows > 2), strict=True))
    return found
