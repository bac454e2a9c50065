"""Private trainings without a network: noisy sums of sampled, clipped gradients, at the edge of their claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.owner.secret_key import SecretKey, SecretScheme
from bench.seeds import generator
from bench.statistics.sampled_gaussian import SampledGaussian
from bench.types import Dataset, NotApplicable, PrivacyClaim, PrivateStep, Release

RATE, STEPS, DELTA, WIDTH = 0.25, 16, 1e-5, 320


@dataclass(frozen=True, eq=False)
class SampledStepsKey(SecretKey):
    scheme: SampledSteps

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("steps alone are shown")

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        random = generator(int(self.secret.stream("steps").integers(1 << 32)))
        clipped = torch.nn.functional.normalize(gradients, dim=1)
        for _ in range(STEPS):
            drawn = clipped[torch.rand(len(clipped), generator=random) < RATE].sum(dim=0)
            total = drawn + self.scheme.noise * torch.randn(clipped.shape[1], generator=random)
            see(PrivateStep(total, gradients[:0], 1.0))


@dataclass(frozen=True)
class SampledSteps(SecretScheme):
    """Steps of a sampled Gaussian mechanism that claims what it keeps, or `less`."""

    key: ClassVar[type[SecretKey]] = SampledStepsKey
    purpose: ClassVar[str] = "steps"

    noise: float
    replaced: bool = False
    less: float = 1.0

    def claim(self) -> PrivacyClaim:
        epsilon = self.less * SampledGaussian(RATE, STEPS, self.replaced).epsilon(self.noise, DELTA)
        return PrivacyClaim(
            "image", epsilon, DELTA, "none", "a test", neighbours="replaced" if self.replaced else "added",
            family="Gaussian", sampling_rate=RATE, steps=STEPS,
        )  # fmt: skip
