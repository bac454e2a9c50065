"""Originals: the raw row behind each released one."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.types import NotApplicable


def originals(links: Tensor | None, m: int, method: str) -> Tensor:
    """The raw row (m,) int64 that each of m released rows was made from.

    Args:
        links: (p, 2) int64: raw row, released row; or None.
        m: Released rows.
        method: Its name, for the message.

    Raises:
        NotApplicable: Some released row has no raw row behind it, or several.
    """
    if links is None or len(links) != m or len(torch.unique(links[:, 1])) != m:
        raise NotApplicable(f"{method} does not release one row a raw row, so nobody can say what a row should show")
    return links[torch.argsort(links[:, 1]), 0]
