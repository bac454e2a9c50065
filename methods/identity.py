"""Identity: a reference row of full utility and no privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.types import Keyless, Role


@dataclass(frozen=True)
class Identity(Keyless):
    """Nothing is hidden: every attack must find every row."""

    name: ClassVar[str] = "identity"
    role: ClassVar[Role | None] = "hides nothing"
    source: ClassVar[str] = "reference row: the raw data"

    def transform(self, samples: torch.Tensor) -> torch.Tensor:
        """The rows themselves."""
        return samples
