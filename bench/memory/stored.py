"""Where rows lie that are stored as they are, not computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True, eq=False)
class Stored:
    """Where rows lie that are stored as they are, not computed.

    Args:
        array: (N, ...) of a narrow kind, in memory, memory-mapped, or on a device.
        index: (n,) int64 on the CPU: which of them; None stands for all.
        divisor: What a number is divided by once it is float: 255 for bytes; None leaves numbers as they are.
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
        found = np.empty((len(places), *self.array.shape[1:]), dtype=self.array.dtype)
        found[order.numpy()] = self.array[places[order].numpy()]
        return torch.from_numpy(found)
