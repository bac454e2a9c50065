"""Released forms of candidates: equal, nearest and selected ones, and missing rows.

Rows that are read on demand (`Rows`) are never read whole: each function holds only blocks of them.
"""

from __future__ import annotations

from functools import partial

import scipy
import torch

from bench.memory.rows import Rows, by_blocks, in_blocks, rows_at
from bench.pair_distances import pair_distances
from bench.pairs.score_blocks import all_pairs
from bench.rows.row_sets import distinct
from bench.seeds import generator

BLOCK = 1024

EQUATIONS = 512


def forms_at(released: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Released rows (m, d) at `place` (n,); 0 for place -1."""

    def at(index: torch.Tensor) -> torch.Tensor:
        rows = (released.read if isinstance(released, Rows) else released.__getitem__)(index.clamp_min(0))
        return rows.masked_fill_((index < 0).to(rows.device)[:, None], 0)

    if not isinstance(released, Rows):
        return at(place)
    place = place.cpu()
    return released.like(lambda index: at(place[index]), (len(place), released.shape[1]))


def same_rows(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if rows (n, k) are equal, with NaN as a value."""
    if a.shape != b.shape:
        return False
    return all(
        bool(((part == other) | (part.isnan() & other.isnan())).all())
        for (_, part), (_, other) in zip(in_blocks(a, BLOCK), in_blocks(b, BLOCK), strict=True)
    )


def nearest_row(forms: torch.Tensor, released: torch.Tensor) -> torch.Tensor:
    """Squared distance (n,) float64 of forms (n, d) to nearest released rows."""
    first, number = distinct(forms)
    others = rows_at(released, distinct(released)[0])
    distances = [
        torch.stack([pair_distances(part, other, 2).amin(dim=1) for _, other in in_blocks(others)]).amin(dim=0)
        for _, part in in_blocks(rows_at(forms, first), BLOCK)
    ]
    return torch.cat(distances)[number]


def chosen_rows(which: torch.Tensor, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """Rows (n, d) of `new` where `which` (n,) bool, of `old` elsewhere."""

    def make(rows: torch.Tensor) -> torch.Tensor:
        return torch.where(which[rows][:, None], rows_at(new, rows)[:], rows_at(old, rows)[:])

    return by_blocks(torch.arange(len(which), device=which.device), make, BLOCK, like=new)


def sharing(forms: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
    """Counts (n,) of candidates with the same form, and class if given."""
    number = distinct(forms)[1]
    if labels is not None:
        number = torch.unique(torch.stack((number, labels), dim=1), dim=0, return_inverse=True)[1]
    return torch.bincount(number)[number]


def squared_distances(a: torch.Tensor, b: torch.Tensor, rows: slice, cols: slice) -> torch.Tensor:
    """Squared distances (rows, cols) float64, a (n, d) to b (m, d)."""
    return all_pairs(rows_at(a, rows), rows_at(b, cols), partial(pair_distances, power=2))


def summing_to(rows: torch.Tensor, among: torch.Tensor, total: torch.Tensor, many: int) -> torch.Tensor:
    """Ascending numbers of `many` rows whose sum is nearest to `total` (d,).

    Args:
        rows: (n, d) float64.
        among: (s,) int64, ascending: the rows that it may be.
        total: (d,) float64.
        many: The number of missing rows.
    """
    rows = rows_at(rows, among)
    mean, d = rows.mean(dim=0), rows.shape[1]
    mixing = None
    if d > EQUATIONS:  # sums of equations hold too
        mixing = torch.randn(EQUATIONS, d, generator=generator(0), dtype=torch.float64).to(rows.device)
    goal = total - many * mean

    def mixed(numbers: torch.Tensor) -> torch.Tensor:
        return numbers if mixing is None else mixing @ numbers

    equations, goal = torch.cat([mixed((part - mean).T) for _, part in in_blocks(rows)], dim=1), mixed(goal)
    size = equations.square().sum(dim=0).mean().sqrt()
    equations = torch.cat((equations, size.expand(1, len(rows))))  # as many as are missing
    goal = torch.cat((goal, (size * many)[None]))
    weights, _ = scipy.optimize.nnls(equations.cpu().numpy(), goal.cpu().numpy())
    heaviest = torch.from_numpy(weights).argsort(descending=True, stable=True)[:many].sort().values
    return among[heaviest.to(among.device)]
