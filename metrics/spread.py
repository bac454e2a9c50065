"""A figure's mean and spread over keys and data samples (Syfer, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import torch

from bench.types import Score
from metrics.null import Null
from metrics.resampling import LEVELS


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


def mean(figures: Sequence[Sequence[float]]) -> float:
    """Mean of a figure over keys x data samples."""
    return fmean(value for key in figures for value in key)
