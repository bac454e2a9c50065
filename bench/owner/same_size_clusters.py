"""Clusters of one size, as k-Same forms them: from the outermost row inwards, each row with its nearest neighbours.

Source: Newton et al., Preserving Privacy by De-identifying Face Images (2005), in the form of the CVAE authors' code
(Di Salvo et al. 2024): the seed is the unassigned row with the largest sum of Euclidean distances to the rows that are
unassigned too; it takes its k - 1 nearest of them; repeat.

That code keeps the matrix of all distances in float32 and adds it up anew in every round. Here only rows that may lead
are measured against all others (`bench.owner.outermost_row`), with memory linear in n, and distances are exact: rows
are first rounded to a grid of 2^-26 of the longest row's distance from the middle, about as fine as float32 holds that
row, on which float64 products have no error. So the clusters are those of a rescan over the same distances, bit by bit,
whatever is computed in which blocks, and but for ties whatever the order of rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.owner.outermost_row import OutermostRow


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

    >>> same_size_clusters(torch.tensor([[0.0], [0.1], [5.0], [9.0], [9.2]]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    if not 1 <= k <= len(rows):
        raise ValueError(f"clusters need k from 1 to the number of rows, {len(rows)}, got {k}")
    points = rows.detach().flatten(1).double()
    bad = (~torch.linalg.vector_norm(points, dim=1).isfinite()).nonzero()
    if len(bad):
        raise ValueError(f"clusters need finite rows: row {int(bad[0])} is not ({len(bad)} such rows)")
    cluster = torch.full((len(rows),), -1, dtype=torch.int64, device=rows.device)
    search = OutermostRow(points)
    number = 0
    while search.left >= 2 * k:
        away = search.find()
        last = away.kthvalue(k).values
        nearer, as_far = (away < last).nonzero()[:, 0], (away == last).nonzero()[:, 0]
        taken = torch.cat((nearer, as_far[: k - len(nearer)]))
        cluster[search.rows[taken]] = number
        search.remove(taken)
        number += 1
    cluster[search.rows[search.alive]] = number
    return cluster
