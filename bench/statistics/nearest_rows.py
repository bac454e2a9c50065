"""Euclidean distances and nearest rows, exact as float64 differences.

Blocked products only sift; they are trusted within a proven error bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from bench.memory.rows import Rows, rows_at
from bench.pairs.score_reader import float32_is_float32
from bench.pairs.sweep import split_evenly
from bench.rows.grouping import class_groups
from bench.rows.row_sets import distinct
from bench.types import NotApplicable

BLOCK = 512
"""Side of the blocks: a block stays in a core's cache."""
FLOOR = {"torch.float32": 2.0**-100, "torch.float64": 2.0**-900}
"""Largest underflow error if no row is longer than 1."""


VARYING = 0.05
"""Columns whose deviation is below this share of the largest can dominate standardised distances: any noise in them is
huge (on synthetic chest images, Laplace noise of .2 puts 99 % of all squared distance into 1 % of the columns, at the
border). Figures without them are reported beside those the paper defines."""


CLOSEST = 1e-3
"""Share of the median distance that is added to all, so that a copy has a finite logarithm."""


def in_one_space(original: torch.Tensor, released: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both sets as vectors, float64. Raises NotApplicable for rows of different shapes."""
    if original.shape[1:] != released.shape[1:]:
        raise NotApplicable(
            f"distances need one space: raw rows have shape {tuple(original.shape[1:])}, "
            f"released rows {tuple(released.shape[1:])}"
        )
    return original.flatten(1).to(torch.float64), released.flatten(1).to(torch.float64)


def log_distances(distances: torch.Tensor) -> torch.Tensor:
    """Logarithms (n,) of distances, finite for copies too; see `CLOSEST`."""
    return (distances + CLOSEST * (float(distances.median()) or 1.0)).log()


def standardise(
    original: torch.Tensor, released: torch.Tensor, *, floor: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both sets flattened, float64, standardised by the original set.

    Columns constant in the original are only centred; those with a deviation below the share `floor` of the largest
    are left out. Raises NotApplicable for rows of different shapes, ValueError for one that is not finite.
    """
    original, released = in_one_space(original, released)
    for what, rows in (("raw", original), ("released", released)):
        bad = (~rows.isfinite()).any(dim=1).nonzero()
        if len(bad):
            raise ValueError(f"{what} row {int(bad[0])} is not finite ({len(bad)} such rows)")
    deviation, mean = torch.std_mean(original, dim=0, correction=0)
    # Rounding of a constant column's mean is no deviation.
    constant = (original == original[:1]).all(dim=0)
    scale = torch.where(constant | (deviation == 0), 1.0, deviation)
    mean = torch.where(constant, original[0], mean)
    original, released = (original - mean) / scale, (released - mean) / scale
    if floor == 0:
        return original, released
    varying = _varies(torch.where(constant, 0.0, deviation), floor)
    return original[:, varying], released[:, varying]


def hardly_varying(original: torch.Tensor) -> bool:
    """True if a column's deviation is below `VARYING` times the largest."""
    return not bool(_varies(original.flatten(1).to(torch.float64).std(dim=0, correction=0), VARYING).all())


def _varies(deviation: torch.Tensor, floor: float) -> torch.Tensor:
    varying: torch.Tensor = deviation >= floor * deviation.amax()
    return varying


def centred(sets: Sequence[torch.Tensor], centre: torch.Tensor) -> tuple[list[torch.Tensor], float]:
    """The sets minus a centre, divided by a power of two."""
    differences = [rows - centre for rows in sets]
    longest = max(float(torch.linalg.vector_norm(rows, dim=1).amax()) if len(rows) else 0.0 for rows in differences)
    if longest == 0:
        return differences, 0.0
    unit = 2.0 ** math.ceil(math.log2(longest))
    return [rows / unit if isinstance(rows, Rows) else rows.div_(unit) for rows in differences], unit


def widened(rows: torch.Tensor, columns: torch.Tensor, dtype: torch.dtype, *, times: float = 1) -> torch.Tensor:
    """Rows `times` a power of two, then more columns; `Rows` stay."""
    if isinstance(rows, Rows):

        def read(index: torch.Tensor) -> torch.Tensor:
            return torch.cat((rows.read(index).to(dtype).mul_(times), columns[index].to(dtype)), dim=1)

        return rows.like(read, (len(rows), rows.shape[1] + columns.shape[1]), dtype)
    wide = torch.empty(len(rows), rows.shape[1] + columns.shape[1], dtype=dtype, device=rows.device)
    wide[:, : rows.shape[1]] = rows
    if times != 1:
        wide[:, : rows.shape[1]] *= times
    wide[:, rows.shape[1] :] = columns
    return wide


def precisions(device: torch.device) -> Sequence[torch.dtype]:
    """Precisions to try in turn; float32 only if products keep it."""
    return [torch.float32, torch.float64] if float32_is_float32(device) else [torch.float64]


def product_error(d: int, dtype: torch.dtype, *, chunk: int) -> float:
    """Relative error bound of `products` of d columns rounded to `dtype`.

    For any order of summation, the error is at most this times the sum of the absolute terms. An inner product of c
    terms errs by at most c u / (1 - c u) of that sum (Higham 2002, equation 3.5); 12 terms more cover the rounding
    of rows, of squares, and of what is compared with the bound.
    """
    terms = min(d, chunk) + -(-d // chunk) + 12
    unit = torch.finfo(dtype).eps / 2
    return terms * unit / (1 - terms * unit)


def products(
    a: torch.Tensor, b: torch.Tensor, buffers: tuple[torch.Tensor, torch.Tensor], *, chunk: int
) -> torch.Tensor:
    """a b^T in the first buffer, `chunk` columns at a time."""
    total, part = (buffer[: len(a) * len(b)].view(len(a), len(b)) for buffer in buffers)
    for start in range(0, a.shape[1], chunk):
        columns = slice(start, start + chunk)
        torch.mm(a[:, columns], b[:, columns].T, out=part if start else total)
        if start:
            total += part
    return total


def buffers_for(block: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Buffers for blocks of at most `block` rows and columns."""
    first, second = (torch.empty(block * block, dtype=like.dtype, device=like.device) for _ in range(2))
    return first, second


CHUNK = 1024  # columns multiplied at a time
FEW = 16  # most candidates of a row in a block
PAIRS = 4096  # distances measured at a time


def nearest(a: torch.Tensor, b: torch.Tensor, *, block: int = BLOCK) -> torch.Tensor:
    """Distance (n,) of each row to the nearest of b, exactly.

    With E the error bound of float32 products, the nearest row is among those within 2 E of the smallest; these are
    measured by their float64 differences. Rows with more than `FEW` candidates in a block are sifted again in
    float64, with repeated rows of b once, and measured against all of b if that does not help.
    """
    a, b = a.to(torch.float64), b.to(torch.float64)
    distances = torch.full((len(a),), torch.inf, dtype=torch.float64, device=a.device)
    left = torch.arange(len(a), device=a.device)
    for dtype in precisions(a.device):
        if not len(left):
            break
        if dtype == torch.float64:
            b = rows_at(b, distinct(b)[0])
        (unit_a, unit_b), _ = centred([a if len(left) == len(a) else a[left], b], b.mean(dim=0))
        row, col, crowded = _candidates(unit_a, unit_b, dtype, block)
        distances.scatter_reduce_(0, left[row], _measure(a, b, left[row], col), "amin")
        left = left[crowded]
    for row in left.tolist():
        distances[row] = torch.linalg.vector_norm(b - a[row], dim=1).amin()
    return distances.cpu()


def nearest_in_class(
    a: torch.Tensor, b: torch.Tensor, labels: torch.Tensor | None, of_b: torch.Tensor | None
) -> torch.Tensor:
    """Distance (n,) of each row to its class's nearest row of b.

    Args:
        a, b: (n, d) and (m, d).
        labels, of_b: Their labels as `bench.rows.grouping.class_groups` takes them.
    """
    distances = torch.empty(len(a), dtype=torch.float64)
    for own, theirs in class_groups(labels, of_b, len(a), len(b)):
        distances[own.cpu()] = nearest(a[own], b[theirs])
    return distances


def _candidates(
    a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype, block: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows and columns of candidate pairs; mask of crowded rows.

    Rows of b are compared by |b|^2 - 2 a b. One sweep gives the smallest value of every row and block; only blocks
    that may hold a row's nearest are multiplied again.
    """
    squares = torch.linalg.vector_norm(b, dim=1).square()
    left, right = widened(a, a.new_ones(len(a), 1), dtype, times=-2), widened(b, squares[:, None], dtype)
    longest = float(squares.amax()) ** 0.5
    error = (
        product_error(left.shape[1], dtype, chunk=CHUNK) * longest * (2 * torch.linalg.vector_norm(a, dim=1) + longest)
    )
    buffers = buffers_for(block, left)
    parts = split_evenly(len(b), block)
    smallest = left.new_empty(len(parts), len(a))
    for rows in split_evenly(len(a), block):
        for number, cols in enumerate(parts):
            torch.amin(products(left[rows], right[cols], buffers, chunk=CHUNK), dim=1, out=smallest[number, rows])
    limit = smallest.amin(dim=0) + (2 * error + FLOOR[str(dtype)]).to(dtype)
    crowded = torch.zeros(len(a), dtype=torch.bool, device=a.device)
    pairs = []
    for number, cols in enumerate(parts):
        candidates = (smallest[number] <= limit).nonzero()[:, 0]
        for start in range(0, len(candidates), block):
            rows = candidates[start : start + block]
            row, col = (products(left[rows], right[cols], buffers, chunk=CHUNK) <= limit[rows, None]).nonzero(
                as_tuple=True
            )
            many = torch.bincount(row, minlength=len(rows)) > FEW
            crowded[rows[many]] = True
            pairs.append(torch.stack((rows[row], col + cols.start))[:, ~many[row]])
    row, col = torch.cat(pairs, dim=1)
    sparse = ~crowded[row]
    return row[sparse], col[sparse], crowded


def _measure(a: torch.Tensor, b: torch.Tensor, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
    """Distances of the pairs from their differences, a few at a time."""
    result = a.new_empty(len(rows))
    many = max(1, min(PAIRS, a.budget.block // a.wide)) if isinstance(a, Rows) else PAIRS
    for start in range(0, len(rows), many):
        part = slice(start, start + many)
        result[part] = torch.linalg.vector_norm(a[rows[part]] - b[cols[part]], dim=1)
    return result
