import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm

from bench.eve import densities
from bench.eve.densities import InOut, log_density
from bench.rows.grouping import class_groups
from bench.seeds import generator

NAN = float("nan")


def test_densities_are_those_of_the_definition(monkeypatch):
    source = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, 4, generator=source, dtype=torch.float64) for n in (9, 7))
    squares = (x[:, None] - y[None]).square().sum(dim=2)
    expected = [torch.from_numpy(logsumexp(-squares / (2 * h * h), axis=1, b=1 / 7)) for h in (0.01, 0.5, 20.0)]
    for pairs in (2**22, 5):  # in one block, and row by row
        monkeypatch.setattr(densities, "PAIRS", pairs)
        found = log_density(x, y, [0.01, 0.5, 20.0])
        assert torch.allclose(found.T, torch.stack(expected), atol=1e-9)


def test_copies_lie_at_the_top():
    x = torch.full((2, 3), 5.0, dtype=torch.float64)
    assert torch.allclose(log_density(x, x, [1e-3]), torch.zeros(2, 1, dtype=torch.float64))


def test_rows_are_compared_within_their_class_and_all_where_it_is_not_released():
    own, released = torch.tensor([[1.0], [NAN], [0.0], [1.0]]), torch.tensor([[NAN], [1.0], [1.0]])
    groups = {tuple(rows.tolist()): theirs.tolist() for rows, theirs in class_groups(own, released, 4, 3)}
    assert groups == {(0, 3): [1, 2], (1,): [0], (2,): [0, 1, 2]}


def test_rows_that_share_no_labels_are_compared_with_all():
    for released in (None, torch.zeros(3, 2)):
        ((rows, theirs),) = class_groups(torch.zeros(2, 1), released, 2, 3)
        assert (rows.tolist(), theirs.tolist()) == ([0, 1], [0, 1, 2])


def made(s, n, gap, seed=0):
    """A normal statistic of n rows in s releases, `gap` higher inside, about a middle of each row's own."""
    source = generator(seed)
    order = torch.rand(s // 2, n, generator=source) < 0.5
    inside = torch.stack((order, ~order), dim=1).flatten(0, 1)
    middle = 10 * torch.randn(n, generator=source, dtype=torch.float64)
    noise = torch.randn(s, n, generator=source, dtype=torch.float64)
    return middle + gap * (inside.double() - 0.5) + noise, inside, middle


def test_ratios_are_those_of_the_true_densities_in_the_limit():
    statistic, inside, middle = made(400, 50, 2.0)
    learned = InOut.learn(statistic, inside)
    at = middle + 0.7
    expected = norm.logpdf(at, middle + 1) - norm.logpdf(at, middle - 1)
    # Middles err by 1 / sqrt(400) each: ratios by .1, and four times that once in 16,000.
    assert float((learned.ratio(at) - torch.from_numpy(expected)).abs().max()) < 0.4 + 0.7 * 2 * 0.4


def test_the_auc_among_shadows_is_judged_on_releases_that_were_left_out():
    # Without a gap it is that of chance: 16 figures of 400 rows each, of a deviation near .029 / 4.
    statistic, inside, _ = made(16, 400, 0.0)
    assert abs(InOut.learn(statistic, inside).auc - 0.5) < 4.5 * 0.029 / 4 * 2
    statistic, inside, _ = made(16, 400, 2.0)
    assert InOut.learn(statistic, inside).auc == pytest.approx(norm.cdf(2 / 2**0.5), abs=0.05)


def test_releases_that_contradict_each_other_count_against_a_statistic():
    inside = (torch.arange(12) % 2 == 0) ^ torch.tensor([False, True, False, True])[:, None]
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)[:, None]
    noise = 0.01 * torch.randn(4, 12, generator=generator(0), dtype=torch.float64)
    assert InOut.learn(sign * (inside.double() - 0.5) + noise, inside).auc == 0


def test_what_never_changes_says_nothing():
    _, inside, middle = made(8, 30, 1.0)
    learned = InOut.learn(middle.expand(8, 30).clone(), inside)
    assert not learned.ratio(middle + 1).any()
    assert learned.auc == 0.5


def test_what_is_determined_by_membership_stays_finite():
    _, inside, middle = made(8, 30, 1.0)
    learned = InOut.learn(middle + inside.double(), inside)
    ratios = learned.ratio(middle + inside[0].double())
    assert bool(ratios.isfinite().all())
    assert bool(((ratios > 0) == inside[0]).all())


def test_rows_must_be_in_half_of_the_releases():
    with pytest.raises(ValueError, match="half of at least 4 releases, got 4"):
        InOut.learn(torch.rand(4, 5, dtype=torch.float64), torch.ones(4, 5, dtype=torch.bool))
