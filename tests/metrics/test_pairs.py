from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from metrics.guesswork import chance_guesswork, guesswork
from metrics.pairs import blocks, count
from metrics.reid_auc import reid_auc
from tests.metrics.dense_scores import DenseScores, diagonal


@st.composite
def grids(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """A grid with heavy ties, of any shape, with any links."""
    n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    levels = draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(0, levels), min_size=n * m, max_size=n * m))
    places = draw(st.sets(st.integers(0, n * m - 1), min_size=1, max_size=n * m))
    links = torch.tensor([[place // m, place % m] for place in sorted(places)])
    return torch.tensor(values, dtype=torch.float32).reshape(n, m), links


def bucket_guesswork(matrix: torch.Tensor, links: torch.Tensor) -> Fraction:
    """Syfer, appendix A, by walking the distinct scores downwards."""
    linked = torch.zeros_like(matrix, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    passed = 0
    for value in sorted(set(matrix.flatten().tolist()), reverse=True):
        size, correct = int((matrix == value).sum()), int((linked & (matrix == value)).sum())
        if correct:
            return passed + Fraction(size + 1, correct + 1)
        passed += size
    raise AssertionError("no linked pair")


@settings(max_examples=300, deadline=None)
@given(grids(), st.integers(1, 5))
def test_counts_agree_with_slow_twins(grid: tuple[torch.Tensor, torch.Tensor], block: int) -> None:
    matrix, links = grid
    counts = count(DenseScores(matrix), links, block=block)
    assert guesswork(counts) == pytest.approx(float(bucket_guesswork(matrix, links)), rel=1e-12)
    truth = torch.zeros_like(matrix)
    truth[links[:, 0], links[:, 1]] = 1
    if len(links) < matrix.numel():
        assert reid_auc(counts) == pytest.approx(roc_auc_score(truth.flatten(), matrix.flatten()), rel=1e-12)
    expected = []
    for col in range(matrix.shape[1]):
        if truth[:, col].any():
            top = matrix[:, col] == matrix[:, col].max()
            expected.append(float((top * truth[:, col]).sum() / top.sum()))
    assert counts.top_1.tolist() == pytest.approx(expected)
    ranks = []
    for col in range(matrix.shape[1]):
        inside = links[links[:, 1] == col]
        if len(inside):
            column = torch.stack((inside[:, 0], torch.zeros(len(inside), dtype=torch.int64)), dim=1)
            ranks.append(float(bucket_guesswork(matrix[:, col : col + 1], column)))
    assert counts.ranks.tolist() == pytest.approx(ranks)


def test_appendix_a_first_scheme_has_guesswork_five_thirds_and_variance_eight_ninths() -> None:
    # Eve believes in the likelier transformation (2/3): right costs 1 guess, wrong costs 3.
    belief = DenseScores(torch.tensor([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]))
    likely, unlikely = (guesswork(count(belief, links)) for links in (diagonal(2), torch.tensor([[0, 1], [1, 0]])))
    mean = (2 * likely + unlikely) / 3
    assert mean == pytest.approx(5 / 3)
    # The paper says 8/27, which is an erratum.
    assert (2 * (likely - mean) ** 2 + (unlikely - mean) ** 2) / 3 == pytest.approx(8 / 9)


def test_appendix_a_second_scheme_has_guesswork_five_thirds() -> None:
    assert guesswork(count(DenseScores(torch.full((2, 2), 0.5)), diagonal(2))) == pytest.approx(5 / 3)


def test_appendix_a_third_scheme_has_guesswork_thirteen_ninths() -> None:
    sure = guesswork(count(DenseScores(torch.eye(2)), diagonal(2)))
    unsure = guesswork(count(DenseScores(torch.full((2, 2), 0.5)), diagonal(2)))
    assert (sure + 2 * unsure) / 3 == pytest.approx(13 / 9)


@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_uniform_scores_give_the_closed_form(n: int) -> None:
    counts = count(DenseScores(torch.zeros(n, n)), diagonal(n), block=7)
    assert guesswork(counts) == pytest.approx((n * n + 1) / (n + 1))
    assert chance_guesswork(counts) == pytest.approx((n * n + 1) / (n + 1))


def test_a_confidently_wrong_attacker_reaches_the_worst_guesswork() -> None:
    n = 6
    assert guesswork(count(DenseScores(1 - torch.eye(n)), diagonal(n))) == n * n - n + 1


def test_a_top_bucket_of_linked_pairs_gives_guesswork_one() -> None:
    assert guesswork(count(DenseScores(torch.eye(5)), diagonal(5))) == 1


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12))
def test_blocks_cover_the_grid_once_and_are_even(n: int, m: int, block: int) -> None:
    seen = torch.zeros(n, m, dtype=torch.int64)
    for rows, cols in blocks((n, m), block):
        seen[rows, cols] += 1
        assert 0 < rows.stop - rows.start <= block
    assert bool((seen == 1).all())
    heights = {rows.stop - rows.start for rows, _ in blocks((n, m), block)}
    assert max(heights) - min(heights) <= 1


def test_a_score_that_is_not_finite_is_named() -> None:
    matrix = torch.zeros(4, 5)
    matrix[2, 3] = torch.nan
    with pytest.raises(ValueError, match="raw row 2 and released row 3"):
        count(DenseScores(matrix), diagonal(4), block=2)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (torch.zeros(0, 2, dtype=torch.int64), "at least 1"),
        (torch.tensor([[0, 5]]), "must lie in the grid"),
        (torch.tensor([[-1, 0]]), "must lie in the grid"),
        (torch.tensor([0, 1]), "shape"),
    ],
)
def test_bad_links_are_refused(links: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count(DenseScores(torch.zeros(3, 3)), links)


def test_repeated_links_count_once() -> None:
    matrix = torch.rand(4, 4, generator=torch.Generator().manual_seed(0))
    once, twice = count(DenseScores(matrix), diagonal(4)), count(DenseScores(matrix), diagonal(4).repeat(2, 1))
    assert torch.equal(once.linked, twice.linked)
    assert torch.equal(once.others, twice.others)
