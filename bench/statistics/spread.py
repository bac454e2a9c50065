"""A figure's mean and spread over keys and data samples (Syfer, section 5), beside what chance gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import torch
from torch import Tensor

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.statistics.null import Draws, Layout, Null, exchanged_null, null_of_mean
from bench.statistics.resampling import LEVELS
from bench.types import Score


def spread(figures: Sequence[Sequence[float]], null: Null | None, *, n: int) -> Score:
    """Mean of a figure over keys x data samples; the interval is its 2.5-97.5 % spread over them.

    A data sample holds half of the people, drawn without replacement: a half sample varies about the whole as much as a
    bootstrap sample does, and repeats no row, whose copy would be a second correct match.

    Args:
        figures: By key, then by data sample.
        null: What chance gives; None where that is unknown.
        n: Raw rows behind a figure.
    """
    flat = torch.tensor([value for key in figures for value in key], dtype=torch.float64)
    low, high = torch.quantile(flat, LEVELS).tolist()
    note = f"2.5-97.5 % over {len(figures)} keys x {len(figures[0])} samples of half the people"
    score = Score(float(flat.mean()), low, high, n, note=note)
    if null is None:
        return score
    return replace(score, null=null.mean, null_low=null.low, null_high=null.high, p=null.p)


def simulated(
    evidence: PairEvidence,
    level: PairLevel,
    figure: Callable[[PairCounts], float],
    simulate: Callable[[Layout], Tensor],
    *,
    seed: int,
    expected: float | None = None,
) -> Score:
    """The spread of a figure, with the null of links of exchanged people, or without those of random scores.

    Args:
        evidence, level: What was counted.
        figure: Of one key and data sample.
        simulate: Draws of the figure's mean over the data samples for one key under random scores.
        seed: For the null's own draws.
        expected: Its exact mean under random scores; None takes that of the draws.
    """
    figures = [[figure(part) for part in key] for key in level.counts]
    layout = Layout.of(evidence, level.links)
    if level.permuted:
        null = exchanged_null(level, figure, Draws.of(simulate, layout), seed=seed)
    else:
        draws = simulate(layout)
        middle = float(draws.mean()) if expected is None else expected
        null = null_of_mean(draws, mean(figures), keys=len(figures), mean=middle, seed=seed)
    return spread(figures, null, n=level.counts[0][0].shape[0])


def mean(figures: Sequence[Sequence[float]]) -> float:
    """Mean of a figure over keys x data samples."""
    return fmean(value for key in figures for value in key)
