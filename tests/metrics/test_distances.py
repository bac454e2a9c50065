from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from bench.evidence import SetEvidence
from bench.types import NotApplicable
from metrics.dispersion import MaxDispersion, distance_sums
from metrics.distances import standardise
from metrics.nearest_neighbour_distance import NearestNeighbourDistance, nearest


def rows(n: int, d: int, seed: int, offset: float = 0.0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + offset


def test_sums_agree_with_scipy() -> None:
    a = rows(37, 5, 1)
    assert float(distance_sums(a, block=8).sum() / 2) == pytest.approx(pdist(a.numpy()).sum(), rel=1e-12)


def test_nearest_agrees_with_brute_force_far_from_the_origin() -> None:
    a, b = rows(20, 4, 1, 1e4), rows(31, 4, 2, 1e4)
    a, b = standardise(a, b)
    assert np.allclose(nearest(a, b, block=7), cdist(a, b).min(axis=1), rtol=1e-12)


def test_exact_duplicates_are_at_distance_zero() -> None:
    a = rows(50, 64, 3, 100.0)
    assert float(nearest(a, a.clone(), block=16).max()) == 0.0


def test_both_sets_take_the_originals_scale() -> None:
    original, released = standardise(rows(40, 3, 1) * 7 + 2, rows(10, 3, 2))
    assert torch.allclose(original.mean(dim=0), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(original.std(dim=0, correction=0), torch.ones(3, dtype=torch.float64))
    assert not torch.allclose(released.std(dim=0, correction=0), torch.ones(3, dtype=torch.float64), atol=0.2)


def test_constant_columns_are_only_centred() -> None:
    original = torch.ones(4, 2)
    assert standardise(original, torch.zeros(3, 2))[1].tolist() == [[-1, -1]] * 3


def test_sets_in_different_spaces_do_not_compare() -> None:
    evidence = SetEvidence(torch.zeros(4, 2), torch.zeros(4, 3), None, None, 0)
    with pytest.raises(NotApplicable, match="one space"):
        MaxDispersion()(evidence)


def test_a_row_that_is_not_finite_is_named() -> None:
    bad = torch.zeros(4, 2)
    bad[3, 1] = torch.inf
    with pytest.raises(ValueError, match="released row 3"):
        standardise(torch.ones(4, 2), bad)


def test_releasing_the_originals_has_distance_zero_and_their_dispersion() -> None:
    a = rows(30, 6, 5).float()
    evidence = SetEvidence(a, a.clone(), torch.arange(30) // 2, torch.arange(30) // 2, 0)
    assert NearestNeighbourDistance()(evidence).value == 0.0
    score = MaxDispersion()(evidence)
    assert score.value == pytest.approx(score.parts["original"].value)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high


def test_a_collapsed_release_has_no_dispersion() -> None:
    score = MaxDispersion()(SetEvidence(rows(9, 2, 1).float(), torch.ones(5, 2), None, None, 0))
    assert score.value == 0.0
