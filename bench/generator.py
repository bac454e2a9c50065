"""What an owner publishes in place of rows, or beside them: a generator that anybody may draw synthetic rows from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.types import Release, State


class Generator(ABC):
    """A trained decoder with the proportions of the labels that it was trained on. Everything in it is public."""

    @abstractmethod
    def sample(self, count: int, seed: int) -> Release:
        """`count` fresh rows with labels in the published proportions, without links; the same seed, the same rows.

        Raises ValueError for a count below 1.
        """

    @abstractmethod
    def state(self) -> State:
        """All that is published, as tensors: `Scheme.load_generator(state)` gives an equal generator."""
