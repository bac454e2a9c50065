import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin

from attacks.gan_leaks import GANLeaks
from bench.randomness import Secret
from bench.types import NotApplicable


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
def test_an_over_fitted_release_is_caught(scheme):
    assert found(GANLeaks(), scheme) > 0.5 + margin(3.1)


def test_a_constant_release_says_nothing():
    assert found(GANLeaks(), Forgets()) == 0.5


def test_fresh_rows_stay_at_chance():
    assert abs(found(GANLeaks(), Anew()) - 0.5) < margin(4.5)


def test_calibration_takes_off_what_the_reference_generators_reach():
    view, sealed, _ = game(Copies())
    bare = GANLeaks(calibrate=False).fit(view, 1).membership(sealed)
    attacker = GANLeaks(references=2).fit(view, 1)
    own = [Copies().sample_key(Secret.of_seed(1, "reference", number)).release(attacker.own) for number in range(2)]
    reached = [-GANLeaks(calibrate=False).fit(view, 1).membership(made) for made in own]
    assert torch.allclose(attacker.membership(sealed), bare + (reached[0] + reached[1]) / 2)


def test_distances_are_those_to_the_nearest_row_in_units_of_known_rows():
    view, sealed, _ = game(Copies())
    attacker = GANLeaks(calibrate=False).fit(view, 1)
    scale = attacker.own.samples.double().std(dim=0, correction=0).clamp_min(1e-12)
    scale[5] = 1
    apart = torch.cdist(view.candidates.samples / scale, sealed.samples / scale)
    assert torch.allclose(attacker.membership(sealed), -apart.amin(dim=1).double())


def test_one_seed_gives_one_result():
    view, sealed, _ = game(Copies(published=True))
    one, two = (GANLeaks().fit(view, 3).membership(sealed) for _ in range(2))
    assert torch.equal(one, two)


def test_rows_of_another_shape_are_not_applicable():
    view, sealed, _ = game(Narrow())
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        GANLeaks().fit(view, 0).membership(sealed)


@pytest.mark.parametrize(("choice", "text"), [({"draws": -1}, "draws"), ({"references": 0}, "references")])
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        GANLeaks(**choice)
