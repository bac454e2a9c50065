import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.pairs.score_matrices import CosineScores, apart


def factors(n, m, d, seed=0):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=source), torch.randn(m, d, generator=source)


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(1, 300),
    seed=st.integers(0, 10_000),
    low=st.integers(0, 19),
    high=st.integers(1, 20),
    left=st.integers(0, 29),
    right=st.integers(1, 30),
)
def test_any_block_has_the_bits_of_the_whole(d, seed, low, high, left, right):
    scores = CosineScores(*factors(20, 30, d, seed))
    whole = scores.block(slice(None), slice(None))
    assert torch.equal(scores.block(slice(low, high), slice(left, right)), whole[low:high, left:right])


@settings(max_examples=30, deadline=None)
@given(d=st.integers(1, 300), seed=st.integers(0, 10_000))
def test_any_order_of_summation_gives_the_same_bits(d, seed):
    a, b = factors(6, 7, d, seed)
    whole = CosineScores(a, b).block(slice(None), slice(None))
    mixed = torch.randperm(d, generator=torch.Generator().manual_seed(seed))
    scores = CosineScores(a, b)
    slow = np.array([[sum((x * y).tolist(), 0.0) for y in scores.b[:, mixed]] for x in scores.a[:, mixed]])
    assert np.array_equal(whole.numpy(), slow)


def test_scores_are_cosines():
    a, b = factors(5, 6, 64)
    expected = torch.nn.functional.cosine_similarity(a.double()[:, None], b.double()[None], dim=2)
    got = CosineScores(a, b).block(slice(None), slice(None))
    assert got.dtype == torch.float64
    assert (got - expected).abs().max() < 2**-26 * 64**0.5


def test_collinear_rows_tie_exactly():
    a, b = factors(4, 1, 33)
    scores = CosineScores(a, torch.cat((b, b * 2, b * 1024))).block(slice(None), slice(None))
    assert torch.equal(scores[:, 0], scores[:, 1])
    assert torch.equal(scores[:, 0], scores[:, 2])


@pytest.mark.parametrize(
    ("value", "trouble"), [(float("nan"), "is not finite"), (float("inf"), "is not finite"), (0.0, "has no length")]
)
def test_a_row_without_direction_is_an_error_that_names_it(value, trouble):
    a, b = factors(4, 5, 3)
    b[2] = value
    with pytest.raises(ValueError, match=f"released row 2 {trouble}"):
        CosineScores(a, b)
    with pytest.raises(ValueError, match=f"raw row 2 {trouble}"):
        CosineScores(b, a)


def test_huge_and_tiny_rows_have_a_direction():
    a, _ = factors(3, 1, 4)
    scores = CosineScores(a.double() * 1e300, a.double() * 1e-300).block(slice(None), slice(None))
    assert torch.allclose(scores.diagonal(), torch.ones(3, dtype=torch.float64), atol=1e-7)


def test_factors_of_two_widths_are_refused():
    with pytest.raises(ValueError, match="one d"):
        CosineScores(torch.ones(2, 3), torch.ones(2, 4))


def test_rows_without_length_tie_at_zero_once_apart():
    a, b = factors(3, 4, 5)
    plain = CosineScores(a, b).block(slice(None), slice(None))
    a[1], b[2] = 0, 0
    scores = CosineScores(*apart(a, b)).block(slice(None), slice(None))
    assert not scores[1].any()
    assert not scores[:, 2].any()
    assert torch.equal(scores[::2][:, [0, 1, 3]], plain[::2][:, [0, 1, 3]])


def test_factors_give_the_bits_of_blocks():
    scores = CosineScores(*factors(20, 30, 70))
    a, b = scores.factors()
    one_by_one = torch.stack([(row * b).sum(dim=1) for row in a])
    assert torch.equal(one_by_one, scores.block(slice(None), slice(None)))
