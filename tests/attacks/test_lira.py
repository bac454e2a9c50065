import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin, rows
from made.toy_methods import Keyless

from attacks.lira import LiRA
from bench.randomness import Secret
from bench.statistics.classification_scores import auc
from bench.types import NotApplicable, Release


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
def test_an_over_fitted_release_is_caught(scheme):
    assert found(LiRA(shadows=8), scheme) > 0.5 + margin(3.1)


def test_it_sees_members_in_a_mean_of_all_rows():
    class Mean(Keyless):
        def release(self, private):
            return Release(private.samples.mean(dim=0).expand_as(private.samples), private.labels, None)

    # In a mean of 120 rows of 60 columns a member lies some sqrt(60 / 120) deviations off a stranger: AUC about .69.
    assert found(LiRA(shadows=32), Mean(), columns=60) > 0.5 + margin(3.1)


def test_a_constant_release_says_nothing():
    assert found(LiRA(shadows=4), Forgets()) == 0.5


def test_fresh_rows_stay_at_chance():
    assert abs(found(LiRA(shadows=8), Anew()) - 0.5) < margin(4.5)


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
def test_a_release_of_other_rows_stays_at_chance_though_shadow_releases_tell_theirs(scheme):
    view, _, members = game(scheme)
    attacker = LiRA(shadows=8).fit(view, 6)
    assert attacker.notes()["AUC on shadow releases"] > 0.8
    for seed in (70, 71, 72):
        scores = attacker.membership(scheme.sample_key(Secret.of_seed(seed)).release(rows(seed)))
        assert abs(auc(scores, members.double()) - 0.5) < margin(4.5)


def test_one_seed_gives_one_result():
    view, sealed, _ = game(Copies(published=True))
    one, two = (LiRA(shadows=4).fit(view, 3).membership(sealed) for _ in range(2))
    assert torch.equal(one, two)


def test_the_record_says_what_was_chosen():
    view, _, _ = game(Copies())
    notes = LiRA(shadows=4).fit(view, 3).notes()
    assert notes["bandwidth"] in (1 / 32, 1 / 16, 1 / 8)
    assert notes["density of"] in ("the candidate's class", "all released rows")
    assert notes["AUC on shadow releases"] > 0.8


def test_rows_of_another_shape_cost_one_shadow_release():
    calls = []

    class Counted(Narrow):
        def release(self, private):
            calls.append(len(private))
            return super().release(private)

    view, _, _ = game(Counted())
    calls.clear()
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        LiRA().fit(view, 0)
    assert calls == [180]  # half of 240 candidates and 120 control rows


@pytest.mark.parametrize(("choice", "text"), [({"shadows": 5}, "even and at least 4, got 5"), ({"draws": -1}, "draws")])
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        LiRA(**choice)
