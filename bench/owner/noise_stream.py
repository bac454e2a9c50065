"""Noise of a key: a stream of its own for every call.

So a scheme never uses noise twice. A key belongs to one scheme. The same key under another scheme (another scale,
another code) draws the same numbers for the same rows: an owner who published both releases would publish their
difference, in which the noise cancels. Claims cover one release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.randomness import Secret, Stream
from bench.types import Dataset, Key, Release, State, paired


@dataclass(frozen=True, eq=False)
class NoiseKey(Key):
    """The secret key of a method that adds noise to every row.

    The secret, the kind of call and the rows together choose the stream of a call.

    Args:
        blur: Makes released rows of raw rows (n, ...), with noise from the stream.
        secret: Of this key alone.
    """

    blur: Callable[[torch.Tensor, Stream], torch.Tensor]
    secret: Secret

    def release(self, private: Dataset) -> Release:
        """Rows with noise. Equal rows repeat it; other rows get new noise."""
        return paired(self._call(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Rows with fresh noise, never the release's. Raises ValueError for other shapes."""
        return self._call(samples, "query")

    def state(self) -> State:
        """The secret, uint8 (32,)."""
        return {"secret": self.secret.tensor()}

    def _call(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        return self.blur(samples, self.secret.derive(call).bound_to(samples).stream())
