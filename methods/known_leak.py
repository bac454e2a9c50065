"""Known leak: a release with a stated leak and known best attack.

Reference rows: they show how much of the possible an attack attains. None of them is a contender.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch

from bench.owner.grid_noise import GridNoise
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Secret, Stream
from bench.types import Dataset, Mechanism, Method, Release, State, by_blocks, paired
from bench.validation import at_least, one_of, positive

Kept = Literal["scalar", "noisy-scalar", "length", "group", "pixels", "nothing"]
KEPT: tuple[Kept, ...] = ("scalar", "noisy-scalar", "length", "group", "pixels", "nothing")
Places = Literal["public", "secret"]
LEVELS = 256
ROWS = 256


@dataclass(frozen=True)
class KnownLeak(Method):
    """A release with one stated leak of every row, without labels.

    Args:
        keeps: "scalar": the row's mean, exactly, everywhere in place of the row. "noisy-scalar": the same with Laplace
            noise of its own. "length": the row turned by a random rotation of its own, which keeps its Euclidean length
            and nothing else. "group": the mean of a random group of rows in place of each of them. "pixels": normal
            noise, in which a few numbers of every row stay as they are, at the same places in all rows. "nothing": the
            row under a one-time pad of whole grey levels (256 of them, rounded).
        scale: Of the noise of "noisy-scalar", in units of the values.
        k: Rows of a group; the last group takes what is left over.
        pixels: Numbers of a row that stay as they are.
        places: "public": the places are the same for all keys. "secret": each key draws them.
    """

    name: ClassVar[str] = "known-leak"
    source: ClassVar[str] = "constructed, so that the best possible attack is known"
    needs_public: ClassVar[bool] = False

    keeps: Kept = "length"
    scale: float = 0.02
    k: int = 10
    pixels: int = 4
    places: Places = "secret"

    def __post_init__(self) -> None:
        one_of(KEPT, keeps=self.keeps)
        one_of(get_args(Places), places=self.places)
        positive(scale=self.scale)
        at_least(2, k=self.k)
        at_least(1, pixels=self.pixels)

    def fit(self, public: Dataset, seed: int) -> KnownLeakScheme:
        """The public table's range, else [0, 1], for pad and noise."""
        low, high = 0.0, 1.0
        if public.samples.ndim != 4 and len(public):
            low, high = torch.stack(torch.aminmax(public.samples.double())).tolist()
        return self.load({"range": torch.tensor([low, high if high > low else low + 1], dtype=torch.float64)})

    def load(self, state: State) -> KnownLeakScheme:
        """The scheme that `KnownLeakScheme.state` described."""
        return KnownLeakScheme(self, state["range"])

    def bayes_guesswork(self, images: int) -> float | None:
        """Mean guesses of the best possible attack on so many rows.

        None if it is not known. The attack is on the whole release. Exact scalars, lengths and pixels differ from row
        to row: the first guess is right. In a group of k, the candidates of one released row are tried one after the
        other: (k + 1) / 2 on average. Under the pad, (n^2 + 1) / (n + 1). With noise it depends on the rows: the
        `likelihood` attack, which knows the noise, attains it.
        """
        if self.keeps == "noisy-scalar":
            return None
        fewest = self.k if images >= 2 * self.k else images  # the last group takes what is left over
        known = {"group": (fewest + 1) / 2, "nothing": (images**2 + 1) / (images + 1)}
        return known.get(self.keeps, 1.0)


@dataclass(frozen=True, eq=False)
class KnownLeakKey(SecretKey):
    """A secret: the source of all random numbers."""

    scheme: KnownLeakScheme

    def release(self, private: Dataset) -> Release:
        """Rows of shape (n, ...), float32, with one stated leak; no labels."""
        return paired(self._leak(private.samples, "release"), None)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """The same of other rows, by other random numbers."""
        return self._leak(samples, "query")

    def _places(self, width: int) -> torch.Tensor:
        """Numbers of a row, of so many, that stay as they are."""
        method = self.scheme.method
        secret = Secret.of_seed(0, "places") if method.places == "public" else self.secret.derive("places")
        return secret.stream().permutation(width)[: method.pixels]

    def _leak(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        """Of every row what is kept, `ROWS` rows at a time."""
        method, stream = self.scheme.method, self.secret.derive(call).bound_to(samples).stream()

        def each(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
            def made(part: torch.Tensor) -> torch.Tensor:
                return make(part.flatten(1).double()).reshape(part.shape).to(torch.float32)

            return by_blocks(samples, made, ROWS, draws=True)

        def shown(values: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            """Row i from values[of[i]]: a whole row, or one number throughout."""
            shape = samples.shape[1:]

            def made(part: torch.Tensor) -> torch.Tensor:
                return values[part].expand(-1, shape.numel()).reshape(len(part), *shape).to(torch.float32)

            return by_blocks(of, made, ROWS, like=samples)

        if method.keeps == "scalar":
            return each(lambda rows: _mean(rows).expand_as(rows))
        if method.keeps == "length":
            return each(lambda rows: _turned(rows, stream))
        if method.keeps == "nothing":
            return each(lambda rows: _padded(rows, self.scheme.span.tolist(), stream))
        if method.keeps == "pixels":
            places = self._places(samples.shape[1:].numel()).to(samples.device)
            return each(lambda rows: _raw_at(rows, places, stream))
        if method.keeps == "group":
            return shown(*_grouped(samples, method.k, stream))
        means = torch.cat([_mean(part.flatten(1).double()) for part in torch.split(samples, ROWS)])
        return shown(self.scheme.noise.add(means, stream), torch.arange(len(samples), device=samples.device))


@dataclass(frozen=True, eq=False)
class KnownLeakScheme(SecretScheme):
    """The method, and the rows' range `span` (2,) float64."""

    key = KnownLeakKey
    purpose = "known-leak"

    method: KnownLeak
    span: torch.Tensor

    @property
    def noise(self) -> GridNoise:
        """The noise of "noisy-scalar"."""
        return GridNoise.of(self.method.scale, float(self.span.abs().max()))

    def state(self) -> State:
        """The range."""
        return {"range": self.span}

    def mechanism(self) -> Mechanism | None:
        """Laplace noise on the row's mean, if that is kept with noise."""
        return NoisyScalar(self) if self.method.keeps == "noisy-scalar" else None


@dataclass(frozen=True, eq=False)
class NoisyScalar(Mechanism):
    """A row's code: its mean, everywhere in the released row, equally noisy."""

    scheme: KnownLeakScheme

    @property
    def scale(self) -> torch.Tensor:
        """(1,) float64."""
        return torch.tensor([self.scheme.noise.scale], dtype=torch.float64)

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, 1) float64: means on the noise's grid."""
        return self.scheme.noise.on_grid(_mean(data.samples.flatten(1).double()))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, 1) float64: the first number of each row."""
        return release.samples.flatten(1)[:, :1].double()


def _mean(rows: torch.Tensor) -> torch.Tensor:
    return rows.mean(dim=1, keepdim=True)


def _turned(rows: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Rows (n, d) of equal length, with uniform directions on the sphere."""
    drawn = stream.normal(*rows.shape).to(rows)
    lengths, own = (torch.linalg.vector_norm(vectors, dim=1, keepdim=True) for vectors in (rows, drawn))
    turned: torch.Tensor = drawn * (lengths / own)
    return turned


def _raw_at(rows: torch.Tensor, places: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Normal noise for rows (n, d), raw at the places."""
    noise = stream.normal(*rows.shape).to(rows)
    noise[:, places] = rows[:, places]
    return noise


def _grouped(samples: torch.Tensor, k: int, stream: Stream) -> tuple[torch.Tensor, torch.Tensor]:
    """Means (g, d) float64 of random groups; each row's group (n,)."""
    n, device = len(samples), samples.device
    order = stream.permutation(n).to(device)
    group = torch.empty_like(order)
    group[order] = (torch.arange(n, device=device) // k).clamp(max=max(n // k, 1) - 1)
    sums = torch.zeros(math.ceil(n / k), samples.shape[1:].numel(), dtype=torch.float64, device=device)
    for own, part in zip(torch.split(group, ROWS), torch.split(samples, ROWS), strict=True):
        sums.index_add_(0, own, part.flatten(1).double())
    return sums / torch.bincount(group, minlength=len(sums)).clamp(min=1)[:, None], group


def _padded(rows: torch.Tensor, span: list[float], stream: Stream) -> torch.Tensor:
    """Rows (n, d) in levels, every number shifted uniformly around the circle."""
    low, high = span
    levels = ((rows - low) / (high - low)).clamp(0, 1).mul(LEVELS - 1).round().long()
    pad = stream.integers(LEVELS, *rows.shape).to(rows.device)
    return low + (high - low) * ((levels + pad) % LEVELS) / (LEVELS - 1)
