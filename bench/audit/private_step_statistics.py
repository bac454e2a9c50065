"""Statistics of a canary in the noisy sums of a private training.

Nasr et al. 2023, Tight auditing of differentially private machine learning: the noisy sum of a step, along a canary's
gradient, is noise, or noise and the clip. Gradients of many canaries overlap, so that amplitudes of all of them are
estimated together (ridge regression on unit gradients). Steps are told apart by a mixture: a canary is in a batch or
not. Amplitude, noise and sampling rate are learned from trainings whose coins are known, and not taken from the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from bench.types import Dataset, Key, PrivateStep

Reading: TypeAlias = torch.Tensor  # (s, k) float64, s numbers of each of k canaries
RIDGE = 3.0  # of unit gradients: noise of an amplitude against the canaries' own variance
TINY = 1e-12


def statistics_of_steps(key: Key, rows: Dataset, first: Dataset, second: Dataset | None) -> Reading:
    """(steps, k) float64: the amplitude of each canary in each noisy sum.

    `second` are the rows that take the place of the first ones; None if nothing does.
    """
    amplitudes: list[torch.Tensor] = []
    probes = first if second is None else _both(first, second)

    def see(step: PrivateStep) -> None:
        units = torch.nn.functional.normalize(step.gradients.float(), dim=1, eps=TINY)
        if second is not None:
            units = torch.nn.functional.normalize(units[: len(first)] - units[len(first) :], dim=1, eps=TINY)
        overlaps = (units @ units.T).double()
        overlaps.diagonal().add_(RIDGE)
        along = torch.mv(units, step.total.to(units)).double()
        amplitudes.append(torch.linalg.solve(overlaps, along).cpu())

    key.private_steps(rows, probes, see)
    return torch.stack(amplitudes)


def learned(
    coins: Sequence[torch.Tensor], readings: Sequence[Reading]
) -> list[tuple[str, Callable[[Reading], torch.Tensor]]]:
    """Statistics (k,), higher for coins that fell on the first row."""
    values, first = torch.cat(list(readings), dim=1), torch.cat(list(coins))
    here, absent = values[:, first], values[:, ~first]
    centre, variance = float(absent.mean()), float(absent.var().clamp_min(TINY))
    mean = float(here.mean()) - centre
    # A share q of steps holds the canary at amplitude a: the mean is q a, the variance q (1 - q) a^2 more.
    excess = max(float(here.var()) - variance, 0.0)
    rate = 1 / (1 + excess / max(mean * mean, TINY))
    amplitude = mean / rate

    def ratio(reading: Reading) -> torch.Tensor:
        exponent = (amplitude * (reading - centre) - amplitude**2 / 2) / variance
        absent = torch.full_like(exponent, max(1 - rate, TINY)).log()
        return torch.logaddexp(absent, exponent + torch.tensor(rate, dtype=torch.float64).log()).sum(dim=0)

    def total(reading: Reading) -> torch.Tensor:
        return reading.sum(dim=0) * (1 if mean >= 0 else -1)

    return [("sum of amplitudes over steps", total), ("likelihood ratio of steps", ratio)]


def _both(first: Dataset, second: Dataset) -> Dataset:
    from dataclasses import replace

    assert first.labels is not None
    assert second.labels is not None
    return replace(
        first, samples=torch.cat((first.samples, second.samples)), labels=torch.cat((first.labels, second.labels))
    )
