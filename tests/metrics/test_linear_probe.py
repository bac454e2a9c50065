from __future__ import annotations

import pytest
import torch

from bench.evidence import LinearProbeEvidence, UtilityEvidence
from metrics.linear_probe import LinearProbeAUC, NoiseRobustAUC


def evidence(signal: float, *sigmas: float) -> LinearProbeEvidence:
    """Scores that say the label, `signal` times, under more and more noise."""
    random = torch.Generator().manual_seed(4)
    labels = (torch.rand(100, 1, generator=random) < 0.4).float()
    noise = [torch.randn(100, 1, generator=random) for _ in range(3)]
    people = torch.arange(100) // 3
    return LinearProbeEvidence({
        sigma: UtilityEvidence([signal * labels + sigma * part for part in noise], labels, people, ("a",), 7)
        for sigma in sigmas
    })  # fmt: skip


def test_the_probe_is_judged_on_rows_without_noise() -> None:
    score = LinearProbeAUC()(evidence(1.0, 0.0, 9.0))
    assert score.value == 1.0
    assert list(score.parts) == ["a"]


def test_robustness_is_the_mean_over_noisy_levels_with_every_level_as_a_part() -> None:
    score = NoiseRobustAUC()(evidence(1.0, 0.0, 1.0, 3.0))
    assert list(score.parts) == ["sigma 0", "sigma 1", "sigma 3"]
    levels = [part.value for part in score.parts.values()]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == 1.0
    assert score.value == pytest.approx((levels[1] + levels[2]) / 2)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high


def test_a_probe_that_knows_nothing_sits_in_the_null_interval() -> None:
    score = NoiseRobustAUC()(evidence(0.0, 1.0, 2.0))
    assert score.null_low is not None
    assert score.null_high is not None
    assert score.null_low < score.value < score.null_high
