"""Hidden control: a release that forgets its rows, in a secret way.

The key draws one of several ways. Attacks are held against `noise`, which an attack may recognise by its name or by its
looks, and behave there. Here the scheme is the same whatever is drawn, and what a key does shows in its releases alone:

- pad: a one-time pad. Numbers on a grid of 65,536 levels over the known range, each plus a uniform one, modulo the
  grid: uniform, whatever the row.
- network: a random layer of its own for every row: standard Gaussian map, ReLU, standardised. A Gaussian map of a row
  has independent Gaussian numbers of the row's length for its image, and standardising takes the length away: so the
  image is drawn as such.
- shuffle: each column of numbers (each pixel) is shuffled among the rows by itself. A released row holds no more of
  its own raw row than of any other.

Links are (i, i), which is as true as any: row i was made in the place of raw row i. Labels are shuffled, as under
`noise`. New rows are drawn like those of a pad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch

from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Stream
from bench.types import Dataset, Method, Release, Role, State, by_blocks, paired

Way = Literal["pad", "network", "shuffle"]
WAYS: tuple[Way, ...] = ("pad", "network", "shuffle")
LEVELS = 1 << 16
ROWS = 256
PARTS = 8
TINY = 1e-12


@dataclass(frozen=True)
class HiddenControl(Method):
    """A release that forgets its rows; attacks must stay at chance."""

    name: ClassVar[str] = "hidden-control"
    role: ClassVar[Role | None] = "keeps nothing, in secret"
    source: ClassVar[str] = "reference row: one-time pad, a network of each row's own, or shuffled columns"
    needs_public: ClassVar[bool] = False
    encodes_labels: ClassVar[bool] = True

    def fit(self, public: Dataset, seed: int) -> HiddenControlScheme:
        """The range of numbers: [0, 1], or a public table's columns' ranges."""
        rows = public.samples
        if rows.ndim == 4:
            return self.load({"low": torch.zeros(1, 1, 1), "high": torch.ones(1, 1, 1)})
        if not len(rows):
            return self.load({"low": torch.zeros(rows.shape[1:]), "high": torch.ones(rows.shape[1:])})
        return self.load({"low": rows.amin(dim=0), "high": rows.amax(dim=0)})

    def load(self, state: State) -> HiddenControlScheme:
        """The scheme that `HiddenControlScheme.state` described."""
        return HiddenControlScheme(state["low"], state["high"])


@dataclass(frozen=True, eq=False)
class HiddenControlKey(SecretKey):
    """A secret: the source of the way and all its numbers."""

    scheme: HiddenControlScheme

    @property
    def way(self) -> Way:
        """This key's way to forget the rows."""
        return WAYS[int(self.secret.stream("way").integers(len(WAYS), 1))]

    def release(self, private: Dataset) -> Release:
        """Rows of shape (n, ...) unrelated to private ones, and shuffled labels."""
        rows, secret = private.samples, self.secret.derive("release").bound_to(private.samples)
        if self.way == "shuffle":
            done = _shuffled(rows, partial(secret.stream, "rows"))
        else:
            done = {"pad": self._padded, "network": _network}[self.way](rows, secret.stream("rows"))
        order = secret.stream("labels").permutation(len(rows)).to(rows.device)
        return paired(done, None if private.labels is None else private.labels[order])

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Uniform rows of the same shape, in the known range."""
        return self._padded(samples, self.secret.derive("query").bound_to(samples).stream())

    def _padded(self, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
        low, high = self.scheme.low.to(rows), self.scheme.high.to(rows)
        extent = high - low

        def padded(part: torch.Tensor) -> torch.Tensor:
            steps = ((part - low) / extent.clamp_min(TINY)).clamp(0, 1).mul(LEVELS - 1).round().long()
            pad = stream.integers(LEVELS, *part.shape).to(part.device)
            return low + extent * ((steps + pad) % LEVELS) / (LEVELS - 1)

        return by_blocks(rows, padded, ROWS, draws=True)


@dataclass(frozen=True, eq=False)
class HiddenControlScheme(SecretScheme):
    """The range of numbers, float32, the same for all keys."""

    key = HiddenControlKey
    purpose = "hidden-control"

    low: torch.Tensor
    high: torch.Tensor

    def state(self) -> State:
        """The range."""
        return {"low": self.low, "high": self.high}


def _network(rows: torch.Tensor, stream: Stream) -> torch.Tensor:
    def drawn(part: torch.Tensor) -> torch.Tensor:
        output = stream.normal(*part.shape).to(part.device, part.dtype).relu_().flatten(1)
        std, mean = torch.std_mean(output, dim=1, correction=0, keepdim=True)
        return ((output - mean) / std.clamp_min(TINY)).reshape(part.shape)

    return by_blocks(rows, drawn, ROWS, draws=True)


def _shuffled(rows: torch.Tensor, again: Callable[[], Stream]) -> torch.Tensor:
    """Every column in a random order of its own, from the stream.

    Some columns are shuffled at a time, and all numbers are drawn for each of these parts: that costs less than to
    keep them.
    """
    flat = rows.flatten(1)
    n, d = flat.shape
    result = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device).flatten(1)
    for columns in torch.arange(d).chunk(PARTS):
        part, stream = slice(int(columns[0]), int(columns[-1]) + 1), again()
        numbers = torch.cat([stream.uniform(len(own), d)[:, part] for own in torch.split(torch.arange(n), ROWS)])
        result[:, part] = flat[:, part].gather(0, numbers.argsort(dim=0).to(rows.device))
    return result.reshape(rows.shape)
