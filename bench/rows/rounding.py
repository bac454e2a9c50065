"""Whether two computations gave the same numbers but for rounding."""

from __future__ import annotations

import torch
from torch import Tensor

CLOSE = 1e-4  # of the largest number: what sums in another order may change
ROWS = 256  # compared at a time


def same_but_rounding(a: Tensor, b: Tensor) -> bool:
    """Whether tensors agree in shape, dtype and NaN, and in numbers to 1e-4 of the largest of `a`; integers exactly."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    pairs = list(zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True))
    most = max((float(ours.nan_to_num().abs().amax()) for ours, _ in pairs if ours.numel()), default=0.0)
    return all(torch.allclose(ours, theirs, rtol=0.0, atol=CLOSE * most, equal_nan=True) for ours, theirs in pairs)
