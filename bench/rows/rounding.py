"""Whether two computations gave the same numbers but for rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

CLOSE = 1e-4  # of a number, or of the usual size: what sums in another order may change
USUAL = 0.9
ROWS = 256  # compared at a time
LEAST, SIZES = -1074, 2099  # exponents of float64


def same_but_rounding(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether tensors agree in shape, dtype and NaN, and in numbers but for rounding; integers exactly.

    None agrees with None alone.

    A number may be off by 1e-4 of itself and of the size that nine tenths of the numbers of `a` (without zeros) do not
    exceed. Against the largest of all, a single huge number would let all others differ.
    """
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    pairs = list(zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True))
    off = CLOSE * _usual([ours for ours, _ in pairs])
    return all(torch.allclose(ours, theirs, rtol=CLOSE, atol=off, equal_nan=True) for ours, theirs in pairs)


def _usual(parts: Sequence[torch.Tensor]) -> float:
    """The power of two that `USUAL` of the finite numbers but zeros do not exceed; 0 where there are none."""
    counts = torch.zeros(SIZES, dtype=torch.int64)
    for part in parts:
        numbers = part[part.isfinite() & (part != 0)].double()
        counts += torch.bincount(torch.frexp(numbers).exponent.long() - LEAST, minlength=SIZES).cpu()
    if not counts.any():
        return 0.0
    at = int((counts.cumsum(0) >= USUAL * counts.sum()).nonzero()[0, 0])
    return math.ldexp(1.0, min(at + LEAST, 1023))
