"""Clusters of one size, formed from the outermost row inwards (k-Same).

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

from bench.memory.rows import Rows
from bench.owner.outermost_row import ROWS, OutermostRow


def same_size_clusters(rows: torch.Tensor, k: int, which: torch.Tensor | None = None) -> torch.Tensor:
    """The cluster of every row; each has k rows, the last more.

    The last one takes the n % k rows that are left over as well. Of equal distances or sums the row with the lower
    number comes first.

    Args:
        rows: (n, ...) finite, in the units that distances are to be measured in; read a few at a time.
        k: At least 1.
        which: (s,) int64, ascending: the rows that are put into clusters; None stands for all of them.

    Returns:
        (s,) int64 on the device of the rows, in the order in which the clusters were formed.

    Raises:
        ValueError: Fewer rows than k; a row that is not finite (it is named).
        TooLargeError: Rows that are read where they are used, and are too large to be searched in memory.

    >>> same_size_clusters(torch.tensor([[0.0], [0.1], [5.0], [9.0], [9.2]]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    which = torch.arange(len(rows), device=rows.device) if which is None else which
    if not 1 <= k <= len(which):
        raise ValueError(f"clusters need k from 1 to the number of rows, {len(which)}, got {k}")
    if isinstance(rows, Rows):
        rows.budget.check((len(which), *rows.shape[1:]), len(which) * rows.shape[1:].numel() * torch.int32.itemsize)
    finite = [
        torch.linalg.vector_norm(rows[part].flatten(1).double(), dim=1).isfinite() for part in torch.split(which, ROWS)
    ]
    bad = which[~torch.cat(finite)]
    if len(bad):
        raise ValueError(f"clusters need finite rows: row {int(bad[0])} is not ({len(bad)} such rows)")
    cluster = torch.full((len(which),), -1, dtype=torch.int64, device=rows.device)
    search = OutermostRow(rows, which)
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
