"""InstaHide as its authors train with it: each image in many mixtures, a fresh set in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.randomness import Secret
from bench.types import Dataset, Key, Method, Release, Scheme, State
from methods.instahide import InstaHide


@dataclass(frozen=True)
class ManyMixtures(Method):
    """Releases of all epochs together: `epochs` rows made mainly of each image."""

    name: ClassVar[str] = "many-mixtures"
    source: ClassVar[str] = "Carlini et al. 2021, section 3: a mixture of each image in every epoch"
    encodes_labels: ClassVar[bool] = True

    epochs: int = 12
    k: int = 3

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return ManyScheme(self, InstaHide(k=self.k).fit(public, seed))

    def load(self, state: State) -> Scheme:
        return ManyScheme(self, InstaHide(k=self.k).load(state))


@dataclass(frozen=True, eq=False)
class ManyScheme(Scheme):
    """One scheme of InstaHide."""

    method: ManyMixtures
    scheme: Scheme

    def sample_key(self, secret: Secret) -> Key:
        return ManyKeys(
            [self.scheme.sample_key(secret.derive("epoch", number)) for number in range(self.method.epochs)]
        )

    def load_key(self, state: State) -> Key:
        raise NotImplementedError

    def state(self) -> State:
        return self.scheme.state()


@dataclass(frozen=True, eq=False)
class ManyKeys(Key):
    """A key for each epoch."""

    keys: list[Key]

    def state(self) -> State:
        return {}

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        return self.keys[0].query(samples)

    def release(self, private: Dataset) -> Release:
        n, links, labels, primary = len(private), list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()
        releases = [key.release(private) for key in self.keys]
        for number, release in enumerate(releases):
            assert release.links is not None
            assert release.primary is not None
            links.append(release.links + torch.tensor([0, number * n]))
            primary.append(release.primary)
            labels += [] if release.labels is None else [release.labels]
        samples = torch.cat([release.samples for release in releases])
        return Release(samples, torch.cat(labels) if labels else None, torch.cat(links), torch.cat(primary))
