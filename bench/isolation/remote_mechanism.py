"""A mechanism of the owner's process, as the judge asks it: for audits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import cast

import torch

from bench.contract.seal import ContractError
from bench.isolation.language import Value, tensor
from bench.types import Dataset, Mechanism, Release


class RemoteMechanism(Mechanism):
    """A mechanism of the owner's process, which `ask` asks for a function or a property of it."""

    def __init__(self, ask: Callable[..., Value]) -> None:
        self._ask = ask
        self.exact, self.rowwise = bool(self._ask("exact")), bool(self._ask("rowwise"))

    @cached_property
    def scale(self) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("scale"), "a scale")

    @cached_property
    def fence(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """As the mechanism says."""
        found = self._ask("fence")
        if found is None:
            return None
        low, high = (tensor(end, "an end of a fence") for end in cast("Sequence[Value]", found))
        return low, high

    def locate(self, data: Dataset) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("locate", data), "codes")

    def observe(self, release: Release) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("observe", release), "codes")

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """As the mechanism says."""
        pairs = [tuple(cast("Sequence[Value]", pair)) for pair in cast("Sequence[Value]", self._ask("witnesses", like))]
        if not all(len(pair) == 2 and all(isinstance(part, Dataset) for part in pair) for pair in pairs):
            raise ContractError("witnesses must be pairs of data sets")
        return cast("Sequence[tuple[Dataset, Dataset]]", pairs)

    def log_density(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("log_density", located, observed), "log densities")

    def noise(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("noise", located, observed), "noise")

    def stopped(self, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("stopped", observed), "stopped numbers")
