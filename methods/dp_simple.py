"""DP-Simple: independent Laplace noise on every pixel.

Source: Yala et al., Syfer (2022), section 5 (diversity 10, 20, 30); by epsilon, the image-domain local differential
privacy of the DP-GLOW paper (noise scale = range * pixels / epsilon).

Differences from the paper: its pixel range is unstated. The order of its results shows that the noise scale is in units
of standardised pixels, not of 0-255; rows are therefore standardised by the mean and standard deviation of the public
set (one number a channel, or a table's column) and released so. Rows are clipped to their known range first (`clip`):
images to [0, 1], where they lie anyway; the columns of a table to the public minimum and maximum. Labels are released
as they are, outside the claim. Rows are rounded to a grid of a 65,536th of the noise's scale or less, and the noise is
the discrete Laplace distribution on it: real noise, in floating point, tells rows apart by the numbers that it cannot
reach (Mironov 2012).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench.owner.grid_noise import NOTHING_LEFT, GridNoise
from bench.owner.secret_key import NoiseScheme
from bench.randomness import Stream
from bench.types import CAVEAT, Dataset, Mechanism, Method, NotApplicable, PrivacyClaim, Release, State
from bench.validation import positive_and_finite

DEFAULT_SCALE = 10.0


@dataclass(frozen=True)
class DPSimple(Method):
    """Laplace noise, by scale or by epsilon.

    At most one of the two is given; with neither, the scale is 10.

    Args:
        scale: The noise's scale b (its standard deviation is b times the root of 2) in standardised pixels.
        epsilon: Bound for one whole image: b = L1 sensitivity / epsilon.
        clip: Clip rows to their known range. Without it no finite epsilon holds.
    """

    name: ClassVar[str] = "dp-simple"
    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 5; by epsilon: the DP-GLOW paper's image-domain baseline"
    claims: ClassVar[str] = "epsilon-differential privacy per image: L1 sensitivity (range x pixels) / scale"

    unlearned: ClassVar[frozenset[str]] = frozenset({"scale", "epsilon", "clip"})

    scale: float | None = None
    epsilon: float | None = None
    clip: bool = True

    def __post_init__(self) -> None:
        if self.scale is not None and self.epsilon is not None:
            raise ValueError(f"give scale or epsilon, not both: got scale {self.scale} and epsilon {self.epsilon}")
        positive_and_finite(scale=self.scale, epsilon=self.epsilon)
        if self.epsilon is not None and not self.clip:
            raise ValueError("epsilon bounds nothing without a clip: leave clip on or give a scale")
        if self.scale is None and self.epsilon is None:
            object.__setattr__(self, "scale", DEFAULT_SCALE)

    def fit(self, public: Dataset, seed: int) -> DPSimpleScheme:
        """Mean, standard deviation and range of public rows. Raises NotApplicable if constant."""
        samples = public.samples
        image = samples.ndim == 4
        axes = (0, 2, 3) if image else (0,)
        std, mean = torch.std_mean(samples.double(), dim=axes, correction=0, keepdim=True)
        if not bool((std > 0).any()):
            raise NotApplicable(f"dp-simple standardises by the public rows: those of {public.name} are all the same")
        std[std == 0] = 1
        low = torch.zeros_like(mean) if image else samples.double().amin(dim=0, keepdim=True)
        high = torch.ones_like(mean) if image else samples.double().amax(dim=0, keepdim=True)
        low, high = (bound[0].expand(samples.shape[1:]).contiguous() for bound in (low, high))
        return self.load({"mean": mean[0], "std": std[0], "low": low, "high": high})

    def load(self, state: State) -> DPSimpleScheme:
        """The scheme that `DPSimpleScheme.state` described, with this method's noise."""
        low, high = ((state[end] - state["mean"]) / state["std"] for end in ("low", "high"))
        if self.epsilon is not None:
            noise = GridNoise.keeping(self.epsilon, low, high)
        else:
            assert self.scale is not None
            noise = GridNoise.of(self.scale, float(torch.maximum(low.abs(), high.abs()).max()))
        return DPSimpleScheme(dict(state), noise, noise.span(low, high), self.clip)


@dataclass(frozen=True, eq=False)
class DPSimpleScheme(NoiseScheme):
    """Public statistics, and the noise.

    Args:
        learned: `mean` and `std`, float64, shaped to broadcast over rows; `low` and `high`, of a row's shape.
        noise: In standardised units.
        steps: How far two rows in range can differ, in steps of the noise's grid: the sum of |x - y| over a whole row.
        clip: Clip rows to `low`..`high`.
    """

    purpose = "dp-simple"

    learned: State
    noise: GridNoise
    steps: int
    clip: bool

    @property
    def scale(self) -> float:
        """The noise's scale b in standardised units."""
        return self.noise.scale

    @property
    def sensitivity(self) -> float:
        """`steps` in standardised units."""
        return self.steps * self.noise.grid.step

    def state(self) -> State:
        """The public statistics."""
        return self.learned

    def standardise(self, samples: torch.Tensor) -> torch.Tensor:
        """float64: rows in public standard deviations, clipped if the scheme clips."""
        mean, std, low, high = (self.learned[part].to(samples.device) for part in ("mean", "std", "low", "high"))
        rows = samples.double()
        clipped = torch.maximum(torch.minimum(rows, high), low) if self.clip else rows
        # The bounds pass through the same operations, which keep order: rows in range stay there.
        return (clipped - mean) / std

    def mechanism(self) -> DPSimpleMechanism:
        """Laplace noise on the standardised row."""
        return DPSimpleMechanism(self)

    def notes(self) -> Mapping[str, int | float | str]:
        """Scale and sensitivity, standardised; a caveat if noise leaves nothing."""
        caveat = {CAVEAT: NOTHING_LEFT} if self.clip and not self.steps else {}
        return {**caveat, "noise scale": self.scale, "L1 sensitivity": self.sensitivity}

    def blur(self, samples: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Standardised rows with noise. Raises ValueError for rows of another shape."""
        shape = tuple(self.learned["low"].shape)
        if tuple(samples.shape[1:]) != shape:  # broadcast, a grey image would have one noise for three channels
            raise ValueError(f"this scheme standardises rows of shape {shape}, got {tuple(samples.shape[1:])}")
        return self.noise.add(samples, stream, self.standardise)

    def claim(self) -> PrivacyClaim:
        """epsilon = L1 sensitivity / scale for one row; infinity without clip."""
        image = self.learned["mean"].ndim == 3
        return PrivacyClaim(
            unit="image" if image else "record",
            epsilon=self.noise.epsilon(self.steps) if self.clip else math.inf,
            delta=0.0,
            assumptions=(
                "Any two rows within the clip range count as neighbours, each row is released once, and labels are "
                "outside the claim; it holds for the bits published: rows and noise are whole steps of a public grid."
                if self.clip
                else "Rows are not clipped, so that no bound on their difference is known."
            ),
            basis=(
                f"Discrete Laplace mechanism: L1 sensitivity {self.sensitivity:.6g} standardised units "
                f"on the grid ({'range * c * h * w / std' if image else 'sum of column ranges / std'}), scale "
                f"{self.scale:.6g}"
            ),
        )


@dataclass(frozen=True, eq=False)
class DPSimpleMechanism(Mechanism):
    """A row's code is the row, standardised and flattened; releases add noise."""

    scheme: DPSimpleScheme

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: the same for every element."""
        return torch.full_like(self.scheme.learned["low"].flatten(), self.scheme.scale)

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: standardised rows."""
        return self.scheme.noise.on_grid(self.scheme.standardise(data.samples)).flatten(1)

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: released rows."""
        return release.samples.flatten(1).double()

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The rows of all lower and all upper ends attain the sensitivity."""
        row = like.take(torch.zeros(1, dtype=torch.int64, device=like.samples.device))
        low, high = (self.scheme.learned[end][None].to(like.samples) for end in ("low", "high"))
        return ((replace(row, samples=low), replace(row, samples=high)),)
