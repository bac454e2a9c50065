import pytest
import torch
from made.attack_games import Anew, Copies, Forgets, Narrow, found, game, margin, rows

from attacks.rmia import RMIA, outdone
from bench.randomness import Secret
from bench.statistics.classification_scores import auc
from bench.types import NotApplicable


@pytest.mark.parametrize("scheme", [Copies(), Copies(published=True)])
@pytest.mark.parametrize("references", [2, 4])
def test_an_over_fitted_release_is_caught(scheme, references):
    assert found(RMIA(references=references), scheme) > 0.5 + margin(3.1)


def test_references_of_her_own_rows_catch_it_too():
    assert found(RMIA(online=False), Copies()) > 0.5 + margin(3.1)


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("scheme", [Forgets(), Anew()])
def test_what_forgets_its_rows_stays_at_chance(scheme, online):
    assert abs(found(RMIA(online=online), scheme) - 0.5) < margin(4.5)


def test_a_release_of_other_rows_stays_at_chance_though_reference_releases_tell_theirs():
    view, _, members = game(Copies())
    attacker = RMIA().fit(view, 6)
    assert attacker.notes()["AUC on reference releases"] > 0.8
    for seed in (70, 71, 72):
        scores = attacker.membership(Copies().sample_key(Secret.of_seed(seed)).release(rows(seed)))
        assert abs(auc(scores, members.double()) - 0.5) < margin(4.5)


def test_scores_are_shares_of_outsiders_and_ties_are_ordered():
    ratios = torch.tensor([0.5, -3.0, 2.0, 2.5, 2.5])
    shares = outdone(ratios, torch.tensor([0.0, 1.0, 2.0, 9.0]))
    assert (shares * 4).floor().tolist() == [1, 0, 3, 3, 3]
    assert shares[2] < shares[3] == shares[4]


def test_noise_in_columns_that_hardly_vary_is_left_out():
    class Noisy(Copies):
        def release(self, private):
            clean = super().release(private)
            samples = clean.samples.clone()
            samples[:, -1] += 0.3 * torch.randn(len(samples), generator=torch.Generator().manual_seed(self.seed))
            return type(clean)(samples, clean.labels, clean.links)

    view, _, _ = game(Noisy())
    slight = torch.randn(len(view.control), generator=torch.Generator().manual_seed(1)) * 1e-3
    view.control.samples[:, -1] += slight
    attacker = RMIA().fit(view, 0)
    assert attacker.notes()["columns"] == "without those that hardly vary"


def test_rows_of_another_shape_are_not_applicable():
    view, _, _ = game(Narrow())
    with pytest.raises(NotApplicable, match="raw rows have shape"):
        RMIA().fit(view, 0)


@pytest.mark.parametrize(
    ("choice", "text"), [({"references": 3}, "references must be 2 or 4, got 3"), ({"draws": -1}, "draws")]
)
def test_wrong_parameters_are_named(choice, text):
    with pytest.raises(ValueError, match=text):
        RMIA(**choice)
