"""Released forms of candidates: equal ones, nearest ones, and selected ones.

Rows that are read on demand (`Rows`) are never read whole: each function holds only blocks of them.
"""

from __future__ import annotations

from functools import partial

import torch

from bench.memory.rows import Rows, by_blocks, in_blocks, rows_at
from bench.pair_distances import pair_distances
from bench.pairs.score_blocks import all_pairs
from bench.rows.row_sets import distinct

BLOCK = 1024


def forms_at(released: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Released rows (m, d) at `place` (n,); 0 for place -1."""

    def at(index: torch.Tensor) -> torch.Tensor:
        found = (released.read if isinstance(released, Rows) else released.__getitem__)(index.clamp_min(0))
        return found.masked_fill_((index < 0).to(found.device)[:, None], 0)

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
    found = [
        torch.stack([pair_distances(part, other, 2).amin(dim=1) for _, other in in_blocks(others)]).amin(dim=0)
        for _, part in in_blocks(rows_at(forms, first), BLOCK)
    ]
    return torch.cat(found)[number]


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
