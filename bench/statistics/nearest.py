"""The nearest of many rows, exact as differences in float64."""

from __future__ import annotations

import torch

from bench.memory.rows import Rows, rows_at
from bench.pairs.sweep import split_evenly
from bench.rows.distinct import distinct
from bench.statistics.distances import (
    BLOCK,
    FLOOR,
    buffers_for,
    centred,
    precisions,
    product_error,
    products,
    widened,
)

CHUNK = 1024


FEW = 16


PAIRS = 4096


def nearest(a: torch.Tensor, b: torch.Tensor, *, block: int = BLOCK) -> torch.Tensor:
    """Distance of each row of a (n, d) to the nearest row of b (m, d), (n,) float64, exact as differences in float64.

    Products in float32 only sift: with E the proven bound of their error, the nearest row is among those within 2 E of
    the least; these are measured by their differences. Rows with more than `FEW` candidates for the least in a block
    are sifted again in float64, where repeated rows of b count once, and if that does not help (many rows at nearly one
    place), measured against all of b.
    """
    a, b = a.to(torch.float64), b.to(torch.float64)
    found = torch.full((len(a),), torch.inf, dtype=torch.float64, device=a.device)
    left = torch.arange(len(a), device=a.device)
    for dtype in precisions(a.device):
        if not len(left):
            break
        if dtype == torch.float64:
            b = rows_at(b, distinct(b)[0])
        (near_a, near_b), _ = centred([a if len(left) == len(a) else a[left], b], b.mean(dim=0))
        row, col, crowded = _candidates(near_a, near_b, dtype, block)
        found.scatter_reduce_(0, left[row], _measure(a, b, left[row], col), "amin")
        left = left[crowded]
    for row in left.tolist():
        found[row] = torch.linalg.vector_norm(b - a[row], dim=1).amin()
    return found.cpu()


def _candidates(
    a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype, block: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Row and column numbers of pairs that may be nearest, and whether a row of a has too many of them (then none).

    Rows of b are compared by |b|^2 - 2 a b, from which nothing but a row's own |a|^2 is missing. One sweep gives the
    least of every row and block; only the blocks in which a row's nearest may be are multiplied again and looked into.
    """
    squares = torch.linalg.vector_norm(b, dim=1).square()
    left, right = widened(a, a.new_ones(len(a), 1), dtype, times=-2), widened(b, squares[:, None], dtype)
    longest = float(squares.amax()) ** 0.5
    error = (
        product_error(left.shape[1], dtype, chunk=CHUNK) * longest * (2 * torch.linalg.vector_norm(a, dim=1) + longest)
    )
    buffers = buffers_for(block, left)
    parts = split_evenly(len(b), block)
    least = left.new_empty(len(parts), len(a))
    for rows in split_evenly(len(a), block):
        for number, cols in enumerate(parts):
            torch.amin(products(left[rows], right[cols], buffers, chunk=CHUNK), dim=1, out=least[number, rows])
    bar = least.amin(dim=0) + (2 * error + FLOOR[dtype]).to(dtype)
    crowded = torch.zeros(len(a), dtype=torch.bool, device=a.device)
    pairs = []
    for number, cols in enumerate(parts):
        hopeful = (least[number] <= bar).nonzero()[:, 0]
        for start in range(0, len(hopeful), block):
            rows = hopeful[start : start + block]
            row, col = (products(left[rows], right[cols], buffers, chunk=CHUNK) <= bar[rows, None]).nonzero(
                as_tuple=True
            )
            many = torch.bincount(row, minlength=len(rows)) > FEW
            crowded[rows[many]] = True
            pairs.append(torch.stack((rows[row], col + cols.start))[:, ~many[row]])
    row, col = torch.cat(pairs, dim=1)
    kept = ~crowded[row]
    return row[kept], col[kept], crowded


def _measure(a: torch.Tensor, b: torch.Tensor, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
    """Distances of the pairs from their differences, a few at a time."""
    result = a.new_empty(len(rows))
    many = max(1, min(PAIRS, a.budget.block // a.wide)) if isinstance(a, Rows) else PAIRS
    for start in range(0, len(rows), many):
        part = slice(start, start + many)
        result[part] = torch.linalg.vector_norm(a[rows[part]] - b[cols[part]], dim=1)
    return result
