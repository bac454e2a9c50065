"""Nearest neighbour: the raw row most like a released row, in pixels or in the features of a network.

Source: the plainest re-identification attack. Similarity is the cosine of centred rows: candidates and released rows
are each centred by their own mean over the set, without which rows near the mean resemble everything, noise included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from bench.nets.classifier import Course, Standardise, fast_precision, outputs, train
from bench.nets.resnet import resnet18
from bench.nets.seeded import seeded
from bench.pairs.cosine import CosineScores, apart
from bench.seeds import derive
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, View
from bench.validation import at_least, one_of


@dataclass(frozen=True)
class NearestNeighbour(Attack):
    """Compares rows as they are.

    Args:
        space: "pixels" compares the numbers of a row. "features" compares what a ResNet-18, trained on the public
            images and their labels, sees in raw and in released images.
        steps: Training steps of that network.
        width: Channels of its first stage.
    """

    name: ClassVar[str] = "nearest-neighbour"
    source: ClassVar[str] = "cosine of centred pixels or features"
    knowledge: ClassVar[str] = "the raw rows and the release; features: also the public images with their labels"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"steps": 20, "width": 16},
        "quick": {"steps": 150, "width": 32},
        "standard": {"steps": 5000, "width": 64},
        "paper": {"steps": 20_000, "width": 64},
    }

    space: Literal["pixels", "features"] = "pixels"
    steps: int = 150
    width: int = 32

    def __post_init__(self) -> None:
        one_of(("pixels", "features"), space=self.space)
        at_least(1, steps=self.steps, width=self.width)

    @property
    def needs_public(self) -> bool:
        """Features are learned from public rows."""
        return self.space == "features"

    def fit(self, view: View, seed: int) -> NearestNeighbourAttacker:
        """Train the network if there is one. Raises NotApplicable for features of tables or without public labels."""
        network = self._features(view.public, seed) if self.space == "features" else None
        return NearestNeighbourAttacker(view.candidates.samples, network)

    def _features(self, public: Dataset, seed: int) -> nn.Module:
        samples, labels = public.samples, public.labels
        if samples.ndim != 4:
            raise NotApplicable(f"space=features reads images: {public.name} is a table; use space=pixels")
        if labels is None or bool(labels.isnan().all()):
            raise NotApplicable(f"space=features trains on public labels: {public.name} has none; use space=pixels")
        c, h, w = samples.shape[1:]
        course = Course(self.steps, self.steps, 64, 1e-3, 0.05, fast_precision(samples.device))
        with seeded(derive(seed, "features"), samples.device):
            body = resnet18((c, h, w), 1, width=self.width, features=True)
            head = nn.Linear(8 * self.width, labels.shape[1])
            network = nn.Sequential(Standardise(samples), body, head).to(samples.device)
            for _ in train(network, samples, labels, course, exclusive=public.exclusive, seed=derive(seed, "order")):
                pass
        return body.eval()


@dataclass(frozen=True, eq=False)
class NearestNeighbourAttacker(Attacker):
    """The raw rows, and the network that describes rows (None: their own numbers do)."""

    candidates: Tensor
    network: nn.Module | None

    def score(self, sealed: Release) -> CosineScores:
        """Cosines of centred rows. Raises NotApplicable where raw and released rows cannot be compared."""
        raw, released = tuple(self.candidates.shape[1:]), tuple(sealed.samples.shape[1:])
        if self.network is None and raw != released:
            raise NotApplicable(
                f"space=pixels compares rows of one shape: raw rows are {raw}, released ones {released}"
            )
        if self.network is not None and (len(released) != 3 or released[0] != raw[0]):
            raise NotApplicable(f"space=features reads images of {raw[0]} channels: released rows are {released}")
        return CosineScores(*apart(self._describe(self.candidates), self._describe(sealed.samples)))

    def _describe(self, samples: Tensor) -> Tensor:
        if self.network is None:
            rows = samples.flatten(1).double()
        else:
            rows = outputs(self.network, Standardise(samples)(samples), "float32").double()
        return rows - rows.mean(dim=0, keepdim=True)
