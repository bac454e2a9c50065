"""Noise that a key adds: drawn from a secret of its own for every call, so that a scheme never uses noise twice.

A key belongs to one scheme. The same key under another scheme (another scale, another code) draws the same numbers for
the same rows: an owner who published both releases would publish their difference, in which the noise cancels. Claims
cover one release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.randomness import Secret, Stream
from bench.types import Dataset, Key, Release, State, paired


@dataclass(frozen=True, eq=False)
class NoiseKey(Key):
    """The key of a method that adds noise to every row: a secret.

    The secret, the kind of call and the rows together choose the stream of a call.

    Args:
        blur: Makes released rows of raw rows (n, ...), with noise from the stream.
        secret: Of this key alone.
    """

    blur: Callable[[torch.Tensor, Stream], torch.Tensor]
    secret: Secret

    def release(self, private: Dataset) -> Release:
        """Rows with fresh noise each. The same rows get the same noise again, any others new noise."""
        return paired(self._call(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Rows with fresh noise, never that of the release. Raises ValueError for rows of another shape."""
        return self._call(samples, "query")

    def state(self) -> State:
        """The secret, uint8 (32,)."""
        return {"secret": self.secret.tensor()}

    def _call(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        return self.blur(samples, self.secret.derive(call).bound_to(samples).stream())
