"""Distilled: a few images that networks read as all private ones.

Source: Zhao and Bilen, Dataset Condensation with Distribution Matching (WACV 2023, arXiv 2110.04181), section 3, and
the authors' code. Released images S start as private rows, and are changed by gradient descent on

    sum over classes c of | mean of psi(A(x)) over private rows x of c - mean of psi(A(s)) over released rows s of c |^2

with a new random network psi and one random augmentation A in every step. Bob trains on S in place of all rows. There
are no links: a released row is made of its whole class.

No guarantee comes with it. Dong, Zhao and Lyu (Privacy for Free, ICML 2022) argued that such a release hides who was
in the data; Carlini, Feldman and Nasr (No Free Lunch in "Privacy for Free", 2022) dispute theory and measurement. The
questions to ask are those of membership and of near copies: `start="rows"`, the authors' default, publishes changed
copies of `per_class` private rows a class.

Differences from the paper and the code:
- Labels that may come together have no classes. Each finding has two groups, its yes and its no, and a released row
  stands in one of them for every finding that it has a label of. Classes that exclude each other are as in the paper.
- One augmentation moves, turns, scales, brightens and adds contrast at once; nothing is mirrored or cut out, for a
  mirrored chest is another one. The authors draw one of six kinds.
- Blocks of the network leave 4 pixels or more: 3 for 32 pixels as in the paper, 4 for 64.
- Pixels are standardised by constants in place of the data's own mean and deviation, and end within 0 and 1.
- The paper's size is the preset `paper`: 128 channels, batches of 256, 20,000 steps, 50 rows a class.
- Classes, and how many rows they have up to `per_class`, are published, as are the labels of the rows it starts from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.nets.convolutional_networks import usual_depth
from bench.nets.training import start
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.progress import report
from bench.randomness import Stream
from bench.types import Dataset, Method, NotApplicable, Parameter, Release, State
from bench.validation import at_least, one_of, positive_and_finite

MIDDLE, SPREAD = 0.5, 0.25
"""Of pixels, as networks read them."""
MOMENTUM = 0.5
MOVED, TURNED, SCALED, LIGHT = 0.125, math.radians(15), 1.2, 0.5
"""Largest augmentation: shares of half a side, radians, times, and deviations of brightness and shares of contrast."""


@dataclass(frozen=True)
class Distilled(Method):
    """Images matched to private rows in the features of random networks.

    Args:
        per_class: Released rows for each class (for each answer to each finding), at most the rows that it has.
        start: The released images at first: "rows" of the class, as the authors do, or "noise".
        width: Channels of the random networks.
        steps: Networks that are drawn, one for each step.
        batch: Private rows of each class in a step, at most.
        learning_rate: Of gradient descent on standardised pixels.
    """

    name: ClassVar[str] = "distilled"
    source: ClassVar[str] = "Zhao and Bilen 2023 (distribution matching), and the authors' code"
    needs_public: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"per_class": 4, "width": 8, "steps": 3, "batch": 16},
        "first-look": {"width": 16, "steps": 200, "batch": 32},
        "paper": {"per_class": 50, "width": 128, "steps": 20_000, "batch": 256},
    }

    per_class: int = 10
    start: Literal["rows", "noise"] = "rows"
    width: int = 32
    steps: int = 1000
    batch: int = 64
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        at_least(1, per_class=self.per_class, width=self.width, steps=self.steps, batch=self.batch)
        one_of(("rows", "noise"), start=self.start)
        positive_and_finite(learning_rate=self.learning_rate)

    def fit(self, public: Dataset, seed: int) -> DistilledScheme:
        """Nothing to learn. Raises NotApplicable for tables."""
        if public.samples.ndim != 4:
            raise NotApplicable(f"distilled matches images in the features of networks: {public.name} is a table")
        return DistilledScheme(self)

    def load(self, state: State) -> DistilledScheme:
        """The scheme, which has no state."""
        return DistilledScheme(self)

    def network(self, shape: tuple[int, ...]) -> torch.nn.Sequential:
        """Images (n, c, h, w) to features (n, d).

        Each block is a convolution, norms of each channel by itself, and means of 2 x 2 pixels.
        """
        layers: list[torch.nn.Module] = []
        channels, height, across = shape
        for _ in range(usual_depth(height, across)):
            layers += [
                torch.nn.Conv2d(channels, self.width, 3, padding=1), torch.nn.GroupNorm(self.width, self.width),
                torch.nn.ReLU(), torch.nn.AvgPool2d(2, ceil_mode=True),
            ]  # fmt: skip
            channels = self.width
        return torch.nn.Sequential(*layers, torch.nn.Flatten())


@dataclass(frozen=True, eq=False)
class DistilledKey(SecretKey):
    """A secret: the source of networks, batches, augmentations and first images."""

    scheme: DistilledScheme

    def release(self, private: Dataset) -> Release:
        """Distilled images (m, c, h, w) with their labels, unlinked.

        Raises:
            NotApplicable: Tables, or no row with a known label.
            ValueError: Rows that are not finite.
            FloatingPointError: The descent diverged.
        """
        method, device = self.scheme.method, private.samples.device
        if private.samples.ndim != 4:
            raise NotApplicable(f"distilled matches images in the features of networks: {private.name} is a table")
        groups = _groups(private.labels, len(private), exclusive=private.exclusive)
        if not groups:
            raise NotApplicable(f"distilled matches rows of a class: no row of {private.name} has a known label")
        first = self.secret.stream("first")
        chosen = torch.cat([rows[first.permutation(len(rows))[: method.per_class]] for rows in groups])
        chosen = torch.unique(chosen)
        begun = private.take(chosen[first.permutation(len(chosen))].to(device))
        bad = int((~begun.samples.isfinite()).flatten(1).any(dim=1).sum())
        if bad:
            raise ValueError(f"rows must be finite: {bad} of {len(begun)} rows of {private.name} are not")
        images = (begun.samples[:] - MIDDLE) / SPREAD
        if method.start == "noise":
            images = first.normal(*images.shape).to(images)
        samples = self._matched(images, private, groups, _groups(begun.labels, len(begun), exclusive=private.exclusive))
        return Release((samples * SPREAD + MIDDLE).clamp(0, 1), begun.labels, None)

    def _matched(
        self, images: torch.Tensor, private: Dataset, groups: list[torch.Tensor], own: list[torch.Tensor]
    ) -> torch.Tensor:
        """Images (m, c, h, w) after the descent, standardised.

        `groups` are rows of the private ones, and `own` of the images, of each class.
        """
        method = self.scheme.method
        images = images.clone().requires_grad_()
        optimiser = torch.optim.SGD([images], lr=method.learning_rate, momentum=MOMENTUM)
        network = method.network(tuple(images.shape[1:])).to(images.device).requires_grad_(False)
        weights, batches, views = (self.secret.stream(name) for name in ("networks", "batches", "views"))
        for step in range(method.steps):
            start(network, weights)
            loss = images.new_zeros(())
            for rows, released in zip(groups, own, strict=True):
                drawn = rows[batches.permutation(len(rows))[: method.batch]].to(images.device)
                place, contrast, light = _view(views)
                raw = (private.take(drawn).samples[:] - MIDDLE) / SPREAD
                both = torch.cat((raw, images[released.to(images.device)]))
                seen = torch.nn.functional.grid_sample(
                    both, torch.nn.functional.affine_grid(
                        place.to(both).expand(len(both), 2, 3), list(both.shape), align_corners=False
                    ), padding_mode="border", align_corners=False,
                ) * contrast + light  # fmt: skip
                features = network(seen)
                loss = loss + (features[: len(raw)].mean(dim=0) - features[len(raw) :].mean(dim=0)).square().sum()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if (step + 1) % max(1, method.steps // 20) == 0:
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise FloatingPointError(f"the descent diverged in step {step + 1}: lower learning_rate")
                report(f"distilled, distance {value:.4g}, step", step + 1, method.steps)
        return images.detach()


@dataclass(frozen=True)
class DistilledScheme(SecretScheme):
    """The parameters: nothing else is shared."""

    key = DistilledKey
    purpose = "distilled"

    method: Distilled

    def notes(self) -> Mapping[str, int | float | str]:
        """Steps against the paper's."""
        return {"steps, of the paper's 20,000": self.method.steps}


def _groups(labels: torch.Tensor | None, n: int, *, exclusive: bool) -> list[torch.Tensor]:
    """Rows (int64) of each class or answer; none empty.

    All n rows are one group if there are no labels (n, k).
    """
    if labels is None or not labels.shape[1]:
        return [torch.arange(n)]
    answers = (1,) if exclusive else (1, 0)
    members = [(labels[:, k] == answer).nonzero()[:, 0].cpu() for k in range(labels.shape[1]) for answer in answers]
    return [rows for rows in members if len(rows)]


def _view(stream: Stream) -> tuple[torch.Tensor, float, float]:
    """An augmentation: places (2, 3), contrast, light."""
    turn, size, *moved, contrast, light = (2 * stream.uniform(6) - 1).tolist()
    angle, scale = turn * TURNED, SCALED**size
    cos, sin = scale * math.cos(angle), scale * math.sin(angle)
    place = torch.tensor(((cos, -sin, moved[0] * MOVED), (sin, cos, moved[1] * MOVED)))
    return place, 1 + LIGHT * contrast, LIGHT * light
