"""Gram matrices of a set, and each row's signature in them.

A wide network with random weights has a nearly deterministic kernel: the inner products of its outputs are known to an
attacker who knows the inputs, and so are functions of the Gram matrix that follow the rows when they are permuted.
"""

from __future__ import annotations

from functools import reduce

import torch

from bench.memory.rows import in_blocks
from bench.nets import contrastive_towers
from bench.pairs.score_blocks import all_products

QUANTILES = 17
RIDGES = tuple(10.0**power for power in range(-6, 2))
LARGEST_SOLVED = 1024
BLOCK = 1024
SMALLEST = 1e-12


def gram(token: torch.Tensor) -> torch.Tensor:
    """Inner products (m, m) float32 of centred rows (m, q), without diagonal.

    The diagonal is left out, and each row is centred over its other entries: a row's product with itself is large
    whatever it is matched to, and would hold every matching in place.
    """
    m = len(token)
    products = all_products(token, token).fill_diagonal_(0)
    products -= products.sum(dim=1, keepdim=True) / max(m - 1, 1)
    products.fill_diagonal_(0)
    size = products.square().mean().sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return (products / size).float()


def signature(token: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Signatures (m, f) float64 of rows, computed without any row's name.

    The logarithm of its length; quantiles of its inner products with the reference rows, in units of their root mean
    square; and, for up to `LARGEST_SOLVED` columns, the logarithm of its leverage x (C + r I)^-1 x for ridges r from a
    millionth to ten times the mean eigenvalue of the covariance C (at r = 0 no invertible linear map changes it).

    Args:
        token: (m, q) float64, centred.
        reference: (s,) int64, the rows whose inner products count; all of them, or a random part of a large set.
    """
    m, q = token.shape
    size = token.square().sum(dim=1).mean().clamp_min(torch.finfo(torch.float64).tiny)
    unit = token / size.sqrt()
    columns = [unit.square().sum(dim=1, keepdim=True).clamp_min(SMALLEST).log(), _quantiles(unit, reference)]
    if q <= LARGEST_SOLVED:
        products = reduce(torch.add, (part.T @ part for _, part in in_blocks(unit)))
        values, axes = torch.linalg.eigh(products / m)
        along = (unit @ axes).square()
        ridges = torch.tensor(RIDGES, dtype=token.dtype, device=token.device) * values.mean().clamp_min(SMALLEST)
        columns.append((along @ (1 / (values.clamp_min(0)[:, None] + ridges))).clamp_min(SMALLEST).log())
    return torch.cat(columns, dim=1)


def _quantiles(unit: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    places = torch.linspace(0, len(reference) - 1, QUANTILES, device=unit.device).round().long()
    others = unit[reference]

    def read(part: torch.Tensor) -> torch.Tensor:
        # Sorting takes most of the time, and single precision half of that; the products are exact to double.
        return contrastive_towers.ordered(all_products(part, others).float())[:, places].double()

    found = torch.cat([read(part) for _, part in in_blocks(unit, BLOCK)])
    return found / found.square().mean().sqrt().clamp_min(SMALLEST)
