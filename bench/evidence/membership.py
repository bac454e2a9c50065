"""Scores of one membership attack against one method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class MembershipEvidence:
    """One membership attack against one method.

    Args:
        scores: By key, (n,) float64 on the CPU: higher is likelier a member.
        members: (n,) bool: whether the candidate was in the private data.
        subjects: (n,) int64 or None. A person is wholly among the members or wholly outside.
        seed: For the bootstrap and the null distribution.
    """

    scores: Sequence[Tensor]
    members: Tensor
    subjects: Tensor | None
    seed: int
