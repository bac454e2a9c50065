"""Whether a release without links shows whom its rows came from: in what its key makes of few of them at a time.

Some parts hold people of the release, as many rows each as the others, which hold people who were never released. If
nobody stands in a released row, it has no reason to resemble what comes of the former more than what comes of the
latter. Parts are exchanged as wholes: what comes of one part may differ from all others by a training of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.judge.search import EQUAL
from bench.seeds import derive, generator

INSIDE, OUTSIDE = 12, 8
"""Parts of either kind: there are 125,970 ways to choose them, so that p can get far below what counts as rare."""
DRAWS = 9999


@dataclass(frozen=True)
class Sharing:
    """p under chance of as many released rows nearest to a part with their people, and the share beyond chance."""

    p: float
    excess: float


def sharing(
    released: torch.Tensor, inside: Sequence[torch.Tensor], outside: Sequence[torch.Tensor], seed: int
) -> Sharing:
    """The test, of released rows (m, ...) against the parts' released rows (q, ...)."""
    random = generator(derive(seed, "ties"))
    fewest = min(map(len, (*inside, *outside)))
    rows = torch.cat([part[torch.randperm(len(part), generator=random)[:fewest]].flatten(1)
                      for part in (*inside, *outside)])  # fmt: skip
    part = torch.arange(len(inside) + len(outside)).repeat_interleave(fewest)
    order = torch.randperm(len(rows), generator=random)
    left, right = (
        torch.nn.functional.normalize(each - each.mean(dim=0), dim=1) for each in (released.flatten(1), rows[order])
    )
    near = part[order][(left @ right.T).mul(EQUAL).round().argmax(dim=1)]
    counts = torch.bincount(near, minlength=len(inside) + len(outside)).double()
    own = float(counts[: len(inside)].sum())
    chosen = torch.rand(DRAWS, len(counts), generator=random).argsort(dim=1)[:, : len(inside)]
    p = (1 + int((counts[chosen].sum(dim=1) >= own).sum())) / (1 + DRAWS)
    base = len(inside) / len(counts)
    covered = min(1.0, fewest * len(inside) / len(released))  # only so many can find themselves
    return Sharing(p, max(0.0, min(1.0, (own / len(released) - base) / (1 - base) / covered)))
