import numpy as np
import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin
from scipy.stats import gaussian_kde

from attacks.domias import DOMIAS
from bench.eve.own_releases import own_rows
from bench.types import NotApplicable, Release


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
def test_an_over_fitted_release_is_caught(scheme):
    assert found(DOMIAS(), scheme) > 0.5 + margin(3.1)


@pytest.mark.parametrize("scheme", [Forgets(), Anew()])
def test_what_forgets_its_rows_stays_at_chance(scheme):
    assert abs(found(DOMIAS(), scheme) - 0.5) < margin(4.5)


def test_scores_are_the_ratio_of_two_kernel_densities():
    view, sealed, _ = game(Copies())
    attacker = DOMIAS().fit(view, 0)
    q = attacker.rows.shape[1]

    def density(others):
        # scipy scales kernels by the rows' own covariance; rows made white by it have the identity there.
        points = others.numpy().T
        kernel = gaussian_kde(points, bw_method="scott")
        kernel.covariance = np.eye(q) * len(others) ** (-2 / (q + 4))
        kernel.cho_cov = np.linalg.cholesky(kernel.covariance)
        kernel.log_det = 2 * np.log(np.diag(kernel.cho_cov * np.sqrt(2 * np.pi))).sum()
        return torch.from_numpy(kernel.logpdf(attacker.rows.numpy().T))

    known = attacker.space.coordinates(own_rows(view).samples)
    expected = density(attacker.space.coordinates(sealed.samples)) - density(known)
    difference = attacker.membership(sealed) - expected
    assert torch.allclose(difference, difference[:1].expand_as(difference), atol=1e-6)


def test_axes_are_those_that_vary():
    view, _, _ = game(Copies())
    attacker = DOMIAS().fit(view, 0)
    assert attacker.notes() == {"axes": 5}  # one column is constant
    known = attacker.space.coordinates(own_rows(view).samples)
    assert torch.allclose(torch.cov(known.T, correction=0), torch.eye(5, dtype=torch.float64), atol=1e-9)


def test_rows_of_another_shape_are_not_applicable():
    view, _, _ = game(Narrow())
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        DOMIAS().fit(view, 0).membership(Release(torch.rand(9, 3), None, None))


@pytest.mark.parametrize(
    ("choice", "text"),
    [({"draws": -1}, "draws"), ({"bandwidth": 0.0}, "bandwidth"), ({"components": 0}, "components")],
)
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        DOMIAS(**choice)
