"""Statistics of events that sound noise makes all but impossible.

A raw number in a release, or noise that an earlier release held, is no accident: of 24 bits of noise, one draw repeats
another once in millions. Few such events decide an audit, although they are too few for a bound on the releases that a
test is chosen on. Other statistics read digits that noise on a grid, casts and packed bits leave of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from bench.audit.game_plays import RowPlay, Statistic, Tosses
from bench.contract.mechanism import Mechanism
from bench.types import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLOSE = 2e-7  # of a number's size: float32 rounds to half of it
COMPARED = 8  # numbers of noise that must agree
LEAST_COMPARED = 4
BITS = 12  # lowest bits of a float32
STEPS = (1.0, 1 / 15, 1 / 16, 1 / 255, 1 / 256, 2.0**-12, 1 / 65535, 2.0**-16, 2.0**-20)
"""Steps of common casts and noise grids."""
Values: TypeAlias = "NDArray[np.float64]"


def exact_values(play: RowPlay) -> Statistic:
    """Numbers that equal the first input's, minus those that equal the second's."""
    first, second = (side.samples.flatten(1).double() for side in (play.pair.first, play.pair.second))

    def of(tosses: Tosses) -> torch.Tensor:
        rows = tosses.release.samples.flatten(1).double()
        if rows.shape[1] != first.shape[1]:
            return rows.new_zeros(len(rows))
        apart = (first - second).abs() > 100 * CLOSE
        near = [((rows - side).abs() <= CLOSE * side.abs().clamp_min(1)) & apart for side in (first, second)]
        return (near[0].sum(dim=1) - near[1].sum(dim=1)).double()

    return Statistic("exact values", of, rare=True)


@dataclass(frozen=True, eq=False)
class SeenNoise:
    """Noise (n, d) of known releases, sorted by its first number."""

    rows: Values

    def contains(self, noise: Values, close: Values) -> NDArray[np.bool_]:
        """(m,) True if a known row is within `close` (m, d) everywhere."""
        low = np.searchsorted(self.rows[:, 0], noise[:, 0] - close[:, 0])
        high = np.searchsorted(self.rows[:, 0], noise[:, 0] + close[:, 0], side="right")
        found = np.zeros(len(noise), dtype=np.bool_)
        for place in np.nonzero(high > low)[0]:
            gaps = np.abs(self.rows[low[place] : high[place]] - noise[place])
            found[place] = bool((gaps <= close[place]).all(axis=1).any())
        return found


def seen_noise(play: RowPlay, training: Tosses, mechanism: Mechanism | None) -> Statistic | None:
    """Noise that a known release held, by input; None for short rows."""
    read = _code if mechanism is not None and mechanism.exact else _samples
    ends = torch.cat([_located(side, mechanism) for side in (play.pair.first, play.pair.second)])
    released = read(training, mechanism)
    if released.shape[1] != ends.shape[1] or released.shape[1] < LEAST_COMPARED:
        return None
    places = torch.linspace(0, ends.shape[1] - 1, min(COMPARED, ends.shape[1])).long()
    ends = ends[:, places].cpu()
    raw = torch.where(training.first[:, None].cpu(), ends[:1], ends[1:])
    known = (released[:, places].cpu() - raw).numpy()
    known = known[np.abs(known).min(axis=1) > 0]  # no noise is no repeated noise
    seen = SeenNoise(known[known[:, 0].argsort()])

    def of(tosses: Tosses) -> torch.Tensor:
        rows = read(tosses, mechanism)[:, places].cpu()
        close = (8 * CLOSE * rows.abs().clamp_min(1)).numpy()
        here, there = (torch.from_numpy(seen.contains((rows - end).numpy(), close)) for end in ends)
        return here.double() - there.double()

    return Statistic("noise seen before", of, rare=True)


def bits(tosses: Tosses) -> torch.Tensor:
    """(n, d BITS) float64, -1 or 1: released float32 numbers' lowest bits."""
    whole = tosses.release.samples.flatten(1).float().contiguous().view(torch.int32)
    powers = torch.arange(BITS, device=whole.device)
    return (((whole[:, :, None] >> powers) & 1) * 2 - 1).flatten(1).double()


def turns(tosses: Tosses, step: float) -> torch.Tensor:
    """(n, 2 d) float64: cosine and sine of places among `step`'s multiples."""
    angles = 2 * torch.pi * (tosses.release.samples.flatten(1).double() / step).frac()
    return torch.cat((angles.cos(), angles.sin()), dim=1)


def _samples(tosses: Tosses, mechanism: Mechanism | None) -> torch.Tensor:
    return tosses.release.samples.flatten(1).double()


def _code(tosses: Tosses, mechanism: Mechanism | None) -> torch.Tensor:
    assert mechanism is not None
    return mechanism.observe(tosses.release).double()


def _located(row: Dataset, mechanism: Mechanism | None) -> torch.Tensor:
    if mechanism is not None and mechanism.exact:
        return mechanism.locate(row).double()
    return row.samples.flatten(1).double()
