import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin

from attacks.monte_carlo import MonteCarlo
from bench.types import NotApplicable, Release


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
@pytest.mark.parametrize("attack", [MonteCarlo(), MonteCarlo(weighted=False), MonteCarlo(percentile=0.1)])
def test_an_over_fitted_release_is_caught(attack, scheme):
    assert found(attack, scheme) > 0.5 + margin(3.1)


@pytest.mark.parametrize("scheme", [Forgets(), Anew()])
def test_what_forgets_its_rows_stays_at_chance(scheme):
    assert abs(found(MonteCarlo(), scheme) - 0.5) < margin(4.5)


def distances(view, sealed, attacker):
    return torch.cdist(attacker.rows, attacker.space.coordinates(sealed.samples))


def test_scores_are_shares_of_the_rows_in_the_median_ball():
    view, sealed, _ = game(Copies())
    attacker = MonteCarlo(weighted=False).fit(view, 0)
    apart = distances(view, sealed, attacker)
    epsilon = apart.amin(dim=1).median() * (1 + 1e-6)
    assert torch.allclose(attacker.membership(sealed), (apart <= epsilon).double().mean(dim=1))


def test_a_percentile_is_one_of_all_distances():
    view, sealed, _ = game(Copies())
    attacker = MonteCarlo(weighted=False, percentile=2.0).fit(view, 0)
    assert float(attacker.membership(sealed).mean()) == pytest.approx(0.02, abs=1e-3)


def test_nearer_rows_weigh_more():
    view, sealed, _ = game(Copies())
    attacker = MonteCarlo().fit(view, 0)
    apart = distances(view, sealed, attacker)
    epsilon = apart.amin(dim=1).median()
    expected = (epsilon / apart).log().clamp_min(0).mean(dim=1)
    assert torch.allclose(attacker.membership(sealed), expected, atol=1e-9)


def test_copies_without_noise_are_counted():
    view, sealed, members = game(Copies(noise=0.0))
    scores = MonteCarlo().fit(view, 0).membership(sealed)
    assert bool(scores.isfinite().all())
    assert scores[members].min() > scores[~members].max()


def test_few_components_are_few_axes():
    view, _, _ = game(Copies())
    assert MonteCarlo(components=2).fit(view, 0).rows.shape[1] == 2
    assert MonteCarlo().fit(view, 0).rows.shape[1] == 5  # one column is constant


def test_rows_of_another_shape_are_not_applicable():
    view, _, _ = game(Narrow())
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        MonteCarlo().fit(view, 0).membership(Release(torch.rand(9, 3), None, None))


@pytest.mark.parametrize(
    ("choice", "text"), [({"draws": -1}, "draws"), ({"percentile": 0.0}, "percentile"), ({"components": 0}, "comp")]
)
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        MonteCarlo(**choice)
