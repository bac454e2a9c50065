"""Originals: the raw row behind each released row."""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.types import Dataset, NotApplicable, Release


def originals(links: torch.Tensor | None, m: int, method: str) -> torch.Tensor:
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


def in_order(release: Release, links: torch.Tensor | None, data: Dataset, method: str) -> tuple[Dataset, torch.Tensor]:
    """Released rows in the order of their raw rows, with the labels and people of these; and which raw rows they are.

    Args:
        release: Of `data`, in any order.
        links, method: As in `originals`.
        data: The raw rows.

    Raises:
        NotApplicable: As in `originals`.
    """
    rows, order = originals(links, len(release), method).sort()
    return replace(data.take(rows), samples=release.samples[order]), rows
