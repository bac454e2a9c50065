"""How the sweep reads the scores of a grid: once or twice, in the cheapest way that leaves the counts exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import torch

from bench.memory.rows import Rows
from bench.pairs.blocks import Block, blocks, split_evenly
from bench.pairs.census import Census, Counter, Part, Tally, TorchCounter, open_census
from bench.pairs.factors import float32_is_float32, read_factors
from bench.types import PairScores

BLOCK = 1024
DEVICE_BLOCK = 8192
KEPT = 2**22
"""Scores of a grid so small that its blocks are kept instead of read twice."""
DOT, DOT_READ = 64, 512
"""How many scores of a block can be multiplied in the time of one single pair's; where its rows must be read first."""
WORTHWHILE = (0.1, 0.002)
"""The share of doubtful float32 scores up to which comparing them exactly is quicker than exact blocks: for a compiled
counter, for torch."""
SAMPLE = 256
SIDES = 4
"""Blocks of rows that are held at a time, of those that are read where they are used; and how much longer their sides
may be, for all rows are read once for every block of columns."""


class Reading:
    """Reads all scores of a grid once or twice, in the cheapest exact way."""

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
        """Exact scores (float64, CPU) of the pairs numbered row * m + column, ascending: products, or out of blocks."""
        n, m = self.scores.shape
        read = self.factors is not None and isinstance(self.factors.a, Rows)
        if self.factors is not None and len(cells) * (DOT_READ if read else DOT) < n * m:
            return self.factors.linked(cells // m, cells % m)
        found = torch.empty(len(cells), dtype=torch.float64)
        rows, cols = cells // m, cells % m
        kept: list[Block] = []
        for block in self._blocks(split_evenly(m, self.side), self.dtype):
            start, stop = torch.searchsorted(rows, torch.tensor([block.rows.start, block.rows.stop])).tolist()
            near = cols[start:stop]
            here = start + ((near >= block.cols.start) & (near < block.cols.stop)).nonzero()[:, 0]
            at = (rows[here] - block.rows.start).to(self.device), (cols[here] - block.cols.start).to(self.device)
            found[here] = block.exact(*at).cpu()
            if n * m <= KEPT:
                kept.append(Block(block.rows, block.cols, block.values.clone(), None))
        self.kept = kept or None
        return found

    def sweep(self, groups: Sequence[Sequence[Part]], counter: type[Counter]) -> list[tuple[Census, Tally]]:
        """A census of each group of parts, with its counts, from one reading."""
        opened = [partial(open_census, parts, device=self.device) for parts in groups]
        if self.factors is not None and self.kept is None and float32_is_float32(self.device):
            censuses = [census(dtype=torch.float32, error=self.factors.error) for census in opened]
            limit = WORTHWHILE[counter is TorchCounter]
            if all(self._doubtful(census) <= limit for census in censuses):
                return self._spread(censuses, counter, torch.float32)
        censuses = [census(dtype=self.dtype, error=0.0) for census in opened]
        return self._spread(censuses, counter, self.dtype)

    def _spread(self, censuses: list[Census], counter: type[Counter], dtype: torch.dtype) -> list[tuple[Census, Tally]]:
        """Count in as many threads as torch may use, where the counter is not torch and factors can be shared."""
        split = counter is not TorchCounter and self.factors is not None and self.kept is None
        threads = torch.get_num_threads() if split else 1
        bands = split_evenly(self.scores.shape[1], min(self.side, -(-self.scores.shape[1] // threads)))
        workers = [bands[number::threads] for number in range(min(threads, len(bands)))]

        def work(own: list[slice]) -> list[Tally]:
            counters = [counter(census) for census in censuses]
            for block in self._blocks(own, dtype):
                for each in counters:
                    each.see(block)
            return [each.tally() for each in counters]

        if threads == 1:
            found = [work(bands)]
        else:
            with _one_thread_each(), ThreadPoolExecutor(len(workers)) as pool:
                found = list(pool.map(work, workers))
        for others in found[1:]:
            for tally, other in zip(found[0], others, strict=True):
                tally.add(other)
        return list(zip(censuses, found[0], strict=True))

    def _blocks(self, bands: Sequence[slice], dtype: torch.dtype) -> Iterator[Block]:
        if self.kept is not None:
            return iter(self.kept)
        if self.factors is not None:
            return self.factors.columns(bands, height=max(self.side * 2 // dtype.itemsize, 1), dtype=dtype)
        return self._read()

    def _read(self) -> Iterator[Block]:
        """Blocks as the author of the scores gives them, checked."""
        for rows, cols in blocks(self.scores.shape, self.side):
            given = self.scores.block(rows, cols).detach()
            values = given if given.dtype == torch.float32 else given.to(torch.float64)
            if values.dtype != self.dtype or values.device != self.device:
                raise TypeError(
                    f"all blocks of scores must have one dtype and device, got {given.dtype} on {given.device}"
                )
            if not torch.stack(torch.aminmax(values)).isfinite().all():
                row, col = (~values.isfinite()).nonzero()[0].tolist()
                raise ValueError(
                    f"scores must be finite, got {values[row, col].item()} for raw row {rows.start + row} and released "
                    f"row {cols.start + col}"
                )
            yield Block(rows, cols, values.contiguous(), None)

    def _doubtful(self, census: Census) -> float:
        """The share of a sample of scores that float32 products could not place."""
        if self.factors is None:
            return 1.0
        steps = [-(-length // SAMPLE) for length in self.scores.shape]
        # Not the same numbers on both sides: linked pairs are doubtful, and mostly have the same.
        some, others = self.factors.a[:: steps[0]], self.factors.b[steps[1] // 2 :: steps[1]]
        return float(census.places.doubtful((some @ others.T).to(torch.float32)).double().mean())


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Torch runs one thread for each of ours; the setting outlives threads, so it is put back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
