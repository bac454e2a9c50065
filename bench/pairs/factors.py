"""Scores that are products of known factors: exact products, or float32 products with a proven bound on their error.

Float32 products cost half as much as exact float64 products. Summed in any order, with or without fused operations, the
product of rows a and b of length d, rounded to float32, is off by at most ((1 + u)^(d + 2) - 1) |a| |b|, u = 2^-24
(Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1, and the Cauchy-Schwarz inequality). Long
rows are summed in stretches, which brings d down to the stretch plus the number of stretches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from bench.memory.rows import Rows, in_blocks
from bench.pairs.blocks import Block, products, split_evenly
from bench.types import PairScores

STRETCH = 128
TO_GRID = 1.5 * 2.0**26
LONGEST = 1 + 2.0**-10


@dataclass(frozen=True, eq=False)
class Factors:
    """Rows (n, d) and (m, d), float64 on the grid; `error` bounds float32 products of them."""

    a: torch.Tensor
    b: torch.Tensor
    error: float

    def linked(self, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
        """Exact scores of single pairs, float64 on the CPU."""
        return products(self.a, self.b, rows.to(self.a.device), cols.to(self.a.device)).cpu()

    def columns(self, bands: Iterable[slice], *, height: int, dtype: torch.dtype) -> Iterator[Block]:
        """Blocks of at most `height` rows of bands of columns: exact in float64, within `error` in float32.

        A block's memory is used again for the next.
        """
        n, d = self.a.shape
        a = self.a.to(dtype)
        b = self.b.to(dtype) if isinstance(self.b, Rows) else self.b  # no more than a block of it is float64
        stretches = split_evenly(d, STRETCH if dtype == torch.float32 else d)
        memory = self.a.new_empty(0, 0, dtype=dtype)
        for cols in bands:
            right = b[cols].to(dtype)
            for rows in split_evenly(n, height):
                left = a[rows]
                shape = (rows.stop - rows.start, cols.stop - cols.start)
                if memory.shape[1] < shape[0] * shape[1]:
                    memory = self.a.new_empty(min(len(stretches), 2), shape[0] * shape[1], dtype=dtype)
                values, more = (part[: shape[0] * shape[1]].view(shape) for part in (memory[0], memory[-1]))
                torch.mm(left[:, stretches[0]], right[:, stretches[0]].T, out=values)
                for stretch in stretches[1:]:  # not addmm, which may start from the sum so far and lengthen it
                    values.add_(torch.mm(left[:, stretch], right[:, stretch].T, out=more))
                yield Block(rows, cols, values, None if dtype == torch.float64 else (self.a, self.b))


def read_factors(scores: PairScores) -> Factors | None:
    """The factors of `scores`, if they have any.

    Raises:
        ValueError: Factors that are not what `PairScores.factors` promises.
    """
    factors = scores.factors()
    if factors is None:
        return None
    a, b = (factor.detach() for factor in factors)
    if a.ndim != 2 or a.shape[1:] != b.shape[1:] or (len(a), len(b)) != tuple(scores.shape) or a.device != b.device:
        raise ValueError(
            f"factors of {tuple(scores.shape)} scores must be (n, d) and (m, d) with one d on one device, got "
            f"{tuple(a.shape)} on {a.device} and {tuple(b.shape)} on {b.device}"
        )
    for factor, what in ((a, "raw"), (b, "released")):
        _check(factor, what)
    additions = min(a.shape[1], STRETCH) + -(-a.shape[1] // STRETCH) + 2
    return Factors(a.contiguous(), b.contiguous(), math.expm1(additions * math.log1p(2.0**-24)) * LONGEST**2)


def _check(factor: torch.Tensor, what: str) -> None:
    if factor.dtype != torch.float64:
        raise ValueError(f"{what} factors must be float64, got {factor.dtype}")
    for part, rows in in_blocks(factor, 256):
        # Adding 1.5 * 2^26 rounds to the grid; what is not finite does not come back as itself, or is too long.
        off = ((rows + TO_GRID) - TO_GRID != rows).any(dim=1) | ~(torch.linalg.vector_norm(rows, dim=1) <= LONGEST)
        if off.any():
            raise ValueError(
                f"{what} factors must be finite multiples of 2^-26 in rows no longer than {LONGEST}; row "
                f"{part.start + int(off.nonzero()[0, 0])} is not"
            )


def float32_is_float32(device: torch.device) -> bool:
    """Whether float32 products on the device are what they say: the CPU's, unless coarser arithmetic was allowed.

    Both ways of allowing it, the older `torch.set_float32_matmul_precision` too, end in the setting that is read here.
    """
    allowed = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    return device.type == "cpu" and allowed in ("none", "ieee")
