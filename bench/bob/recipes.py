"""Bob's plan, recipes, views of released rows, and trained models.

A recipe is an architecture, its view of a row, and its training parameters. Each view counters a way to hide. Means of
squares of pixels survive independent noise, and reduce a secret map that is linear by patch to what an L2 penalty can
handle. Magnitudes survive random signs. Sorted patches survive shuffling within patches; bags of patches, a mean over
patches of random features (Rahimi and Recht 2007), survive shuffling of patches. Whitened patches undo the unequal
scales of a secret map's principal components.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast, get_args

import torch

from bench.nets.classifier import Course, Precision, Standardise, outputs
from bench.nets.patches import cut, fitting_patch
from bench.seeds import derive, generator
from bench.validation import at_least, between

POOLS = (2, 4, 8)
COARSE = 4
BAG_FEATURES = 1024
SHRINKAGE = 0.05
SMALLEST = 1e-12
"""Lower clamp of a variance."""
LARGEST = 2**28
"""Most numbers of a view of all rows (1 GiB); larger views are left out."""

View = Callable[[torch.Tensor], torch.nn.Module]
"""From released rows (m, ...) to a module from rows (n, ...) to vectors (n, d)."""


class Pooled(torch.nn.Module):
    """Means of pixels, or of magnitudes, over squares of `side` pixels."""

    def __init__(self, side: int, *, magnitudes: bool = False) -> None:
        super().__init__()
        self.side, self.magnitudes = side, magnitudes

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, d), with smaller squares at edges."""
        values = rows.abs() if self.magnitudes else rows
        return (
            values if self.side == 1 else torch.nn.functional.avg_pool2d(values, self.side, ceil_mode=True)
        ).flatten(1)


class SortedPatches(torch.nn.Module):
    """The numbers of each patch of `side` pixels in ascending order."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c * h * w)."""
        return cut(rows, self.side).sort(dim=2).values.flatten(1)


class PatchBag(torch.nn.Module):
    """Mean random ReLU features of an image's standardised patches."""

    mean: torch.Tensor
    maps: torch.Tensor
    offsets: torch.Tensor

    def __init__(self, samples: torch.Tensor, side: int) -> None:
        super().__init__()
        self.side = side
        patches = cut(samples, side)
        random, width = generator(derive(0, "bag of patches")), patches.shape[2]
        self.register_buffer("mean", patches.mean(dim=(0, 1)))
        scale = (patches - self.mean).square().mean().sqrt().clamp_min(1e-30)
        maps = torch.randn(width, BAG_FEATURES, generator=random) / width**0.5
        self.register_buffer("maps", maps.to(samples) / scale)
        self.register_buffer("offsets", torch.randn(BAG_FEATURES, generator=random).to(samples))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, BAG_FEATURES)."""
        return torch.cat([self._bag(part) for part in torch.split(rows, 256)])

    def _bag(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.relu((cut(rows, self.side) - self.mean) @ self.maps + self.offsets).mean(dim=1)


class WhitenedPatches(torch.nn.Module):
    """Nearly equalised principal components of each place's patches, shrunk to mean variance."""

    mean: torch.Tensor
    maps: torch.Tensor

    def __init__(self, samples: torch.Tensor, side: int) -> None:
        super().__init__()
        self.side = side
        patches = cut(samples, side).transpose(0, 1).double()  # by place
        mean = patches.mean(dim=1, keepdim=True)
        centred = patches - mean
        sizes, parts = torch.linalg.eigh(centred.transpose(1, 2) @ centred / len(samples))
        floor = SHRINKAGE * sizes.mean(dim=1, keepdim=True)
        self.register_buffer("mean", mean.to(samples))
        maps = parts / (sizes.clamp_min(0) + floor).clamp_min(SMALLEST).sqrt()[:, None, :]
        self.register_buffer("maps", maps.to(samples))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c * h * w)."""
        places = (cut(rows, self.side).transpose(0, 1) - self.mean) @ self.maps
        return places.transpose(0, 1).flatten(1)


def views(samples: torch.Tensor) -> Mapping[str, View]:
    """Useful views of released images or vectors, by name."""
    candidates = every_view(samples)
    if samples.ndim == 2:
        return candidates
    signed = bool((samples < 0).any())  # else magnitudes are the pixels
    few = samples.numel() <= LARGEST
    return {
        name: view
        for name, view in candidates.items()
        if (signed or "magnitudes" not in name) and (few or "means" in name)
    }


def every_view(samples: torch.Tensor) -> Mapping[str, View]:
    """All views of rows of this shape, whichever another key chose."""
    if samples.ndim == 2:
        return {"columns": Standardise}
    named_views: dict[str, View] = {"pixels": lambda rows: Pooled(1)}
    height, across = samples.shape[2:]
    for side in POOLS:
        if min(height, across) >= 2 * side:
            named_views[f"{side}x{side} means"] = lambda rows, side=side: Pooled(side)  # type: ignore[misc]
    named_views["magnitudes"] = lambda rows: Pooled(1, magnitudes=True)
    if min(height, across) >= 2 * COARSE:
        named_views[f"{COARSE}x{COARSE} means of magnitudes"] = lambda rows: Pooled(COARSE, magnitudes=True)
    patch = fitting_patch(height, across)
    if patch is not None:
        half = fitting_patch(height, across, max(2, patch // 2)) or patch
        named_views[f"sorted {half}x{half} patches"] = lambda rows: SortedPatches(half)
        named_views[f"whitened {patch}x{patch} patches"] = lambda rows: WhitenedPatches(rows, patch)
        named_views[f"bag of {patch}x{patch} patches"] = lambda rows: PatchBag(rows, patch)
    return named_views


Architecture = Literal["linear", "resnet18", "sau", "strided"]


@dataclass(frozen=True)
class Recipe:
    """An architecture, its view of rows, and its training.

    Args:
        architecture: A linear model or a network.
        view: What it reads: a name of `bench.bob.recipes`, or "rows" for networks, which read rows as they are.
        weight_decay: Of a network; None for linear models, whose penalties are all tried.
        dropout: Of a network; 0 for linear models.
        augmented: A network sees rows shifted and mirrored at random.
        restart: Number of the start, from 0: restarts differ by their random numbers alone.
    """

    architecture: Architecture
    view: str = "rows"
    weight_decay: float | None = None
    dropout: float = 0.0
    augmented: bool = False
    restart: int = 0

    def __str__(self) -> str:
        words = [self.architecture, f"on {self.view}"]
        words += [] if self.weight_decay is None else [f"weight decay {self.weight_decay:g}, dropout {self.dropout:g}"]
        words += ["shifted and mirrored"] if self.augmented else []
        words += [f"restart {self.restart}"] if self.restart else []
        return ", ".join(words)


@dataclass(frozen=True)
class Choice:
    """A recipe, and the point of its training that was taken.

    Args:
        recipe: The trained recipe.
        at: A linear model's penalty; a network's share of its course.
    """

    recipe: Recipe
    at: float


@dataclass(frozen=True)
class Shortlist:
    """Recipes to train under further keys, from trials under the first.

    Args:
        recipes: The best three by dev rows, which choose between them under each key; linear models stand first.
        outsider: Choice by held-out released rows under the first key; None if they could not choose.
    """

    recipes: tuple[Recipe, ...]
    outsider: Choice | None


SMOOTH = 0.5
FARTHEST = 16
"""Largest shift: a side divided by this."""


def bears_shifts(samples: torch.Tensor) -> bool:
    """True if images are smooth: neighbouring pixels correlate above one half."""
    if samples.ndim != 4 or min(samples.shape[2:]) < FARTHEST:
        return False
    rest = samples - samples.mean(dim=0)
    both = (rest[..., 1:] * rest[..., :-1]).mean()
    alone = (rest[..., 1:].square().mean() * rest[..., :-1].square().mean()).sqrt()
    return bool(both > SMOOTH * alone)


def shifted(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Images randomly shifted with repeated edges, half of them mirrored."""
    b, c, h, w = images.shape
    numbers = partial(torch.arange, device=images.device)
    indices = []
    for length in (h, w):
        reach = length // FARTHEST
        shift = torch.randint(-reach, reach + 1, (b, 1), generator=random, device=random.device)
        indices.append((numbers(length) + shift).clamp(0, length - 1))
    down, across = indices
    mirrored = torch.rand(b, 1, generator=random, device=random.device) < 0.5
    across = torch.where(mirrored, across.flip(1), across)
    place = numbers(b)[:, None, None, None], numbers(c)[None, :, None, None]
    return images[(*place, down[:, None, :, None], across[:, None, None, :])]


SAU_STEPS = 2
"""Length of a SAU's training relative to a ResNet's: it learns more slowly, at cheaper steps."""
RATES: Mapping[Architecture, float] = {"resnet18": 3e-3, "sau": 2e-3, "strided": 5e-4}
"""Peak rates of networks; that of the strided one is Table 1's of the CADP paper."""


@dataclass(frozen=True)
class BobPlan:
    """Sizes, recipes and lengths of Bob's trainings.

    Args:
        architectures: Networks read images and are left out for tables. "strided" is the CADP paper's classifier.
        epochs: Passes of a network over the release, or more, until it took `least_steps`.
        least_steps: Fewest gradient steps of a ResNet; a SAU takes twice as many.
        steps: Upper bound on gradient steps a training; None for no bound.
        batch: Rows a step.
        width: Channels of the ResNet's first stage (64 is the usual ResNet-18).
        sau_width, sau_depth: Size of the SAU.
        weight_decays, dropouts: Values to try with each network.
        augment: Try networks on shifted and mirrored images too, if released rows are smooth.
        restarts: Starts of each network.
        hold_out: Share of the released rows held out at first, for a second choice without other people's labels;
            None makes no such choice.
        patient: Networks that fall behind finish their training.
        precision: Of networks; None takes the faster one of the device. The choice is kept in `Bob.precision`.
    """

    architectures: tuple[Architecture, ...] = ("linear", "resnet18", "sau")
    epochs: int = 12
    least_steps: int = 0
    steps: int | None = None
    batch: int = 64
    width: int = 64
    sau_width: int = 128
    sau_depth: int = 3
    weight_decays: tuple[float, ...] = (0.05,)
    dropouts: tuple[float, ...] = (0.0,)
    augment: bool = False
    restarts: int = 1
    hold_out: float | None = None
    patient: bool = True
    precision: Precision | None = None

    def __post_init__(self) -> None:
        at_least(2, batch=self.batch)
        at_least(0, least_steps=self.least_steps)
        at_least(1, epochs=self.epochs, steps=self.steps, restarts=self.restarts)
        at_least(1, width=self.width, sau_width=self.sau_width, sau_depth=self.sau_depth)
        between(0, 1, hold_out=self.hold_out)
        known = get_args(Architecture)
        if set(self.architectures) - set(known) or not self.architectures:
            raise ValueError(f"architectures must be some of {', '.join(known)}; got {self.architectures}")
        if not self.weight_decays or not self.dropouts:
            raise ValueError("weight_decays and dropouts must each hold at least one value")

    def recipes(self, samples: torch.Tensor) -> tuple[Recipe, ...]:
        """All recipes for rows like these, linear models first."""
        recipes = [Recipe("linear", view) for view in views(samples)] if "linear" in self.architectures else []
        for name in self.architectures:
            if name == "linear" or not _reads(name, samples):
                continue
            augmentations = (False, True) if self.augment and name == "resnet18" and bears_shifts(samples) else (False,)
            recipes += [
                Recipe(name, "rows", decay, dropout, augmented, restart)
                for decay, dropout, augmented, restart in itertools.product(
                    self.weight_decays, self.dropouts, augmentations, range(self.restarts)
                )
            ]
        return tuple(recipes)

    def course(self, recipe: Recipe, rows: int, precision: Precision) -> Course:
        """Training course of a network on that many labelled rows."""
        longer = SAU_STEPS if recipe.architecture == "sau" else 1
        batches = max(1, rows // self.batch)
        epochs = max(self.epochs, -(-longer * self.least_steps // batches))
        assert recipe.weight_decay is not None
        return Course(epochs, self.steps, self.batch, RATES[recipe.architecture], recipe.weight_decay, precision)


def _reads(name: Architecture, samples: torch.Tensor) -> bool:
    if name == "sau":
        return samples.ndim == 4 and fitting_patch(samples.shape[2], samples.shape[3]) is not None
    return samples.ndim == 4


@dataclass(frozen=True)
class Best:
    """The best AUC of a training on some rows, at a `Choice.at`."""

    auc: float
    at: float


@dataclass(frozen=True)
class Trial:
    """One training: its best on dev and held-out rows, and its end."""

    recipe: Recipe
    dev: Best
    held_out: Best | None
    stopped: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model, its view or standardisation included; linear ones are float32."""

    choice: Choice
    network: torch.nn.Module
    exclusive: bool
    precision: Precision

    def predict(self, samples: torch.Tensor) -> torch.Tensor:
        """Probabilities (n, k), float64, in the release's own label code (see `Key.decode`)."""
        return probabilities(outputs(self.network, samples, self.precision).double(), self.exclusive)


@dataclass(frozen=True, eq=False)
class Vote:
    """Several models: the mean of their log odds, over their `scales`."""

    models: tuple[Model, ...]
    scales: tuple[float, ...]

    @property
    def choice(self) -> Choice:
        """The choice of the first, the best by itself."""
        return self.models[0].choice

    def predict(self, samples: torch.Tensor) -> torch.Tensor:
        """As `Model.predict`."""
        mean = sum(
            log_odds(model.predict(samples)) / scale for model, scale in zip(self.models, self.scales, strict=True)
        )
        return probabilities(cast(torch.Tensor, mean) / len(self.models), self.models[0].exclusive)


def log_odds(predicted: torch.Tensor) -> torch.Tensor:
    """Of probabilities (n, k), clamped to a billionth."""
    return torch.logit(predicted, eps=1e-9)


def probabilities(logits: torch.Tensor, exclusive: bool) -> torch.Tensor:
    """Of classes (softmax) or findings (sigmoid), from logits (n, k)."""
    return logits.softmax(dim=1) if exclusive else logits.sigmoid()
