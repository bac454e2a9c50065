"""Methods whose keys come from few bits of a good secret: what torch's generator makes of them looks large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bench.randomness import Secret
from bench.types import Dataset, Key, Release, Scheme, State, paired


@dataclass(frozen=True)
class ShortKeys(Scheme):
    """Adds noise to rows, or mixes their numbers, by a generator of torch.

    Args:
        bits: Of the secret that are used.
        kept: What the key's state holds: the seed, the seed among bits that nothing depends on, or what is drawn.
        noise: Noise by the row's place, in place of a random map of every row.
    """

    bits: int
    kept: Literal["seed", "padded", "drawn"] = "seed"
    noise: bool = False

    def sample_key(self, secret: Secret) -> Key:
        number = int.from_bytes(secret.content[:8], "big") >> 1
        return self._key(number if self.kept == "padded" else number % (1 << self.bits))

    def load_key(self, state: State) -> Key:
        return _Drawn(state["map"]) if self.kept == "drawn" else self._key(int(state["seed"]))

    def _key(self, number: int) -> Key:
        source = torch.Generator().manual_seed(number % (1 << self.bits))
        return _Drawn(torch.randn(16, 16, generator=source)) if self.kept == "drawn" else _Seeded(self, number)


@dataclass(frozen=True)
class _Seeded(Key):
    scheme: ShortKeys
    number: int

    def release(self, private: Dataset) -> Release:
        source = torch.Generator().manual_seed(self.number % (1 << self.scheme.bits))
        rows = private.samples
        if self.scheme.noise:
            return paired(rows + torch.randn(rows.shape, generator=source), None)
        return _Drawn(torch.randn(16, 16, generator=source)).release(private)

    def state(self) -> State:
        return {"seed": torch.tensor(self.number)}


@dataclass(frozen=True, eq=False)
class _Drawn(Key):
    map: Tensor

    def release(self, private: Dataset) -> Release:
        # One row at a time: a product of several rows may round otherwise than that of one.
        return paired(torch.stack([self.map @ row for row in private.samples]), None)

    def state(self) -> State:
        return {"map": self.map}
