"""Rows that are read where they are used: a tensor to whoever uses it, of which no more exists than is being used.

`Rows` lie on disk or on a device as they were stored (uint8, say), and become float32 a batch at a time:
`rows[indices]` is an ordinary tensor where it fits. What works row by row (arithmetic, comparisons, `flatten(1)`) gives
rows again, computed when they are read; sums, means, extremes and the like are gathered block by block; anything else
gets an ordinary tensor of all rows, where that fits the budget, and else an error that says what would be needed.
Nobody can write into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from bench.memory.functions import ABOUT, answer, plain, refuse_writing
from bench.memory.lazy import Lazy


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

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What torch's function `func` gives of them. Raises TypeError for one that writes."""
        name, more = getattr(func, "__name__", ""), dict(kwargs or {})
        refuse_writing(name, args, more)
        if name in ABOUT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **more)
        found = answer(func, name, args, more)
        return (
            func(*torch.utils._pytree.tree_map(plain, tuple(args)), **torch.utils._pytree.tree_map(plain, more))
            if found is NotImplemented
            else found
        )

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same for what calls torch from below Python."""
        return func(
            *torch.utils._pytree.tree_map(plain, tuple(args)), **torch.utils._pytree.tree_map(plain, dict(kwargs or {}))
        )

    def __iter__(self) -> Iterator[torch.Tensor]:
        for _, rows in self.blocks():
            yield from rows

    def __repr__(self, **_: object) -> str:  # type: ignore[override]
        return f"Rows(shape={tuple(self.shape)}, dtype={self.dtype}, device={self.device})"
