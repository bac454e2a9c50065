"""Rows held out of training to judge by: whole people, so that nobody stands on both sides."""

from __future__ import annotations

import torch

from bench.randomness import Stream
from bench.seeds import generator
from bench.types import Dataset, NotApplicable


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
