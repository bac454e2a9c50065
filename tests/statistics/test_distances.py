from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from bench.evidence import SetEvidence
from bench.statistics.nearest_rows import buffers_for, nearest, product_error, products, standardise
from bench.types import NotApplicable
from metrics.dispersion import MaxDispersion, NearestNeighbourDistance, distance_sums

KINDS = ["random", "far from the origin", "duplicates", "nearly the same", "zero vectors", "clusters", "one long row"]


def rows(n: int, d: int, seed: int, offset: float = 0.0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + offset


@st.composite
def sets(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sets in one space, with what makes products of rows go wrong."""
    n, m, d = draw(st.integers(1, 24)), draw(st.integers(1, 24)), draw(st.sampled_from([1, 3, 40]))
    seed = draw(st.integers(0, 10_000))
    a, b = rows(n, d, seed), rows(m, d, seed + 1)
    for kind in draw(st.sets(st.sampled_from(KINDS), max_size=3)):
        if kind == "far from the origin":
            a, b = a + 1e6, b + 1e6
        elif kind == "duplicates":
            b = torch.cat((b, a[: max(1, n // 2)], b[:1].repeat(20, 1)))
        elif kind == "nearly the same":
            b = b[:1] + 1e-7 * b
        elif kind == "zero vectors":
            a, b = torch.cat((a, torch.zeros(2, d))), torch.cat((b, torch.zeros(1, d)))
        elif kind == "clusters":
            b = b + 1e4 * (torch.arange(len(b)) % 3)[:, None]
        elif kind == "one long row":
            b = torch.cat((b, 1e5 * b[:1]))
    return a, b


@settings(max_examples=60, deadline=None)
@given(sets(), st.integers(1, 9))
def test_nearest_agrees_with_brute_force(case: tuple[torch.Tensor, torch.Tensor], block: int) -> None:
    a, b = case
    np.testing.assert_allclose(nearest(a, b, block=block), cdist(a, b).min(axis=1), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(sets(), st.integers(1, 9))
def test_sums_agree_with_scipy_as_far_as_is_proven(case: tuple[torch.Tensor, torch.Tensor], block: int) -> None:
    for part in case:
        found = float(distance_sums(part, block=block).sum() / 2)
        assert found == pytest.approx(float(pdist(part.numpy()).sum()), rel=1.3e-4)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 900), st.integers(1, 300), st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 1e3]))
def test_products_err_no_more_than_is_proven(d: int, chunk: int, seed: int, scale: float) -> None:
    a, b = rows(5, d, seed, scale), rows(7, d, seed + 1, -scale)
    narrow = [part.to(torch.float32) for part in (a, b)]
    found = products(*narrow, buffers_for(8, narrow[0]), chunk=chunk).double()
    sizes = a.abs() @ b.abs().T
    assert bool(((found - a @ b.T).abs() <= product_error(d, torch.float32, chunk=chunk) * sizes).all())


def test_images_of_a_real_size_agree_in_both_metrics() -> None:
    # A hundred times better than proven: roundings are of both signs.
    a, b = rows(700, 1100, 1, 3.0), rows(600, 1100, 2, 3.0)
    assert float(distance_sums(a).sum() / 2) == pytest.approx(float(pdist(a.numpy()).sum()), rel=1e-7)
    np.testing.assert_allclose(nearest(a, b), cdist(a, b).min(axis=1), rtol=1e-12)


def test_exact_duplicates_are_at_distance_zero() -> None:
    a = rows(50, 64, 3, 1e6)
    assert float(nearest(a, a.clone(), block=16).max()) == 0.0
    assert float(nearest(a, a[:1].repeat(300, 1), block=16)[0]) == 0.0


@pytest.mark.parametrize("allowed", ["bf16", "tf32"])
def test_products_that_are_cut_short_are_not_trusted(allowed: str) -> None:
    a, b = rows(300, 64, 1), rows(200, 64, 2)
    setting = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = setting.fp32_precision
    try:
        setting.fp32_precision = allowed
        assert float(distance_sums(a).sum() / 2) == pytest.approx(float(pdist(a.numpy()).sum()), rel=1e-13)
        np.testing.assert_allclose(nearest(a, b), cdist(a, b).min(axis=1), rtol=1e-12)
    finally:
        setting.fp32_precision = before


def test_both_sets_take_the_originals_scale() -> None:
    original, released = standardise(rows(40, 3, 1) * 7 + 2, rows(10, 3, 2))
    assert torch.allclose(original.mean(dim=0), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(original.std(dim=0, correction=0), torch.ones(3, dtype=torch.float64))
    assert not torch.allclose(released.std(dim=0, correction=0), torch.ones(3, dtype=torch.float64), atol=0.2)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e6 + 0.3])
def test_constant_columns_are_only_centred(value: float) -> None:
    original = torch.full((7, 2), value, dtype=torch.float64)
    assert standardise(original, original[:3] - 1)[0].abs().max() == 0
    assert torch.allclose(standardise(original, original[:3] - 1)[1], torch.tensor(-1.0, dtype=torch.float64))


def test_one_row_is_a_set() -> None:
    score = NearestNeighbourDistance()(SetEvidence(torch.ones(1, 3), torch.zeros(2, 3), None, None, 0))
    assert score.value == pytest.approx(3**0.5)
    assert MaxDispersion()(SetEvidence(torch.ones(1, 3), torch.zeros(1, 3), None, None, 0)).value == 0.0


def test_distances_are_those_of_released_rows_to_the_nearest_original() -> None:
    # The original has mean 1 and deviation 1, so that distances on its scale are those of the numbers.
    original, released = torch.tensor([[0.0], [2.0], [0.0], [2.0]]), torch.tensor([[0.0], [5.0], [3.0]])
    score = NearestNeighbourDistance()(SetEvidence(original, released, None, None, 0))
    assert score.value == pytest.approx((0 + 3 + 1) / 3)
    assert score.n == 3
    # A row far from all others is no figure of its own if not released.
    assert NearestNeighbourDistance()(SetEvidence(original, original[:2], None, None, 0)).value == 0.0


def test_copies_of_released_rows_change_no_distance_and_no_interval_is_given() -> None:
    original, few = rows(60, 3, 1).float(), rows(12, 3, 2).float()
    metric = NearestNeighbourDistance()
    once = metric(SetEvidence(original, few, None, None, 0))
    often = metric(SetEvidence(original, few.repeat_interleave(5, dim=0), None, None, 0))
    assert often.value == pytest.approx(once.value)
    for score in (once, MaxDispersion()(SetEvidence(original, few, None, None, 0))):
        assert score.low is score.high is None
        assert score.note.startswith("no interval: other people would change")


def test_sets_in_different_spaces_do_not_compare() -> None:
    evidence = SetEvidence(torch.zeros(4, 2), torch.zeros(4, 3), None, None, 0)
    with pytest.raises(NotApplicable, match="one space"):
        MaxDispersion()(evidence)


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_a_row_that_is_not_finite_is_named(value: float) -> None:
    bad = torch.zeros(4, 2)
    bad[3, 1] = value
    with pytest.raises(ValueError, match="released row 3"):
        standardise(torch.ones(4, 2), bad)
    with pytest.raises(ValueError, match="raw row 3"):
        standardise(bad, torch.ones(4, 2))


def test_releasing_the_originals_has_distance_zero_and_their_dispersion() -> None:
    a = rows(30, 6, 5).float()
    evidence = SetEvidence(a, a.clone(), torch.arange(30) // 2, torch.arange(30) // 2, 0)
    assert NearestNeighbourDistance()(evidence).value == 0.0
    score = MaxDispersion()(evidence)
    assert score.value == pytest.approx(score.parts["original"].value)


def test_a_collapsed_release_has_no_dispersion() -> None:
    score = MaxDispersion()(SetEvidence(rows(9, 2, 1).float(), torch.ones(5, 2), None, None, 0))
    assert score.value == 0.0


def test_a_large_collapsed_release_costs_no_pair_by_pair_work() -> None:
    a = rows(600, 300, 1)
    blank = torch.zeros(2000, 300, dtype=torch.float64)
    np.testing.assert_allclose(nearest(a, blank), a.norm(dim=1), rtol=1e-12)
    assert float(distance_sums(blank).sum()) == 0.0


def test_columns_that_hardly_vary_stand_beside_and_do_not_drown_the_rest() -> None:
    original = rows(40, 6, 1).float()
    original[:, 0] *= 1e-3
    original[:, 1] = 0.5
    released = original + 0.1 * rows(40, 6, 2).float()
    evidence = SetEvidence(original, released, None, None, 0)
    without = SetEvidence(original[:, 2:], released[:, 2:], None, None, 0)
    for metric in (MaxDispersion(), NearestNeighbourDistance()):
        score, alone = metric(evidence), metric(without)
        assert score.value > 3 * score.parts["varying columns"].value
        assert score.parts["varying columns"].value == pytest.approx(alone.value)
        assert "varying columns" not in alone.parts
