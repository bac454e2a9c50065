"""What is asked of objects of another process, and what such a process may ask back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import torch

from bench.isolation.kept_training import KeptTraining
from bench.isolation.language import Handle, Value
from bench.types import Generator

Generators: TypeAlias = "Callable[[Mapping[str, torch.Tensor]], Generator]"
"""Makes a release's generator of its state."""


class Line(Protocol):
    """What objects of another process are asked over."""

    @property
    def open(self) -> bool:
        """Whether it answers."""

    def ask(
        self, whom: Handle | None, what: str, *values: Value, generator: Generators | None = None,
        training: KeptTraining | None = None,
    ) -> Value:  # fmt: skip
        """As `bench.isolation.room.Room.ask`."""


class Answering(Protocol):
    """What a process may ask the judge while it is asked something itself (`bench.isolation.errands`)."""

    refused: bool

    def ask(self, whom: int | None, what: str, values: Sequence[Value]) -> Value:
        """What an object gives; None stands for what makes the first one."""

    def forget(self, numbers: Sequence[int]) -> None:
        """Let objects go."""

    def generator(self, state: Mapping[str, torch.Tensor]) -> Generator:
        """A release's generator, by its state."""
