"""Groups of people, from what is known of their rows."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bench.types import Dataset

IMAGES = ("1", "2", "3 and more")
"""Groups by how many images a person has."""


def person_groups(raw: Dataset, person: Tensor, rows: Tensor) -> Mapping[str, Mapping[str, Tensor]]:
    """By attribute and group, (P,) bool: the people with a row in it; findings and numbers of images beside attributes.

    Args:
        raw: The raw rows, on the CPU.
        person: (n,) int64 in 0..P-1.
        rows: (P,) int64, how many rows each person has.
    """

    def having(members: Tensor) -> Tensor:
        return torch.bincount(person[members], minlength=len(rows)) > 0

    found = {
        name: {group: having(members) for group, members in groups.items()}
        for name, groups in (raw.attributes.members() if raw.attributes is not None else {}).items()
    }
    if raw.labels is not None:
        found["finding"] = {name: having(raw.labels[:, k] == 1) for k, name in enumerate(raw.findings)}
    if raw.subjects is not None:
        found["images"] = dict(zip(IMAGES, (rows == 1, rows == 2, rows > 2), strict=True))
    return found
