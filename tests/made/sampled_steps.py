"""Private trainings without a network: noisy sums of sampled, clipped gradients, at the edge of their claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.randomness import Secret
from bench.seeds import generator
from bench.statistics.sampled_gaussian import SampledGaussian
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, PrivateStep, Release, Scheme, State

RATE, STEPS, DELTA, WIDTH = 0.25, 16, 1e-5, 320


@dataclass(frozen=True)
class SampledSteps(Scheme):
    """Steps of a sampled Gaussian mechanism that claims what it keeps, or `less`."""

    noise: float
    replaced: bool = False
    less: float = 1.0

    def sample_key(self, secret: Secret) -> Key:
        return SampledStepsKey(self, secret)

    def load_key(self, state: State) -> Key:
        return SampledStepsKey(self, Secret.load(state["secret"]))

    def claim(self) -> PrivacyClaim:
        epsilon = self.less * SampledGaussian(RATE, STEPS, self.replaced).epsilon(self.noise, DELTA)
        return PrivacyClaim(
            "image", epsilon, DELTA, "none", "a test", neighbours="replaced" if self.replaced else "added",
            family="Gaussian", sampling_rate=RATE, steps=STEPS,
        )  # fmt: skip


@dataclass(frozen=True)
class SampledStepsKey(Key):
    scheme: SampledSteps
    secret: Secret

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("steps alone are shown")

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        random = generator(int(self.secret.stream("steps").integers(1 << 32)))
        clipped = torch.nn.functional.normalize(gradients, dim=1)
        for _ in range(STEPS):
            drawn = clipped[torch.rand(len(clipped), generator=random) < RATE].sum(dim=0)
            total = drawn + self.scheme.noise * torch.randn(clipped.shape[1], generator=random)
            see(PrivateStep(total, gradients[:0], 1.0))

    def state(self) -> State:
        return {"secret": self.secret.tensor()}
