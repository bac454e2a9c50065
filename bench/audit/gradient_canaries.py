"""Gradient canaries: rows of given gradients in a private training's steps.

Sources: Nasr et al. 2023, Tight auditing of differentially private machine learning; Steinke, Nasr and Jagielski 2023,
section 6 (Dirac canaries); Mahloujifar, Melis and Chaudhuri 2024, section 5. The claim holds for any gradient of a row.
A real row's gradient shrinks as the network learns the row; a given one keeps its length at all steps. Gradients of one
training have no coordinate in common. So the noisy sum along one of them holds that row and the noise, and nothing of
the other rows.

Difference: a gradient is spread over every `each`-th coordinate instead of one, so that it has a part in all layers but
small ones: a clip of each layer by itself makes it longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from bench.audit.canary_game import EACH, CanaryGame, Run, Statistic, by_rate
from bench.audit.private_step_statistics import TINY, rates
from bench.progress import report
from bench.randomness import Secret
from bench.statistics.confidence_intervals import lower_proportion
from bench.types import NotApplicable, PrivateStep

LENGTH = 1000.0  # of a gradient, in clips
MOST_CANARIES, NUMBERS_EACH = 512, 4  # canaries per training, and gradient numbers of each at least
LEAST_TRAININGS, MOST_TRAININGS, MOST_SMALL_TRAININGS = 8, 128, 512
DOUBT = 0.1  # error probability of the share of right guesses that a choice expects
NOISE_NUMBERS = 1 << 22  # numbers of noise in all steps of all trainings, nearly: 40 seconds


@dataclass(frozen=True, eq=False)
class GradientCanaries(CanaryGame):
    """Coins include gradients, or turn them to their negatives.

    Args:
        width: Numbers of a gradient.
        clip: Largest length of a row's gradient in the sum, as stated.
    """

    width: int = field(default=0)
    clip: float = field(default=1.0)

    name: ClassVar[str] = "gradient canaries in the steps of a private training (white-box)"

    @property
    def each(self) -> int:
        """As many canaries as have several numbers each."""
        return max(1, min(MOST_CANARIES, self.width // NUMBERS_EACH))

    def coins(self, confidence: float) -> int:
        """As many trainings as other games make at most, within `NOISE_NUMBERS`.

        Small networks have few canaries in a training, and are trained more often, as often as the claim needs.
        """
        affordable = NOISE_NUMBERS // max(1, self.width * (self.claim.steps or 1))
        coins = self.each * min(max(LEAST_TRAININGS, min(self.most // EACH, affordable)), MOST_TRAININGS)
        if self.each >= EACH:
            return coins
        return max(coins, min(super().coins(confidence), self.each * MOST_SMALL_TRAININGS))

    def possible(self, secret: Secret) -> bool:
        """True if the method trains on given gradients, as one training shows."""
        try:
            self._run(secret, 0, 1)
        except NotApplicable:
            return False
        return True

    def expected(self, correct: int, guesses: int) -> float:
        """The lower limit of the share, which favours many guesses over few."""
        return float(lower_proportion(correct, guesses, DOUBT))

    def statistics(self, runs: Sequence[Run]) -> list[Statistic]:
        """Likelihood ratio of all steps, by each sampling rate."""
        return by_rate("likelihood ratio along a given gradient", self.claim.sampling_rate)

    def _run(self, secret: Secret, number: int, count: int) -> Run:
        report("gradient canaries", number, count)
        coins = secret.stream("coins", number).integers(2, self.each).bool()
        directions = _directions(self.each, self.width).to(self.public.samples.device)
        signs = coins.to(directions) if self.included else 2 * coins.to(directions) - 1
        rows = (self.clip * LENGTH * signs[:, None] * directions)[signs != 0]
        if not len(rows):  # a training needs a row: this one adds nothing to a sum
            rows = torch.zeros_like(directions[:1])
        odds = _Odds(directions, rates(self.claim.sampling_rate), paired=not self.included)
        self.scheme.sample_key(secret.derive("key", number)).canary_steps(self.public, rows, odds.see)
        return Run(coins, odds.values)


class _Odds:
    """Log odds (s, k) of coins, by each sampling rate."""

    def __init__(self, directions: torch.Tensor, tried: tuple[float, ...], *, paired: bool) -> None:
        self._directions, self._tried, self._paired = directions, tried, paired
        self.values = torch.zeros(len(tried), len(directions), dtype=torch.float64)
        self._rest, self._free = 0.0, 0

    def see(self, step: PrivateStep) -> None:
        """Add a step's log likelihood ratios; noise is read off all steps."""
        total = step.total.to(self._directions) / step.clip
        along = (self._directions @ total).double().cpu()
        self._rest += max(float(total.double().square().sum() - along.square().sum()), 0.0)
        self._free += total.numel() - len(along)
        noise = max(self._rest / max(self._free, 1), TINY)
        for number, rate in enumerate(self._tried):
            self.values[number] += _excess(along, noise, rate)
            if self._paired:
                self.values[number] -= _excess(-along, noise, rate)


def _excess(along: torch.Tensor, noise: float, rate: float) -> torch.Tensor:
    """Log likelihood ratio (k,) of a row in the sum to none."""
    inside = (along - 0.5) / noise + math.log(rate)
    return torch.logaddexp(inside, torch.full_like(inside, math.log(max(1 - rate, TINY))))


def _directions(count: int, width: int) -> torch.Tensor:
    """(count, width) float32 unit vectors; row i lies in every count-th coordinate."""
    order = torch.arange(width)
    lines = torch.zeros(count, width)
    lines[order % count, order] = 1.0
    return torch.nn.functional.normalize(lines, dim=1)
