"""Reading of score matrices: exact, or float32 within a proven bound.

Float32 products cost half as much as exact float64 products. Summed in any order, with or without fused operations, the
product of rows a and b of length d, rounded to float32, is off by at most ((1 + u)^(d + 2) - 1) |a| |b|, u = 2^-24
(Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1, and the Cauchy-Schwarz inequality). Long
rows are summed in stretches, which brings d down to the stretch plus the number of stretches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch

from bench.memory.rows import Rows, in_blocks
from bench.pairs.score_blocks import Block, blocks, products, split_evenly
from bench.pairs.score_histogram import Census, Counter, Part, Tally, TorchCounter, open_census
from bench.pairs.score_matrices import TableScores
from bench.types import PairScores

STRETCH = 128
TO_GRID = 1.5 * 2.0**26
LONGEST = 1 + 2.0**-10


@dataclass(frozen=True, eq=False)
class Factors:
    """Rows on the grid, float64; `error` bounds their float32 products."""

    a: torch.Tensor
    b: torch.Tensor
    error: float

    def linked(self, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
        """Exact scores of single pairs, float64 on the CPU."""
        return products(self.a, self.b, rows.to(self.a.device), cols.to(self.a.device)).cpu()

    def columns(self, bands: Iterable[slice], *, height: int, dtype: torch.dtype) -> Iterator[Block]:
        """Blocks of at most `height` rows by bands of columns.

        Exact in float64, within `error` in float32. Blocks share one buffer.
        """
        n, d = self.a.shape
        a = self.a.to(dtype)
        b = self.b.to(dtype) if isinstance(self.b, Rows) else self.b  # only a block of it is float64
        stretches = split_evenly(d, STRETCH if dtype == torch.float32 else d)
        memory = self.a.new_empty(0, 0, dtype=dtype)
        for cols in bands:
            right = b[cols].to(dtype)
            for rows in split_evenly(n, height):
                left = a[rows]
                shape = (rows.stop - rows.start, cols.stop - cols.start)
                if memory.shape[1] < shape[0] * shape[1]:
                    memory = self.a.new_empty(min(len(stretches), 2), shape[0] * shape[1], dtype=dtype)
                values, scratch = (part[: shape[0] * shape[1]].view(shape) for part in (memory[0], memory[-1]))
                torch.mm(left[:, stretches[0]], right[:, stretches[0]].T, out=values)
                for stretch in stretches[1:]:  # not addmm: it may extend the running sum
                    values.add_(torch.mm(left[:, stretch], right[:, stretch].T, out=scratch))
                yield Block(rows, cols, values, None if dtype == torch.float64 else (self.a, self.b))


def read_factors(scores: PairScores) -> Factors | None:
    """The factors of `scores`; None if it has none.

    Raises:
        ValueError: Factors that break the contract of `PairScores.factors`.
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


def tabled(scores: PairScores) -> PairScores:
    """The scores, as a table if they are products of long rows.

    Counts, exchanges of people and first guesses read all pairs five times. Products are exact in float64, so that
    the table has their bits.
    """
    n, m = scores.shape
    if not KEPT < n * m <= TABLE_BYTES // 8:
        return scores
    factors = read_factors(scores)
    if factors is None or factors.a.device.type != "cpu" or factors.a.shape[1] < LONG:
        return scores
    table = torch.empty(n, m, dtype=torch.float64)
    for block in factors.columns(split_evenly(m, BLOCK), height=BLOCK, dtype=torch.float64):
        table[block.rows, block.cols] = block.values
    return TableScores(table)


def _check(factor: torch.Tensor, what: str) -> None:
    if factor.dtype != torch.float64:
        raise ValueError(f"{what} factors must be float64, got {factor.dtype}")
    for part, rows in in_blocks(factor, 256):
        # Adding 1.5 * 2^26 rounds to the grid; infinity and NaN change or are too long.
        off = ((rows + TO_GRID) - TO_GRID != rows).any(dim=1) | ~(torch.linalg.vector_norm(rows, dim=1) <= LONGEST)
        if off.any():
            raise ValueError(
                f"{what} factors must be finite multiples of 2^-26 in rows no longer than {LONGEST}; row "
                f"{part.start + int(off.nonzero()[0, 0])} is not"
            )


def float32_is_float32(device: torch.device) -> bool:
    """True if float32 products on the device are full float32.

    True on the CPU unless coarser arithmetic was allowed; every way of allowing it ends in the setting read here.
    """
    allowed = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    return device.type == "cpu" and allowed in ("none", "ieee")


BLOCK = 1024
DEVICE_BLOCK = 8192
KEPT = 2**22
"""Largest grid (scores) whose blocks are stored instead of read twice."""
TABLE_BYTES, LONG = 1 << 32, 64
"""Bytes of a table of products at most, and the length of rows from which it pays."""
DOT, DOT_READ = 64, 512
"""Block scores computed in the time of one single pair; the same if its rows are on disk."""
WORTHWHILE = (0.1, 0.002)
"""Largest share of doubtful float32 scores at which float32 blocks pay: compiled counter, torch."""
SAMPLE = 256
SIDES = 4
"""For rows on disk: blocks held at a time, and the factor by which sides grow, as each column block reads all rows."""


class Reading:
    """One or two readings of all scores of a grid."""

    def __init__(self, scores: PairScores, block: int | None) -> None:
        self.scores, self.factors = scores, read_factors(scores)
        self.kept: list[Block] | None = None
        first = self.factors.a[:1] if self.factors else scores.block(slice(0, 1), slice(0, 1))
        self.device = first.device
        self.dtype = torch.float32 if first.dtype == torch.float32 else torch.float64
        self.side = block or (BLOCK if self.device.type == "cpu" else DEVICE_BLOCK)
        if self.factors is not None and isinstance(self.factors.a, Rows):
            rows = self.factors.a
            self.side = max(1, min(block or SIDES * self.side, rows.budget.whole // SIDES // rows.bytes_of(1)))

    def linked(self, cells: torch.Tensor) -> torch.Tensor:
        """Exact scores (float64, CPU) of pairs row * m + column, ascending."""
        n, m = self.scores.shape
        on_disk = self.factors is not None and isinstance(self.factors.a, Rows)
        if self.factors is not None and len(cells) * (DOT_READ if on_disk else DOT) < n * m:
            return self.factors.linked(cells // m, cells % m)
        linked = torch.empty(len(cells), dtype=torch.float64)
        rows, cols = cells // m, cells % m
        copies: list[Block] = []
        for block in self._blocks(split_evenly(m, self.side), self.dtype):
            start, stop = torch.searchsorted(rows, torch.tensor([block.rows.start, block.rows.stop])).tolist()
            columns = cols[start:stop]
            places = start + ((columns >= block.cols.start) & (columns < block.cols.stop)).nonzero()[:, 0]
            offsets = (
                (rows[places] - block.rows.start).to(self.device),
                (cols[places] - block.cols.start).to(self.device),
            )
            linked[places] = block.exact(*offsets).cpu()
            if n * m <= KEPT:
                copies.append(Block(block.rows, block.cols, block.values.clone(), None))
        self.kept = copies or None
        return linked

    def sweep(self, groups: Sequence[Sequence[Part]], counter: type[Counter]) -> list[tuple[Census, Tally]]:
        """A census of each group of parts, from one reading."""
        opened = [partial(open_census, parts, device=self.device) for parts in groups]
        if self.factors is not None and self.kept is None and float32_is_float32(self.device):
            censuses = [census(dtype=torch.float32, error=self.factors.error) for census in opened]
            limit = WORTHWHILE[counter is TorchCounter]
            if all(self._doubtful(census) <= limit for census in censuses):
                return self._spread(censuses, counter, torch.float32)
        censuses = [census(dtype=self.dtype, error=0.0) for census in opened]
        return self._spread(censuses, counter, self.dtype)

    def _spread(self, censuses: list[Census], counter: type[Counter], dtype: torch.dtype) -> list[tuple[Census, Tally]]:
        """Count in threads if the counter is compiled and factors exist."""
        split = counter is not TorchCounter and self.factors is not None and self.kept is None
        threads = torch.get_num_threads() if split else 1
        bands = split_evenly(self.scores.shape[1], min(self.side, -(-self.scores.shape[1] // threads)))
        workers = [bands[number::threads] for number in range(min(threads, len(bands)))]

        def work(own: list[slice]) -> list[Tally]:
            counters = [counter(census) for census in censuses]
            for block in self._blocks(own, dtype):
                for tallier in counters:
                    tallier.see(block)
            return [tallier.tally() for tallier in counters]

        if threads == 1:
            tallies = [work(bands)]
        else:
            with _one_thread_each(), ThreadPoolExecutor(len(workers)) as pool:
                tallies = list(pool.map(work, workers))
        for others in tallies[1:]:
            for tally, other in zip(tallies[0], others, strict=True):
                tally.add(other)
        return list(zip(censuses, tallies[0], strict=True))

    def _blocks(self, bands: Sequence[slice], dtype: torch.dtype) -> Iterator[Block]:
        if self.kept is not None:
            return iter(self.kept)
        if self.factors is not None:
            return self.factors.columns(bands, height=max(self.side * 2 // dtype.itemsize, 1), dtype=dtype)
        return self._read()

    def _read(self) -> Iterator[Block]:
        """Blocks as the attack gives them, checked."""
        for rows, cols in blocks(self.scores.shape, self.side):
            block = self.scores.block(rows, cols).detach()
            values = block if block.dtype == torch.float32 else block.to(torch.float64)
            if values.dtype != self.dtype or values.device != self.device:
                raise TypeError(
                    f"all blocks of scores must have one dtype and device, got {block.dtype} on {block.device}"
                )
            if not torch.stack(torch.aminmax(values)).isfinite().all():
                row, col = (~values.isfinite()).nonzero()[0].tolist()
                raise ValueError(
                    f"scores must be finite, got {values[row, col].item()} for raw row {rows.start + row} and released "
                    f"row {cols.start + col}"
                )
            yield Block(rows, cols, values.contiguous(), None)

    def _doubtful(self, census: Census) -> float:
        """Share of sampled scores that float32 products cannot place."""
        if self.factors is None:
            return 1.0
        steps = [-(-length // SAMPLE) for length in self.scores.shape]
        # Other row numbers on each side: linked pairs, often of equal numbers, are doubtful.
        some, others = self.factors.a[:: steps[0]], self.factors.b[steps[1] // 2 :: steps[1]]
        return float(census.places.doubtful((some @ others.T).to(torch.float32)).double().mean())


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """One torch thread per thread of ours; restored afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
