"""A fitted CADP: a public flow, its noise, and keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from bench.randomness import Secret
from bench.types import Dataset, Key, PrivacyClaim, Release, Scheme, State, by_blocks, paired
from methods.cadp_mechanism import NormedLatent, Variant, claim


@dataclass(frozen=True, eq=False)
class CADPScheme(Scheme):
    """A trained flow, as its state, and its noise."""

    learned: State
    noise: NormedLatent
    variant: Variant
    epsilon: float

    def sample_key(self, secret: Secret) -> CADPKey:
        """A key with a noise stream of its own."""
        return CADPKey(self, secret.derive("cadp"))

    def load_key(self, state: State) -> CADPKey:
        """The key that `CADPKey.state` described."""
        return CADPKey(self, Secret.load(state["secret"]))

    def state(self) -> State:
        """The flow's weights, sizes, conditions, and likelihood of held-out rows."""
        return self.learned

    def claim(self) -> PrivacyClaim:
        """The paper's epsilon, and the bound that follows from norm and noise."""
        return claim(self.noise, self.variant, self.epsilon)

    def mechanism(self) -> NormedLatent:
        """Latents of norm s with Laplace noise."""
        return self.noise

    def notes(self) -> Mapping[str, int | float | str]:
        """Norm, noise, the flow's fit to held-out public rows, its training."""
        training, held, nats, bits, steps = self.learned["judged"].tolist()
        fit = ("nats per dimension", nats) if math.isnan(bits) else ("bits per dimension", bits)
        return {
            "sensitivity s": self.noise.norm,
            "noise scale b": self.noise.noise_scale,
            "training steps": int(steps),
            "public rows trained on": int(training),
            "held-out public rows": int(held),
            fit[0]: round(fit[1], 4),
        }


@dataclass(frozen=True, eq=False)
class CADPKey(Key):
    """A secret; with rows and condition it chooses a release's stream."""

    scheme: CADPScheme
    secret: Secret

    def release(self, private: Dataset) -> Release:
        """Rows with noise, labels as they are.

        Equal rows get the same noise again; other rows get new noise. New rows reach Bob, who trains a model on the
        release, as they are, as in the paper.
        """
        noise = self.scheme.noise
        condition = noise.conditions.read(private.samples, private.labels, private.findings)
        secret = self.secret.derive("release").bound_to(private.samples)
        if condition is not None:
            secret = secret.derive("condition").bound_to(condition)
        shown, stream = private, secret.stream()
        if noise.drawn:
            drawn = noise.conditions.drawn(private.samples, secret.stream("columns").uniform)
            shown = replace(private, samples=drawn)

        def obfuscate(index: torch.Tensor) -> torch.Tensor:
            blurred = noise.gridded.add(noise.locate(private.take(index)), stream)
            return noise.rebuild(blurred, shown.take(index))

        every = torch.arange(len(private), device=private.samples.device)
        rows = by_blocks(every, obfuscate, noise.together(stream), like=private.samples, draws=True)
        return paired(rows, private.labels)

    def state(self) -> State:
        """The secret, uint8 (32,)."""
        return {"secret": self.secret.tensor()}
