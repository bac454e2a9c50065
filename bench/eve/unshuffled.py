"""Patches that an encoder shuffled within rows, put back in one order.

Source: this project; constrained k-means (Bradley, Bennett and Demiriz 2000) with one patch of every row in every
cluster. An encoder that marks each place by a secret vector (the positional embedding of NeuraCrypt) and then shuffles
leaves the marks: the patches of all rows fall into as many clusters as there are places. Under four keys of NeuraCrypt
(images of 64 pixels, patches of 16 or 8) all but a few in ten thousand come back to their place.

The clusters do not name their places, but they vary unequally, and the order by variance identifies most of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy
import torch

from bench.memory.rows import Rows, in_blocks, rows_at

LEARNT_FROM = 256  # rows
STARTS = 3
ROUNDS = 10
ROWS = 128  # at a time: of 14 x 14 places a row has 38,416 products


def unshuffled(parts: torch.Tensor) -> torch.Tensor:
    """The patches of each row by cluster, clusters that vary most first.

    Args:
        parts: (m, t, q) patches, t of each row, in any order within a row; on disk if they do not fit.

    Returns:
        (m, t, q), the same patches.
    """
    step = -(-len(parts) // LEARNT_FROM)
    some = rows_at(parts, torch.arange(0, len(parts), step, device=parts.device))[:].double()
    by_length = some.square().sum(dim=(1, 2)).argsort()  # the order of rows, which a release changes, is to say nothing
    starts = some[by_length[[len(some) * (2 * number + 1) // (2 * STARTS) for number in range(STARTS)]]]
    _, centres = min((_clustered(some, start) for start in starts), key=lambda found: found[0])
    put_back = partial(_by_centres, centres=centres)
    return parts.map(put_back) if isinstance(parts, Rows) else put_back(parts)


def _clustered(parts: torch.Tensor, centres: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Sum of squares within clusters from `centres` (t, q), and sorted means."""
    order = None
    for _ in range(ROUNDS):
        found = _order(parts, centres)
        if order is not None and torch.equal(found, order):
            break
        order = found
        placed = parts.take_along_dim(order[:, :, None], dim=1)
        centres = placed.mean(dim=0)
    within = (placed - centres).square().sum(dim=(0, 2))
    return float(within.sum()), centres[within.argsort(descending=True)]


def _by_centres(parts: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    return parts.take_along_dim(_order(parts, centres)[:, :, None], dim=1)


def _order(parts: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Patch numbers (m, t) int64 for each centre, by the Hungarian method.

    Each patch and each centre goes somewhere, so that their lengths change no choice: inner products decide.
    """
    found: list[np.ndarray] = []
    for _, some in in_blocks(parts, ROWS):
        products = torch.einsum("tq,msq->mts", centres, some.double()).cpu().numpy()
        found += [scipy.optimize.linear_sum_assignment(row, maximize=True)[1] for row in products]
    return torch.from_numpy(np.stack(found)).to(parts.device)
