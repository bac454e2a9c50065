"""Scores of one membership attack against one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, eq=False)
class MembershipEvidence:
    """One membership attack against one method.

    Args:
        scores: By key, (n,) float64 on the CPU: higher is likelier a member.
        members: By key, (n,) bool: whether the candidate was among the rows of that key's release. Drawn at random for
            each key, whatever the others'.
        subjects: (n,) int64 or None. A person is wholly among the members of a key or wholly outside.
        seed: For the null distribution.
        draws: Seed of people drawn with replacement: the same for every method and attack on the same candidates.
        groups: By attribute and group, (people,) bool, people in the order of their numbers: who belongs to it.
    """

    scores: Sequence[torch.Tensor]
    members: Sequence[torch.Tensor]
    subjects: torch.Tensor | None
    seed: int
    draws: int
    groups: Mapping[str, Mapping[str, torch.Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.members) != len(self.scores) or not self.scores:
            raise ValueError(
                f"expected members for every key, and a key, got {len(self.members)} for {len(self.scores)} keys"
            )
