"""Clusters of one size, as k-Same forms them: from the outermost row inwards, each row with its nearest neighbours.

Source: Newton et al., Preserving Privacy by De-identifying Face Images (2005), in the form of the CVAE authors' code
(Di Salvo et al. 2024): the seed is the unassigned row with the largest sum of Euclidean distances to the rows that are
unassigned too; it takes its k - 1 nearest of them; repeat.

That code keeps the matrix of all distances in float32 and adds it up anew in every round. Here sums run: what is taken
away is subtracted, at n^2 d operations in all and memory linear in n. Distances are differences in float64, rounded to
integers fine enough that any sum of n of them is exact: sums, and so clusters, are those of a rescan over the same
distances, whatever the order or the size of blocks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bench.nets.pair_distances import pair_distances

BLOCK = 512


def same_size_clusters(rows: Tensor, k: int) -> Tensor:
    """The cluster of every row; each has k rows, but for the last, which has the n % k that are left over as well.

    Of equal distances or sums the row with the lower number comes first.

    Args:
        rows: (n, ...) finite, in the units that distances are to be measured in.
        k: At least 1.

    Returns:
        (n,) int64 on the device of the rows, in the order in which the clusters were formed.

    Raises:
        ValueError: Fewer rows than k; a row that is not finite (it is named).
    """
    if not 1 <= k <= len(rows):
        raise ValueError(f"clusters need k from 1 to the number of rows, {len(rows)}, got {k}")
    points = rows.detach().flatten(1).double()
    bad = (~points.isfinite()).any(dim=1).nonzero()
    if len(bad):
        raise ValueError(f"clusters need finite rows: row {int(bad[0])} is not ({len(bad)} such rows)")
    scale = _scale(points)
    cluster = torch.full((len(rows),), -1, dtype=torch.int64, device=rows.device)
    alive = torch.arange(len(rows), device=rows.device)
    sums = torch.cat([_distances(part, points, scale).sum(dim=1) for part in torch.split(points, BLOCK)])
    number = 0
    while len(alive) >= 2 * k:
        seed = sums.argmax()
        taken = torch.zeros(len(alive), dtype=torch.bool, device=rows.device)
        away = _distances(points[seed, None], points, scale)[0]
        away[seed] = -1
        taken[away.sort(stable=True).indices[:k]] = True
        cluster[alive[taken]] = number
        gone, points, alive = points[taken], points[~taken], alive[~taken]
        sums = sums[~taken] - _distances(points, gone, scale).sum(dim=1)
        number += 1
    cluster[alive] = number
    return cluster


def _scale(points: Tensor) -> float:
    """The power of two by which distances are multiplied before they are rounded: n of them stay below 2^62."""
    low, high = points.aminmax(dim=0)
    widest = float(torch.linalg.vector_norm(high - low))
    return 2.0 ** math.floor(62 - math.log2(len(points) * widest)) if widest else 1.0


def _distances(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Distances (n, m) int64 of rows a (n, d) and b (m, d), in units of 1 / scale."""
    return pair_distances(a, b, 2).sqrt_().mul_(scale).round_().to(torch.int64)
