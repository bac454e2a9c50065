from dataclasses import replace

import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin

from attacks.quantile_regression import FEWEST, QuantileRegression
from bench.types import NotApplicable, Release


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
def test_an_over_fitted_release_is_caught(scheme):
    assert found(QuantileRegression(), scheme) > 0.5 + margin(3.1)


@pytest.mark.parametrize("scheme", [Forgets(), Anew()])
def test_what_forgets_its_rows_stays_at_chance(scheme):
    assert abs(found(QuantileRegression(), scheme) - 0.5) < margin(4.5)


def test_the_regression_foresees_what_outsiders_reach():
    view, sealed, _ = game(Copies())
    attacker = QuantileRegression().fit(view, 0)
    attacker.membership(sealed)
    assert attacker.notes()["share of variance foreseen"] > 0.1


def test_a_copy_has_a_finite_score():
    view, _, _ = game(Copies())
    scores = QuantileRegression().fit(view, 0).membership(Release(view.candidates.samples, None, None))
    assert bool(scores.isfinite().all())


def test_one_seed_gives_one_result():
    view, sealed, _ = game(Copies())
    one, two = (QuantileRegression().fit(view, 3).membership(sealed) for _ in range(2))
    assert torch.equal(one, two)


def test_few_outsiders_are_not_applicable():
    view, _, _ = game(Copies())
    few = replace(view, control=view.control.take(torch.arange(FEWEST - 1)), public=view.public.take(torch.arange(0)))
    with pytest.raises(NotApplicable, match=f"at least {FEWEST} rows known to be outside, and Eve has {FEWEST - 1}"):
        QuantileRegression().fit(few, 0)


def test_rows_of_another_shape_are_not_applicable():
    view, _, _ = game(Narrow())
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        QuantileRegression().fit(view, 0).membership(Release(torch.rand(9, 3), None, None))


@pytest.mark.parametrize(("choice", "text"), [({"axes": 0}, "axes"), ({"draws": -1}, "draws")])
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        QuantileRegression(**choice)
