"""Gradient canaries: correct trainings keep their claim, and faults of the real `dp-sgd` do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made.private_faults import TRAINING_FAULTS, TrainingFault, faulty, stated
from made.sampled_steps import WIDTH, SampledSteps
from scipy.stats import binom

from bench.audit import canaries, canary_game
from bench.audit.canaries import published
from bench.audit.canary_game import CanaryGame
from bench.audit.distinguishing_game import CONFIDENCE, audit
from bench.audit.gradient_canaries import LENGTH, MOST_SMALL_TRAININGS, GradientCanaries
from bench.evidence import AuditEvidence
from bench.nets import private_training
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, PrivateStep
from methods.dp_sgd import DPSGD
from metrics.empirical_epsilon import EmpiricalEpsilon

pytestmark = pytest.mark.usefixtures("one_thread")


def public(rows: int = 40) -> Dataset:
    labels = (torch.arange(rows) % 2).float()[:, None]
    samples = torch.rand(rows, 1, 6, 6, generator=generator(3))
    return Dataset("", samples, labels, None, ("a",), False, True)


def shown(scheme: SampledSteps, seed: int, most: int = 1024) -> float:
    return bound(GradientCanaries(scheme, scheme.claim(), public(), most, WIDTH, 1.0), seed)


def bound(game: CanaryGame, seed: int) -> float:
    secret, coins = Secret.of_seed(seed), game.coins(CONFIDENCE)
    _, guess = game.choose(secret.derive("choice"), coins, confidence=CONFIDENCE)
    calls = game.count(secret.derive("count"), guess, coins)
    evidence = AuditEvidence(
        game.claim, calls, CONFIDENCE, one_run=True, coins="include" if game.included else "replace",
        runs=coins // game.each if guess.apart else 1,
    )  # fmt: skip
    return EmpiricalEpsilon()(evidence).value


def test_a_training_at_the_edge_of_its_claim_is_rarely_refuted_and_shows_much_of_it() -> None:
    scheme, repeats = SampledSteps(0.84), 6
    found = [shown(scheme, seed) / scheme.claim().epsilon for seed in range(repeats)]
    assert sum(one > 1 for one in found) <= binom.ppf(0.999, repeats, 0.05)
    assert max(found) > 0.4


@pytest.mark.parametrize("seed", range(4))
def test_a_quick_choice_expects_little_of_few_lucky_guesses(seed: int) -> None:
    scheme = SampledSteps(4.1)
    game = GradientCanaries(scheme, scheme.claim(), public(), 1024, WIDTH, 1.0)
    bound, _ = game.choose(Secret.of_seed(seed), 8000, confidence=CONFIDENCE, quick=True)
    assert bound < scheme.claim().epsilon


def test_a_claim_of_a_third_is_refuted() -> None:
    scheme = SampledSteps(2.0, less=1 / 3)
    assert shown(scheme, 0, most=4000) > scheme.claim().epsilon


@pytest.mark.parametrize("fault", [None, *TRAINING_FAULTS])
def test_a_fault_of_the_real_training_is_refuted(fault: TrainingFault | None) -> None:
    # All rows in every step make an exactly Gaussian mechanism, whose bounds take less time.
    batch = None if fault == "batch not sampled" else 10_000
    scheme = stated(DPSGD(epsilon=6.0, epochs=1, batch=batch).fit(public(), 0), fault)
    claim = scheme.claim()
    assert claim is not None
    claim = replace(claim, sampling_rate=None, steps=None)
    with faulty(fault):
        game = published(scheme, claim, public(), most=1280, secret=Secret.of_seed(0)).inside[0]
        found = bound(game, 0)
    assert "gradient canaries" in game.name
    assert found > (6.0 if fault else 3.0)
    assert fault is not None or found <= 6.0


def test_the_whole_audit_counts_gradient_canaries_and_names_all_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary_game, "LEAST_CHOICE", 16)
    monkeypatch.setattr(canaries, "BLACK_BOX", 64)
    scheme = DPSGD(epsilon=10.0, epochs=1, batch=10_000).fit(public(), 0)
    claim = replace(scheme.claim(), sampling_rate=None, steps=None)
    played = audit(scheme, claim, public(), trials=128, secret=Secret.of_seed(0))
    assert "gradient canaries" in played.inputs
    assert len(played.games) == 3
    assert played.black_box is not None


def test_given_gradients_are_clipped_sampled_and_summed_as_those_of_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_training, "calibrate", lambda *values, **options: 1e-3)
    monkeypatch.setattr(private_training, "account", lambda *values, **options: 0.0)
    data, seen = public(), list[PrivateStep]()
    key = DPSGD(epochs=25, clip_norm=0.7).fit(data, 0).sample_key(Secret.of_seed(0))
    width = sum(weight.numel() for weight in key._network(data.samples, 1).parameters())  # type: ignore[attr-defined]
    rows = torch.zeros(3, width)
    rows[0, :2], rows[1, 5], rows[2, -1] = torch.tensor([300.0, 400.0]), -0.2, 0.0
    key.canary_steps(data, rows, seen.append)
    totals = torch.stack([step.total for step in seen])
    inside = totals[:, 5] < -0.1
    assert len(seen) == 100
    assert {step.clip for step in seen} == {0.7}
    assert 10 < inside.sum() < 45  # a quarter
    assert (totals[inside, 5] + 0.2).abs().max() < 0.02
    long = totals[:, 1] > 0.3
    assert torch.allclose(totals[long, :2].mean(dim=0), torch.tensor([0.42, 0.56]), atol=0.002)
    assert totals[:, 6:].abs().max() < 0.02
    assert not torch.equal(long, inside)


def test_a_method_that_trains_on_no_given_gradients_is_audited_by_rows() -> None:
    data = public()
    scheme = DPSGD(epsilon=10.0, epochs=1).fit(data, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("methods.dp_sgd.DPSGDKey.canary_steps")
        games = published(scheme, scheme.claim(), data, most=200, secret=Secret.of_seed(0))
    assert [game.name.split()[0] for game in games.inside] == ["canaries"]
    assert len(published(scheme, scheme.claim(), data, most=200, secret=Secret.of_seed(0)).inside) == 2


def test_small_networks_are_trained_with_no_canary_too_and_as_often_as_their_claim_needs() -> None:
    table = replace(public(), samples=torch.rand(40, 3, generator=generator(3)))
    scheme = DPSGD(epsilon=10.0, epochs=1).fit(table, 0)
    game = published(scheme, scheme.claim(), table, most=1024, secret=Secret.of_seed(0)).inside[0]
    assert (game.name, game.each, game.coins(CONFIDENCE)) == (GradientCanaries.name, 1, MOST_SMALL_TRAININGS)
    coins = [bool(game._run(Secret.of_seed(0), number, 8).coins.any()) for number in range(8)]
    assert 0 < sum(coins) < 8


def test_canaries_of_a_training_have_no_number_in_common_and_lie_in_all_large_layers() -> None:
    from bench.audit.gradient_canaries import _directions

    lines = _directions(100, 1000)
    assert torch.allclose(lines @ lines.T, torch.eye(100), atol=1e-6)
    assert (lines[:, :160] != 0).any(dim=1).all()
    assert (lines[:, 160:] != 0).any(dim=1).all()
    assert LENGTH > 100
