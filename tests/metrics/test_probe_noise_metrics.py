from __future__ import annotations

import pytest
import torch

from bench.evidence import LinearProbeEvidence, UtilityEvidence
from metrics.linear_probe_auc import LinearProbeAUC
from metrics.noise_robustness import NoiseRobustAUC
from metrics.utility_auc import UtilityAUC


def evidence(*sigmas: float) -> LinearProbeEvidence:
    """A score that says the label itself, under more and more noise."""
    random = torch.Generator().manual_seed(4)
    labels = (torch.rand(300, 2, generator=random) < 0.4).float()
    noise = [torch.randn(300, 2, generator=random) for _ in range(3)]
    return LinearProbeEvidence({
        sigma: UtilityEvidence([labels + sigma * part for part in noise], labels, torch.arange(300) // 3, ("a", "b"), 7)
        for sigma in sigmas
    })  # fmt: skip


def test_the_probe_is_judged_on_rows_without_noise() -> None:
    found = evidence(0.0, 1.0, 2.0, 3.0)
    assert LinearProbeAUC()(found) == UtilityAUC()(found.by_noise[0.0])
    assert LinearProbeAUC()(found).value == 1.0


def test_robustness_is_the_mean_over_noisy_levels_with_every_level_as_a_part() -> None:
    found = evidence(0.0, 1.0, 2.0, 3.0)
    score = NoiseRobustAUC()(found)
    assert list(score.parts) == ["sigma 0", "sigma 1", "sigma 2", "sigma 3"]
    levels = [part.value for part in score.parts.values()]
    assert levels == sorted(levels, reverse=True)
    assert score.value == pytest.approx(sum(levels[1:]) / 3)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high
    assert levels[1] == UtilityAUC()(found.by_noise[1.0]).value


def test_a_probe_that_knows_nothing_sits_in_the_null_interval() -> None:
    random = torch.Generator().manual_seed(6)
    useless = {
        sigma: UtilityEvidence([torch.randn(300, 2, generator=random)], part.labels, None, ("a", "b"), 7)
        for sigma, part in evidence(0.0, 1.0, 2.0, 3.0).by_noise.items()
    }
    score = NoiseRobustAUC()(LinearProbeEvidence(useless))
    assert score.null_low is not None
    assert score.null_high is not None
    assert score.null_low < score.value < score.null_high
