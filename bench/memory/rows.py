"""Rows: a tensor that is read from disk, or computed, on use.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np
import torch

from bench.memory.memory_budget import Budget
from bench.progress import smaller


@dataclass(frozen=True, eq=False)
class Stored:
    """Stored rows, read without computation.

    Args:
        array: (N, ...) of a narrow kind, in memory, memory-mapped, or on a device.
        index: (n,) int64 on the CPU: the rows' numbers; None stands for all.
        divisor: Divisor of the numbers once they are float: 255 for bytes; None for none.
    """

    array: np.ndarray | torch.Tensor
    index: torch.Tensor | None
    divisor: float | None

    def at(self, index: torch.Tensor) -> Stored:
        """Some of them."""
        return Stored(self.array, index if self.index is None else self.index[index], self.divisor)

    def raw(self, index: torch.Tensor) -> torch.Tensor:
        """Rows as they lie there."""
        places = index if self.index is None else self.index[index]
        if isinstance(self.array, torch.Tensor):
            return self.array[places.to(self.array.device)]
        order = places.argsort()  # a disk is read in its own order
        rows = np.empty((len(places), *self.array.shape[1:]), dtype=self.array.dtype)
        rows[order.numpy()] = self.array[places[order].numpy()]
        return torch.from_numpy(rows)


CACHED = 4 << 20
"""Bytes of rows computed at a time."""
Read: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""Indices (k,) int64 on the CPU to rows (k, ...)."""


def as_they_are(values: Iterable[object]) -> Callable[[], None]:
    """A check before each read: raises RuntimeError if a tensor changed."""
    versions = [
        (tensor, tensor._version)
        for tensor in values
        if isinstance(tensor, torch.Tensor) and not isinstance(tensor, Rows) and not tensor.is_inference()
    ]

    def check() -> None:
        if any(tensor._version != version for tensor, version in versions):
            raise RuntimeError(
                "a tensor that rows are computed with was written to before they were read: work with a copy of it"
            )

    return check


if TYPE_CHECKING:
    Base = torch.Tensor
else:
    Base = object  # every instance is a `RowsTensor`, but this module is imported without executing torch


class Rows(Base):
    """Rows (n, ...) that are read on use; a tensor as well."""

    read: Read
    budget: Budget
    stored: Stored | None
    wide: int
    few: bool

    @staticmethod
    def __new__(
        cls, read: Read, shape: Sequence[int], *, dtype: torch.dtype, device: torch.device, budget: Budget,
        stored: Stored | None = None, wide: int = 1, few: bool = True,
    ) -> Self:  # fmt: skip
        """Rows that `read` gives; of `shape`, with n first.

        Args:
            read: Gives some of the rows.
            shape, dtype, device: Of all of them.
            budget: What a job may hold.
            stored: Their storage; None if they are computed.
            wide: Bytes of the widest intermediate row.
            few: Reading a few rows at a time costs nothing extra; False for matrix products.
        """
        from bench.memory.torch_functions import RowsTensor

        kind = cast(type[Self], RowsTensor)
        tensor: Self = torch.Tensor._make_wrapper_subclass(kind, tuple(shape), dtype=dtype, device=device)
        tensor.read, tensor.budget, tensor.stored, tensor.few = read, budget, stored, few
        tensor.wide = max(wide, tensor.bytes_of(1))
        return tensor

    @classmethod
    def of(
        cls, array: np.ndarray | torch.Tensor, budget: Budget, *, divisor: float | None = None,
        dtype: torch.dtype | None = None, device: torch.device | None = None, index: torch.Tensor | None = None,
    ) -> Self:  # fmt: skip
        """Rows of `dtype` (None: float32) on `device`, stored in a (mapped) array."""
        dtype = dtype or torch.float32
        stored, place = Stored(array, index, divisor), device or torch.device("cpu")

        def read(index: torch.Tensor) -> torch.Tensor:
            rows = stored.raw(index).to(place).to(dtype)
            if stored.divisor is None:
                return rows
            # Not by a number: a GPU would multiply by its rounded reciprocal.
            return rows.div_(torch.full((), stored.divisor, dtype=dtype, device=place))

        length = len(array) if index is None else len(index)
        return cls(read, (length, *array.shape[1:]), dtype=dtype, device=place, budget=budget, stored=stored)

    def __iter__(self) -> Iterator[torch.Tensor]:
        for _, rows in self.blocks():
            yield from rows

    def __repr__(self, **_: object) -> str:  # type: ignore[override]
        return f"Rows(shape={tuple(self.shape)}, dtype={self.dtype}, device={self.device})"

    def at(self, index: torch.Tensor) -> Self:
        """Rows at int64 indices or a bool mask, read on use."""
        index = index.detach().cpu()
        mask = index.dtype in (torch.bool, torch.uint8)
        if index.ndim != 1 or index.is_floating_point() or (mask and len(index) != len(self)):
            raise IndexError(
                f"rows are indexed by whole numbers (k,) or bool ({len(self)},), got {index.dtype} of shape "
                f"{tuple(index.shape)}"
            )
        places = index.nonzero()[:, 0] if mask else index.long()
        if len(places) and not -len(self) <= int(places.min()) <= int(places.max()) < len(self):
            raise IndexError(f"indices must lie within {len(self)} rows, got {int(places.min())}..{int(places.max())}")
        places = torch.where(places < 0, places + len(self), places)
        if self.stored is not None:
            array, divisor = self.stored.array, self.stored.divisor
            return type(self).of(array, self.budget, divisor=divisor, dtype=self.dtype, device=self.device,
                           index=self.stored.at(places).index)  # fmt: skip
        return self.like(lambda index: self.read(places[index]), (len(places), *self.shape[1:]))

    def whole(self) -> torch.Tensor:
        """All rows as an ordinary tensor; TooLargeError if that exceeds the budget."""
        self.budget.check(tuple(self.shape), self.bytes_of(len(self)))
        return self._gathered()

    def blocks(self, size: int | None = None) -> Iterator[tuple[slice, torch.Tensor]]:
        """All rows with their places, in blocks of `size` or budget."""
        size = size or max(1, self.budget.block // max(1, self.wide))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self.brought(torch.arange(part.start, part.stop))

    def brought(self, index: torch.Tensor) -> torch.Tensor:
        """`read` of rows (k,) int64 in cache-sized parts, three times as fast."""
        size = max(1, CACHED // max(1, self.wide))
        if not self.few or self.device.type != "cpu" or len(index) <= size:
            return self.read(index)
        rows = torch.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        for start in range(0, len(index), size):
            rows[start : start + size] = self.read(index[start : start + size])
        return rows

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        """Rows changed one by one by `change`, computed on reading."""
        probe = change(self.read(torch.arange(min(1, len(self)))))
        return self.like(lambda index: change(self.read(index)), (len(self), *probe.shape[1:]), probe.dtype)

    def times(self, matrix: torch.Tensor) -> Self:
        """Products of rows and a matrix, computed in blocks on reading."""
        shape, check = (len(self), matrix.shape[1]), as_they_are((matrix,))

        def read(index: torch.Tensor) -> torch.Tensor:
            check()
            return self.brought(index) @ matrix

        return type(self)(read, shape, dtype=self.dtype, device=self.device,
                          budget=self.budget, wide=self.wide, few=False)  # fmt: skip

    def on(self, device: torch.device) -> Self:
        """The same rows for `device`, moved on reading unless small."""
        device = torch.empty(0, device=device).device  # with its number, as tensors name theirs
        if device == self.device:
            return self
        if self.stored is None:
            return self.like(lambda index: self.read(index).to(device), self.shape, device=device)
        array, index = self.stored.array, self.stored.index
        if device.type == "cuda" and len(self) * math.prod(array.shape[1:]) * array.itemsize <= self.budget.whole:
            array, index = self.stored.raw(torch.arange(len(self))).to(device), None
        return type(self).of(
            array, self.budget, divisor=self.stored.divisor, dtype=self.dtype, device=device, index=index
        )

    def like(
        self, read: Read, shape: Sequence[int], dtype: torch.dtype | None = None, device: torch.device | None = None
    ) -> Self:
        """Other rows under the same budget, dtype and device by default."""
        return type(self)(read, shape, dtype=dtype or self.dtype, device=device or self.device, budget=self.budget,
                          wide=self.wide, few=self.few)  # fmt: skip

    def bytes_of(self, rows: int) -> int:
        """Bytes of that many rows as an ordinary tensor."""
        return rows * math.prod(self.shape[1:]) * self.dtype.itemsize

    def some(self, index: torch.Tensor) -> torch.Tensor:
        """Some rows (as `at`), as an ordinary tensor if that fits."""
        rows = self.at(index)
        return rows if rows.bytes_of(len(rows)) > self.budget.whole else rows._gathered()

    def _gathered(self) -> torch.Tensor:
        whole = torch.empty(tuple(self.shape), dtype=self.dtype, device=self.device)
        for part, rows in self.blocks():  # intermediate results are of one block
            whole[part] = rows
        return whole


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


ROWS = 256


def by_blocks(
    samples: torch.Tensor,
    make: Callable[[torch.Tensor], torch.Tensor],
    size: int | None = None,
    *,
    like: torch.Tensor | None = None,
    draws: bool = False,
) -> torch.Tensor:
    """Rows made from rows by `make`, in order, in blocks of `size`.

    Each row may depend on its own row alone. If the device's memory does not suffice, blocks are halved from then
    on, unless `make` draws random numbers. If `like` (None: `samples`) are `Rows`, so is a result that does not
    fit. Raises ValueError for a size below 1, or blocks of other kinds, shapes or lengths.
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
    """The parts as one tensor of `length` rows, on disk if large.

    Raises ValueError for parts that are not of one kind and shape, or not that many rows.
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
