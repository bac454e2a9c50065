"""Statistics of a canary in the noisy sums of a private training.

Nasr et al. 2023, Tight auditing of differentially private machine learning: the noisy sum of a step, along a canary's
gradient, is noise, or noise and the clip. Gradients of many canaries overlap, so that amplitudes of all of them are
estimated together (ridge regression on unit gradients). Steps are told apart by a mixture: a canary is in a batch or
not. Amplitude, noise and sampling rate are learned from trainings whose coins are known, and not taken from the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from bench.rows.row_sets import joined
from bench.types import Dataset, Key, PrivateStep

Reading: TypeAlias = "torch.Tensor"  # (s, k) float64, s numbers of each of k canaries
RIDGES = (1.0, 10.0, 100.0)  # noise against the canaries' own variance; the method's is unknown
WIDTH = 1 + len(RIDGES)  # numbers of a step
TINY = 1e-12


def statistics_of_steps(key: Key, rows: Dataset, first: Dataset, second: Dataset | None) -> Reading:
    """(steps WIDTH, k) float64: lengths and estimated amplitudes of canaries' clipped gradients.

    Of each step the length of every canary's gradient, in units of the clip, and its amplitude in the noisy sum by each
    ridge. `second` are the rows that take the place of the first ones; None if nothing does.
    """
    read: list[torch.Tensor] = []
    probes = first if second is None else joined(first, second)

    def see(step: PrivateStep) -> None:
        clipped = step.gradients.float()
        clipped = clipped / clipped.norm(dim=1, keepdim=True).clamp_min(step.clip)
        if second is not None:
            clipped = clipped[: len(first)] - clipped[len(first) :]
        lengths = clipped.norm(dim=1).double()
        overlaps, along = (clipped @ clipped.T).double(), torch.mv(clipped, step.total.to(clipped)).double()
        diagonal = overlaps.diagonal().clone()
        found = [lengths]
        for ridge in RIDGES:
            overlaps.diagonal().copy_(diagonal + ridge)
            found.append(torch.linalg.solve(overlaps, along) * (1 + ridge))
        read.append(torch.stack(found).cpu())

    key.private_steps(rows, probes, see)
    return torch.cat(read)


def learned(
    coins: Sequence[torch.Tensor], readings: Sequence[Reading]
) -> list[tuple[str, Callable[[Reading], torch.Tensor]]]:
    """Statistics (k,), higher for coins that fell on the first row."""
    return [statistic for number in range(len(RIDGES)) for statistic in _learned(coins, readings, 1 + number)]


def _learned(
    coins: Sequence[torch.Tensor], readings: Sequence[Reading], column: int
) -> list[tuple[str, Callable[[Reading], torch.Tensor]]]:
    first, whole = torch.cat(list(coins)), torch.cat([_steps(one) for one in readings], dim=2)
    lengths, values = whole[:, 0], whole[:, column]
    absent = values[:, ~first]
    centre, variance = float(absent.mean()), float(absent.var().clamp_min(TINY))
    # A share q of steps holds the canary at amplitude a: the mean is q a, the variance q (1 - q) a^2 more.
    here, weights = values[:, first] - centre, lengths[:, first]
    mean = float((here * weights).sum() / weights.square().sum().clamp_min(TINY))
    rest = (here - mean * weights).square() - variance
    excess = max(float((rest * weights.square()).sum() / weights.pow(4).sum().clamp_min(TINY)), 0.0)
    rate = 1 / (1 + excess / max(mean * mean, TINY))
    amplitude = mean / rate

    def ratio(reading: Reading) -> torch.Tensor:
        steps = _steps(reading)
        size = amplitude * steps[:, 0]
        exponent = (size * (steps[:, column] - centre) - size.square() / 2) / variance
        out = torch.full_like(exponent, max(1 - rate, TINY)).log()
        return torch.logaddexp(out, exponent + math.log(rate)).sum(dim=0)

    def total(reading: Reading) -> torch.Tensor:
        steps = _steps(reading)
        return ((steps[:, column] - centre) * steps[:, 0]).sum(dim=0) * (1 if mean >= 0 else -1)

    ridge = f"ridge {RIDGES[column - 1]:g}"
    return [(f"sum of amplitudes over steps, {ridge}", total), (f"likelihood ratio of steps, {ridge}", ratio)]


def _steps(reading: Reading) -> torch.Tensor:
    """(steps, WIDTH, k)."""
    return reading.view(-1, WIDTH, reading.shape[1])
