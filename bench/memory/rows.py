"""Rows: a tensor that is read from disk on use.

`Rows` stay on disk or on a device as they were stored (uint8, for example), and become float32 a batch at a time:
`rows[indices]` is an ordinary tensor if it fits. Operations row by row (arithmetic, comparisons, `flatten(1)`) give
lazy rows again; sums, means and extremes are gathered block by block; anything else gets an ordinary tensor of all rows
if that fits the budget, and else an error with the memory needed.
They are read-only.

`by_blocks` and `kept` collect rows in order: in memory if they fit, else in an unnamed file.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import torch

from bench.memory.lazy_rows import Lazy
from bench.memory.memory_budget import Budget
from bench.progress import smaller


def rows_at(samples: torch.Tensor, which: torch.Tensor | slice) -> torch.Tensor:
    """Some rows (int64 indices or a slice) of samples; `Rows` stay `Rows`."""
    if not isinstance(samples, Rows):
        return samples[which]
    return samples.at(torch.arange(len(samples))[which] if isinstance(which, slice) else which)


def in_blocks(samples: torch.Tensor, most: int | None = None) -> Iterator[tuple[slice, torch.Tensor]]:
    """Samples with their places, in fitting blocks of at most `most`."""
    if isinstance(samples, Rows):
        fitting = max(1, samples.budget.block // max(1, samples.wide))
        return samples.blocks(fitting if most is None else min(most, fitting))
    step = most or max(1, len(samples))
    return ((slice(at, min(at + step, len(samples))), samples[at : at + step]) for at in range(0, len(samples), step))


class Rows(Lazy):
    """Rows (n, ...) that are read where they are used."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        for _, rows in self.blocks():
            yield from rows

    def __repr__(self, **_: object) -> str:  # type: ignore[override]
        return f"Rows(shape={tuple(self.shape)}, dtype={self.dtype}, device={self.device})"


ROWS = 256


def by_blocks(
    samples: torch.Tensor,
    make: Callable[[torch.Tensor], torch.Tensor],
    size: int | None = None,
    *,
    like: torch.Tensor | None = None,
    draws: bool = False,
) -> torch.Tensor:
    """Rows made from rows (n, ...), block by block, in order.

    Each row may depend on its own row alone.

    Args:
        samples: The rows. make: From rows (b, ...), an ordinary tensor if they fit, to as many rows; only the last
        block is smaller. If the
            device's memory does not suffice, blocks are halved from then on.
        size: Rows at a time. None: all of an ordinary tensor, `ROWS` of `Rows`.
        like: If these are `Rows`, so is a result that does not fit as an ordinary tensor. None stands for `samples`.
        draws: `make` draws random numbers or works on its rows together: blocks are never repeated or halved.

    Raises:
        ValueError: `size` below 1, or blocks that are not of one kind and shape, or not as many rows.
    """
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if size is None:
        size = ROWS if isinstance(samples, Rows) else max(1, len(samples))
    own = samples if like is None else like
    return kept(
        _made(samples, make, size, halved=not draws), len(samples), own.budget if isinstance(own, Rows) else None
    )


def _made(
    samples: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor], size: int, *, halved: bool
) -> Iterator[torch.Tensor]:
    """The blocks of `by_blocks`, halved if the device's memory runs out."""
    start = 0
    while start < len(samples) or not start:  # no rows are one block
        part = _if_it_fits(make, samples, slice(start, start + size), halved=halved)
        if part is None:
            size, before = min(size, len(samples)) // 2, size
            smaller(size, before)
            torch.cuda.empty_cache()
            continue
        start += max(1, size)
        yield part


def _if_it_fits(
    make: Callable[[torch.Tensor], torch.Tensor], samples: torch.Tensor, place: slice, *, halved: bool
) -> torch.Tensor | None:
    """Rows made of a part; None if half may fit the memory."""
    try:
        return make(samples[place][:])
    except torch.OutOfMemoryError:
        if not halved or min(place.stop, len(samples)) - place.start < 2:
            raise
        return None


def by_even_blocks(samples: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor], count: int) -> torch.Tensor:
    """`by_blocks` in `count` blocks of nearly equal size, larger ones first."""
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    least, more = divmod(len(samples), count)
    sizes = [least + 1] * more + [least] * (count - more)
    parts = (make(part[:]) for part in torch.split(samples, sizes))
    return kept(parts, len(samples), samples.budget if isinstance(samples, Rows) else None)


def kept(parts: Iterator[torch.Tensor], length: int, budget: Budget | None) -> torch.Tensor:
    """The parts of `length` rows in one.

    Args:
        parts: (b, ...) each, in order; at least one.
        length: The sum of b.
        budget: None keeps them in memory.

    Raises:
        ValueError: Parts that are not of one kind and shape, or not that many rows.
    """
    first = next(parts)
    shape, kind = (length, *first.shape[1:]), first.dtype
    large = budget is not None and math.prod(shape) * kind.itemsize > budget.plain
    keeper = _File(kind, budget) if budget is not None and large else _Memory(shape, first)
    count = 0
    for part in _chained(first, parts):
        if part.dtype != kind or part.shape[1:] != first.shape[1:] or count + len(part) > length:
            raise ValueError(f"blocks of rows must be {kind} of shape {shape} together, got {tuple(part.shape)} more")
        keeper.take(part, count)
        count += len(part)
    if count != length:
        raise ValueError(f"blocks of rows must be {length} rows together, got {count}")
    return keeper.rows(shape, first.device)


def _chained(first: torch.Tensor, rest: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    yield first
    del first
    yield from rest


class _Memory:
    def __init__(self, shape: tuple[int, ...], like: torch.Tensor) -> None:
        self._found = torch.empty(shape, dtype=like.dtype, device=like.device)

    def take(self, part: torch.Tensor, at: int) -> None:
        self._found[at : at + len(part)] = part

    def rows(self, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
        return self._found


class _File:
    def __init__(self, kind: torch.dtype, budget: Budget) -> None:
        self._kind, self._stored, self._budget = kind, _stored_as(kind), budget
        self._file = tempfile.TemporaryFile(dir=budget.made_folder())  # noqa: SIM115 (closed by `rows`)

    def take(self, part: torch.Tensor, at: int) -> None:
        self._file.write(part.detach().cpu().to(self._stored).contiguous().numpy().data)

    def rows(self, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
        with self._file:  # the mapping outlives it
            self._file.flush()
            numbers = np.memmap(
                self._file, dtype=torch.empty(0, dtype=self._stored).numpy().dtype, mode="r", shape=shape
            )
        return Rows.of(numbers, self._budget, dtype=self._kind, device=device)


def _stored_as(kind: torch.dtype) -> torch.dtype:
    """The dtype itself, or float32 for dtypes NumPy lacks (bfloat16)."""
    try:
        torch.empty(0, dtype=kind).numpy()
    except TypeError:
        return torch.float32
    return kind
