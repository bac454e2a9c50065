"""Nearest neighbour: the most similar raw row, by pixels or network features.

Source: the plainest re-identification attack. Similarity is the cosine of centred rows: candidates and released rows
are each centred by their own mean over the set, without which rows near the mean resemble everything, noise included.
A release that is clearly the negative of the candidates is turned round (`mirrored`), and a row far beyond all others
does not draw the mean to itself (`bench.eve.outliers`). It is blind to a permutation of the numbers, and a gain or an
offset of every row's own weakens it (top-1 .55 and .17 of 64 digits): `invariants`, `leverage` and `relational` see
through those.

So many and so large images that their products would take hours are compared at a smaller side, by the means of squares
of their pixels: as large as takes `PRODUCTS` multiplications for all pairs of a release. The record's notes say at
which side. It weakens the attack: of 600 phantoms under `dp-simple[scale=10]` the right one came 41st in the mean at 64
pixels, 49th at 32 and 64th at 16; at 45, which is no whole part of 64, 60th.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

import torch

from bench.eve.outliers import tamed
from bench.pairs.score_matrices import CosineScores, apart
from bench.seeds import derive
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, View, by_blocks, rows_at
from bench.validation import at_least, one_of

PRODUCTS = 5 << 40  # minutes of a processor; 10,000 by 10,000 images of 224 x 224 pixels take fewer
ROWS = 256
LOOKED_AT, SURELY = 256, 6.0
Space = Literal["pixels", "features", "mobilenet-v2", "efficientnet-lite0"]
Describe: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


@dataclass(frozen=True)
class NearestNeighbour(Attack):
    """Compares rows as they are.

    Args:
        space: "pixels" compares the numbers of a row. "features" compares what a ResNet-18, trained on the public
            images and their labels, sees in raw and in released images. "mobilenet-v2" and "efficientnet-lite0" compare
            the last features of an ImageNet network that is installed as a package (see the extractor `package`).
        steps: Training steps of that network.
        width: Channels of its first stage.
    """

    name: ClassVar[str] = "nearest-neighbour"
    source: ClassVar[str] = "cosine of centred pixels or features"
    knowledge: ClassVar[str] = "the raw rows and the release; features: also the public images with their labels"
    relinks: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"steps": 20, "width": 16},
        "quick": {"steps": 150, "width": 32},
        "standard": {"steps": 5000, "width": 64},
        "paper": {"steps": 20_000, "width": 64},
    }

    space: Space = "pixels"
    steps: int = 150
    width: int = 32

    def __post_init__(self) -> None:
        one_of(get_args(Space), space=self.space)
        at_least(1, steps=self.steps)
        from bench.nets.convolutional_networks import LEAST_WIDTH

        at_least(LEAST_WIDTH, width=self.width)

    @property
    def needs_public(self) -> bool:
        """Features are learned from public rows."""
        return self.space == "features"

    def fit(self, view: View, seed: int) -> NearestNeighbourAttacker:
        """Train any network. Raises NotApplicable for tables' features or without public labels."""
        samples = view.candidates.samples
        if self.space not in ("pixels", "features"):
            return self._packaged(samples)
        if self.space == "features":
            if samples.ndim != 4 or samples.shape[1] != view.public.samples.shape[1]:
                raise NotApplicable(
                    f"space=features reads images like the public ones: got rows of shape {tuple(samples.shape[1:])}"
                )
            return NearestNeighbourAttacker(samples, self._features(view.public, seed), None)
        return NearestNeighbourAttacker(samples, None, smaller_sides(tuple(samples.shape), PRODUCTS))

    def _packaged(self, samples: torch.Tensor) -> NearestNeighbourAttacker:
        from bench.backbones.packages import PACKAGES, network_side

        if samples.ndim != 4:
            raise NotApplicable(f"space={self.space} reads images, and these rows are vectors: use space=pixels")
        package, side = PACKAGES[self.space], network_side(samples)
        network = package.network(side=side, batch=32, instead=", or choose space=pixels")
        notes: dict[str, int | str] = {"side that the network reads": side, "weights": package.sha256}
        return NearestNeighbourAttacker(samples, network.read, None, notes)

    def _features(self, public: Dataset, seed: int) -> Describe:
        # Here alone: pixels are compared without any network.
        from bench.nets import classifier
        from bench.nets.convolutional_networks import resnet18
        from bench.nets.training import seeded

        samples, labels = public.samples, public.labels
        if samples.ndim != 4:
            raise NotApplicable(f"space=features reads images: {public.name} is a table; use space=pixels")
        if labels is None or bool(labels.isnan().all()):
            raise NotApplicable(f"space=features trains on public labels: {public.name} has none; use space=pixels")
        c, h, w = samples.shape[1:]
        course = classifier.Course(self.steps, self.steps, 64, 1e-3, 0.05, classifier.fast_precision(samples.device))
        with seeded(derive(seed, "features"), samples.device):
            body = resnet18((c, h, w), 1, width=self.width, features=True)
            head = torch.nn.Linear(8 * self.width, labels.shape[1])
            network = torch.nn.Sequential(classifier.Standardise(samples), body, head).to(samples.device)
            for _ in classifier.train(
                network, samples, labels, course, exclusive=public.exclusive, seed=derive(seed, "order")
            ):
                pass
        body.eval()
        return lambda rows: classifier.outputs(body, classifier.Standardise(rows)(rows), "float32")


@dataclass(frozen=True, eq=False)
class NearestNeighbourAttacker(Attacker):
    """The raw rows, and how rows are described.

    Args:
        candidates: (n, ...) raw rows.
        network: Describes the rows; None: their own numbers do.
        sides: (h, w) at which images are compared by their own numbers; None: at their own.
        told: Notes on the network.
    """

    candidates: torch.Tensor
    network: Describe | None
    sides: tuple[int, int] | None
    told: Mapping[str, int | str] = field(default_factory=dict)

    def score(self, sealed: Release) -> CosineScores:
        """Cosines of centred rows. Raises NotApplicable if they cannot be compared."""
        raw, released = tuple(self.candidates.shape[1:]), tuple(sealed.samples.shape[1:])
        if self.network is None and raw != released:
            raise NotApplicable(
                f"space=pixels compares rows of one shape: raw rows are {raw}, released ones {released}"
            )
        if self.network is not None and (len(released) != 3 or released[0] != raw[0]):
            raise NotApplicable(f"a network reads images of {raw[0]} channels: released rows are {released}")
        a, b = apart(self._describe(self.candidates), self._describe(tamed(sealed.samples)))
        return CosineScores(a, -b if mirrored(a, b) else b)

    def notes(self) -> Mapping[str, int | str]:
        """Side of compared images unless it is their own; the network."""
        if self.sides is None:
            return self.told
        (h, w), (own_h, own_w) = self.sides, self.candidates.shape[2:]
        return {"compared at": f"{h} x {w} of {own_h} x {own_w} pixels"}

    def _describe(self, samples: torch.Tensor) -> torch.Tensor:
        if self.network is None:
            if self.sides is not None:
                samples = by_blocks(
                    samples, partial(torch.nn.functional.adaptive_avg_pool2d, output_size=self.sides), ROWS
                )
            rows = samples.flatten(1).double()
        else:
            rows = self.network(samples).double()
        return rows - rows.mean(dim=0, keepdim=True)


def mirrored(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if rows b (m, d) are negated rows a (n, d).

    For up to `LOOKED_AT` rows b, the largest cosine with rows a is compared with that of the negated row. Both are
    alike if b says nothing of a. The mean difference has to be `SURELY` of its standard errors below 0.
    """
    step = -(-len(b) // LOOKED_AT)
    cosines = CosineScores(a, rows_at(b, torch.arange(0, len(b), step, device=b.device))).block(
        slice(None), slice(None)
    )
    lead = cosines.amax(dim=0) + cosines.amin(dim=0)
    if len(lead) < 2:
        return False
    return float(lead.mean()) < -SURELY * float(lead.std()) / math.sqrt(len(lead))


def smaller_sides(shape: tuple[int, ...], products: int) -> tuple[int, int] | None:
    """Sides that limit all pairs' multiplications to `products`; None: their own suffice.

    Both sides are divided by one whole number; up to twice the least, one that divides both is preferred.

    >>> smaller_sides((1000, 1, 64, 32), 10**9), smaller_sides((1000, 1, 64, 32), 10**10), smaller_sides((1000, 9), 1)
    ((32, 16), None, None)
    >>> smaller_sides((1000, 1, 224, 224), 5 * 10**9), smaller_sides((1000, 1, 31, 31), 10**8)
    ((56, 56), (7, 7))
    """
    if len(shape) != 4:
        return None
    n, c, h, w = shape
    least = math.sqrt(n * n * c * h * w / products)
    if least <= 1:
        return None
    whole = range(math.ceil(least), 2 * math.ceil(least) + 1)
    part = next((number for number in whole if h % number == 0 and w % number == 0), whole[0])
    return max(1, h // part), max(1, w // part)
