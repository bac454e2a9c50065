"""Rows that are read where they are used: a tensor to whoever uses it, of which no more exists than is being used.

`Rows` lie on disk or on a device as they were stored (uint8, say), and become float32 a batch at a time:
`rows[indices]` is an ordinary tensor where it fits. What works row by row (arithmetic, comparisons, `flatten(1)`) gives
rows again, computed when they are read; sums, means, extremes and the like are gathered block by block; anything else
gets an ordinary tensor of all rows, where that fits the budget, and else an error that says what would be needed.
Nobody can write into them.

Rows that come in order and are kept as they come: in memory where they fit, else in a file without a name.
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
    """Some rows (int64 indices, or a slice) of samples (n, ...); of `Rows` such that are read where they are used."""
    if not isinstance(samples, Rows):
        return samples[which]
    return samples.at(torch.arange(len(samples))[which] if isinstance(which, slice) else which)


def in_blocks(samples: torch.Tensor, most: int | None = None) -> Iterator[tuple[slice, torch.Tensor]]:
    """Samples (n, ...) in order, at most so many rows at a time, and of `Rows` as many as fit; with their places."""
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
    """What `make` makes of rows (n, ...), each of its own row alone, asked for `size` rows at a time, in order.

    Args:
        samples: The rows.
        make: Of rows (b, ...), an ordinary tensor where they fit, as many others; only the last block is smaller. Where
            the device's memory does not suffice for a block, it is asked again for half of it, and blocks stay so.
        size: Rows at a time. None: all of an ordinary tensor, `ROWS` where they are read where they are used.
        like: Of whose kind the result is: of `Rows` come `Rows` where it does not fit as an ordinary tensor. None
            stands for `samples`.
        draws: `make` draws random numbers, or works on its rows together: no block is asked for again, or in halves,
            which would come out as others.

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
    """The blocks of `by_blocks`, where `halved` half as large wherever the device's memory does not suffice."""
    at = 0
    while at < len(samples) or not at:  # no rows are one block
        part = _if_it_fits(make, samples, slice(at, at + size), halved=halved)
        if part is None:
            size, before = min(size, len(samples)) // 2, size
            smaller(size, before)
            torch.cuda.empty_cache()
            continue
        at += max(1, size)
        yield part


def _if_it_fits(
    make: Callable[[torch.Tensor], torch.Tensor], samples: torch.Tensor, place: slice, *, halved: bool
) -> torch.Tensor | None:
    """What is made of some rows; None where the device's memory does not suffice, and fewer may do with less.

    That the rows are read here counts too: those on disk come to the device as they are read.
    """
    try:
        return make(samples[place][:])
    except torch.OutOfMemoryError:
        if not halved or min(place.stop, len(samples)) - place.start < 2:
            raise
        return None


def by_even_blocks(samples: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor], count: int) -> torch.Tensor:
    """The same in `count` blocks that differ in size by a row at most, the larger first."""
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
        budget: None keeps them in memory, however many.

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
    """The kind itself, or for those that NumPy lacks (bfloat16) one that holds the same numbers."""
    try:
        torch.empty(0, dtype=kind).numpy()
    except TypeError:
        return torch.float32
    return kind
