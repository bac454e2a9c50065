"""Trade-off functions of Poisson-sampled Gaussian steps, from their privacy loss.

A private training adds Gaussian noise to sums of clipped gradients of sampled rows. Every step is
(1 - q) N(0, s^2) + q N(1, s^2) with a row, and N(0, s^2) without it, of the sampling rate q and the noise multiplier s.
If neighbours replace a row, the other training's is (1 - q) N(0, s^2) + q N(-1, s^2). That pair dominates those of any
two gradients: whatever the event, a half-line of the same chance under the first row's part has no more chance under
the other two parts, by Neyman and Pearson's lemma.
The loss of all steps is the sum of theirs, a convolution (Koskela, Jaelkoe and Honkela 2020). Losses rounded up to a
grid are those of steps that are easier to tell apart, losses rounded down of harder ones (Meiser and Mohammadi 2018),
so that both results are certain. Accountants of libraries give epsilon at one delta, and no trade-off function.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
Sides: TypeAlias = Literal["both", "first", "second"]
"""Guesses that a test makes of coins."""
POINTS_A_STEP, LEAST_POINTS, MOST_POINTS = 1 << 11, 1 << 16, 1 << 20  # of the grid of losses
REACH = 9.0  # deviations of the noise beyond which a step's loss is cut
SPREADS = 12.0  # deviations of the sum of losses inside the grid
LOWEST = -600.0  # losses below it have an exponential beyond float64
LOST = 1e-12  # probability that the cuts and rounding may lose
MOST_EXPONENT = 700.0
SLOPES, NEAR = 700, 8.0  # supporting lines of a trade-off function: of all losses, and of those near 0


@dataclass(frozen=True)
class SampledGaussian:
    """Private trainings with one sampling rate, and any noise.

    Args:
        rate: Probability that a row is in a step, in [1e-6, 1].
        steps: Number of steps, 1 to `bench.contract.plugin.MOST_STEPS`.
        replaced: True if another row takes the place of a row, False if the row is left out.
    """

    rate: float
    steps: int
    replaced: bool = False

    def epsilon(self, noise: float, delta: float) -> float:
        """Epsilon at delta of this noise multiplier, or a little less."""
        return _epsilon(self, noise, delta)

    def least_wrong(self, noise: float, sides: Sides) -> Callable[[float], float]:
        """Least share of wrong guesses, or a little less, by right ones.

        Args:
            noise: The noise multiplier; 0 for the limit of ever less noise, which gives every sampled row away.
            sides: "first" if only included (or first) rows are guessed, "second" if only omitted (or second) ones are.
        """
        edges, slopes, offsets = _lines(self, noise, sides)

        def least(right: float) -> float:
            place = bisect_right(edges, right)
            return max(0.0, slopes[place] * right + offsets[place])

        return least

    def tails(self, noise: float) -> tuple[Numbers, Numbers]:
        """Shares (g,) of losses above ascending points, both ways."""
        losses = _losses(self, noise)
        with_row, without = (np.cumsum(share[::-1])[::-1] for share in (losses.lower, losses.without))
        return np.minimum(with_row, 1.0), np.minimum(without, 1.0)


@dataclass(frozen=True, eq=False)
class Losses:
    """Privacy losses of all steps on a grid.

    Args:
        values: (g,) float64, ascending.
        upper, lower: (g,) float64, probabilities of trainings with the row, losses being rounded up, and down.
        without: (g,) float64, the same of trainings without it or with the other row, rounded down.
    """

    values: Numbers
    upper: Numbers
    lower: Numbers
    without: Numbers


@lru_cache(maxsize=4)
def _losses(family: SampledGaussian, noise: float) -> Losses:
    steps, least = family.steps, -1 if family.replaced else 0
    # Rates and centres of the training with the row, and of the other.
    here, there = (family.rate, 1), (family.rate if family.replaced else 0.0, least)
    cuts = np.linspace(least - REACH * noise, 1 + REACH * noise, 20_001)
    ends, middle = _loss(family, cuts[[0, -1]], noise), _loss(family, (cuts[1:] + cuts[:-1]) / 2, noise)
    ranges = []
    for side in (here, there):
        weights = np.diff(_below(cuts, *side, noise))
        mean = float((weights * middle).sum())
        spread = SPREADS * math.sqrt(steps * float((weights * (middle - mean) ** 2).sum()))
        ranges += [steps * mean - spread + min(ends[0], 0.0), steps * mean + spread + max(ends[1], 0.0)]
    low, high = max(LOWEST, steps * ends[0], min(ranges)), min(steps * ends[1], max(ranges))
    size = min(MOST_POINTS, max(LEAST_POINTS, 1 << (POINTS_A_STEP * steps - 1).bit_length()))
    step = (high - low) / (size - 2 * steps - 4)  # rounding moves a sum by a place a step
    first = math.floor(ends[0] / step)
    edges = step * np.arange(first, math.ceil(ends[1] / step) + 1)
    points, start, whole = _point(family, edges, noise), math.floor(low / step) - steps, []
    up, down = np.arange(len(edges)), np.maximum(np.arange(len(edges)) - 1, 0)
    for side, places in ((here, up), (here, down), (there, down)):
        mass = np.diff(_below(points, *side, noise), prepend=0.0)
        mass[-1] += 1 - mass.sum()
        folded = np.bincount(places % size, mass, minlength=size)
        composed = scipy.fft.irfft(scipy.fft.rfft(folded) ** steps, size)
        whole.append(np.maximum(np.roll(composed, (first * steps - start) % size), 0.0))
    return Losses(step * np.arange(start, start + size), *whole)


def _loss(family: SampledGaussian, points: Numbers, noise: float) -> Numbers:
    """Privacy losses of a step's sums."""

    def excess(exponent: Numbers) -> Numbers:
        inside = math.log(family.rate) + exponent
        return np.logaddexp(math.log1p(-family.rate), inside) if family.rate < 1 else inside

    here, there = ((sign * 2 * points - 1) / (2 * noise**2) for sign in (1, -1))
    return excess(here) - (excess(there) if family.replaced else 0.0)


def _point(family: SampledGaussian, losses: Numbers, noise: float) -> Numbers:
    """Sums with these losses; minus infinity if none has."""
    rate = family.rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if family.replaced:
            # y = e^(sum / s^2) solves b y^2 - (1 - q) (e^loss - 1) y - b e^loss = 0, with b = q e^(-1 / (2 s^2)).
            sizes, part = np.abs(losses), math.log(rate) - 1 / (2 * noise**2)
            outer = -(1 - rate) * np.expm1(-sizes)
            root = np.log(outer + np.hypot(outer, 2 * np.exp(part - sizes / 2)))
            size: Numbers = noise**2 * (sizes + root - math.log(2) - part)
            return np.copysign(np.where(sizes > 0, size, 0.0), losses)
        # log((e^loss - 1 + q) / q); a loss far below 0 overflows, and no sum has it.
        shrunk = losses + np.log1p(-(1 - rate) * np.exp(-losses)) - math.log(rate)
    return np.where(np.isnan(shrunk), -np.inf, 0.5 + noise**2 * shrunk)


def _below(points: Numbers, rate: float, centre: float, noise: float) -> Numbers:
    """Share of a step's sums below the points."""
    parts = scipy.special.ndtr(points / noise), scipy.special.ndtr((points - centre) / noise)
    shares: Numbers = (1 - rate) * parts[0] + rate * parts[1]
    return shares


def _profile(values: Numbers, mass: Numbers) -> Numbers:
    """Delta at every value as epsilon."""
    shrunk = np.exp(np.clip(values, -MOST_EXPONENT, MOST_EXPONENT))
    above, weighted = (np.cumsum(part[::-1])[::-1] - part for part in (mass, mass / shrunk))
    return np.maximum(above - shrunk * weighted, 0.0)


@lru_cache(maxsize=4096)
def _epsilon(family: SampledGaussian, noise: float, delta: float) -> float:
    losses = _losses(family, noise)
    exceeds = np.nonzero(_profile(losses.values, losses.lower) > delta + LOST)[0]
    return max(float(losses.values[exceeds[-1]]), 0.0) if len(exceeds) else 0.0


@lru_cache(maxsize=1024)
def _lines(family: SampledGaussian, noise: float, sides: Sides) -> tuple[list[float], list[float], list[float]]:
    """Edges between the supporting lines of `least_wrong`, their slopes and offsets.

    A share of right guesses r and of wrong ones w of either side have w >= e^-v (r - d(v) / 2), for half of the coins
    fall on either; sums of both sides have both halves.
    """
    losses = _losses(family, noise) if noise else None
    ends = MOST_EXPONENT / 2 if losses is None else max(-losses.values[0], losses.values[-1])
    most = min(ends, MOST_EXPONENT / 2)
    slopes = np.unique(np.concatenate([np.linspace(-end, end, SLOPES) for end in (most, min(most, NEAR))]))
    # A row that no step samples leaves no trace, whatever the noise.
    sampled = -math.expm1(family.steps * math.log1p(-family.rate)) if family.rate < 1 else 1.0
    profile = other = np.where(slopes < 0, 1 - np.exp(slopes) * (1 - sampled), sampled)
    if losses is not None:
        # Profiles are convex: a chord is above them.
        values = losses.values
        here = np.interp(slopes, values, _profile(values, losses.upper), left=1.0, right=0.0)
        # Without the row, the loss is the negative one.
        there = np.interp(slopes, -values[::-1], _profile(-values[::-1], losses.without[::-1]), left=1.0, right=0.0)
        profile, other = np.minimum(here, profile), np.minimum(there, other)
    delta = LOST + {"first": profile, "second": other, "both": profile + other}[sides] / 2
    return _envelope(np.exp(-slopes[::-1]), (-np.exp(-slopes) * delta)[::-1])


def _envelope(slopes: Numbers, offsets: Numbers) -> tuple[list[float], list[float], list[float]]:
    """The greatest of lines of ascending slopes: edges between them, slopes, offsets."""
    kept: list[tuple[float, float]] = []
    edges: list[float] = []
    for slope, offset in zip(slopes.tolist(), offsets.tolist(), strict=True):
        while kept:
            edge = (kept[-1][1] - offset) / (slope - kept[-1][0])
            if not edges or edge > edges[-1]:
                edges.append(edge)
                break
            kept.pop()
            edges.pop()
        kept.append((slope, offset))
    return edges, [slope for slope, _ in kept], [offset for _, offset in kept]
