"""Constant: every released row is the mean of the public rows.

The reference row for releases that forget their rows. Of the private rows only their number and the proportions of
their labels count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.owner.generator_state import LabelMix, check_names, check_tensors
from bench.randomness import Secret
from bench.types import Dataset, Generator, Key, Method, Release, Role, Scheme, State


@dataclass(frozen=True)
class Constant(Method):
    """A release without private rows: attacks on membership must sit at chance."""

    name: ClassVar[str] = "constant"
    role: ClassVar[Role | None] = "forgets its rows"
    source: ClassVar[str] = "reference row: the mean of the public rows, again and again"
    needs_public: ClassVar[bool] = False
    encodes_labels: ClassVar[bool] = True

    def fit(self, public: Dataset, seed: int) -> ConstantScheme:
        """The mean of the public rows; zeros if there are none."""
        if not len(public):
            return ConstantScheme(public.samples.new_zeros(public.samples.shape[1:]))
        return ConstantScheme(public.samples.double().mean(dim=0).to(public.samples.dtype))

    def load(self, state: State) -> ConstantScheme:
        """The scheme that `ConstantScheme.state` described."""
        return ConstantScheme(state["mean"])


@dataclass(frozen=True, eq=False)
class ConstantScheme(Scheme):
    """The public mean, or zeros: (c, h, w) or (d,), float32."""

    mean: torch.Tensor

    def sample_key(self, secret: Secret) -> ConstantKey:
        """The key, whatever the seed."""
        return ConstantKey(self.mean)

    def load_key(self, state: State) -> ConstantKey:
        """The key, which has no state."""
        return ConstantKey(self.mean)

    def load_generator(self, state: State) -> ConstantGenerator:
        """The generator that `ConstantGenerator.state` described. Raises ValueError for anything else."""
        check_names(state, {"mean", "classes", "proportions"})
        check_tensors(state, {"mean": tuple(self.mean.shape)})
        return ConstantGenerator(state["mean"], LabelMix.load(state))

    def state(self) -> State:
        """The mean."""
        return {"mean": self.mean}


@dataclass(frozen=True, eq=False)
class ConstantKey(Key):
    """Nothing secret."""

    mean: torch.Tensor

    def release(self, private: Dataset) -> Release:
        """A copy of the mean for each private row; labels by class."""
        mix, number = LabelMix.of(private.labels, private.samples)
        generator = ConstantGenerator(self.mean.to(private.samples.device), mix)
        release = generator.rows(number.sort().values)
        return Release(release.samples, release.labels, None, generator=generator)

    def state(self) -> State:
        """Empty."""
        return {}


@dataclass(frozen=True, eq=False)
class ConstantGenerator(Generator):
    """The mean (...) with labels drawn from `mix`."""

    mean: torch.Tensor
    mix: LabelMix

    def sample(self, count: int, seed: int) -> Release:
        """`count` copies of the mean. Raises ValueError for a count below 1."""
        return self.rows(self.mix.draw(count, Secret.of_seed(seed).stream("classes")))

    def rows(self, number: torch.Tensor) -> Release:
        """A copy of the mean for each of the classes (m,) int64."""
        samples = self.mean.expand(len(number), *self.mean.shape).clone()
        return Release(samples, self.mix.labels(number), None)

    def state(self) -> State:
        """The mean, classes and proportions."""
        return {"mean": self.mean, **self.mix.state()}
