import math
from dataclasses import replace

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from bench.nets.cvae import ConditionalVAE, CVAECourse, deviation, divergence, train_cvae
from bench.nets.training import seeded
from bench.randomness import Secret
from bench.seeds import generator

COURSE = CVAECourse("corrected", beta=0.1, epochs=400, batch=64, learning_rate=3e-3, patience=15)
PRIOR = {"corrected": 1.0, "official-code": math.sqrt(0.5)}  # standard deviation
OFFSET = {"corrected": 0.0, "official-code": 0.5 * math.log(2)}  # a latent number


def network(d=6, c=2, latent=3):
    with seeded(1):
        return ConditionalVAE(d, c, hidden=32, latent=latent)


def factor_rows(n, d=6, seed=0):
    """Rows in [0, 1] along one curve, and their condition: two classes at different heights."""
    random = generator(seed)
    number = torch.arange(n) % 2
    factor = torch.rand(n, 1, generator=random)
    rows = 0.1 + 0.5 * factor * torch.linspace(0.2, 1, d) + 0.3 * number[:, None] * torch.linspace(1, 0, d)
    return rows, torch.nn.functional.one_hot(number, 2).float()


@pytest.mark.parametrize("formula", PRIOR)
def test_the_divergence_is_least_at_the_prior(formula):
    mean, spread = torch.full((1, 1), 0.7, requires_grad=True), torch.full((1, 1), -1.0, requires_grad=True)
    optimiser = torch.optim.LBFGS([mean, spread], max_iter=100)

    def closure():
        optimiser.zero_grad()
        loss = divergence(mean, spread, formula).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    mean, spread = mean.detach(), spread.detach()
    assert float(mean) == pytest.approx(0, abs=1e-3)
    assert float(deviation(spread, formula)) == pytest.approx(PRIOR[formula], abs=1e-3)
    assert float(divergence(mean, spread, formula)) == pytest.approx(OFFSET[formula], abs=1e-5)


@pytest.mark.parametrize("formula", PRIOR)
def test_the_divergence_is_that_of_gaussians(formula):
    mean, spread = torch.randn(2, 50, 4, generator=generator(0))
    found = divergence(mean, spread, formula)
    expected = kl_divergence(Normal(mean, deviation(spread, formula)), Normal(0, PRIOR[formula])).sum(dim=1)
    assert torch.allclose(found, expected + 4 * OFFSET[formula], rtol=1e-4)


def test_training_stops_early_and_keeps_the_best_epoch():
    rows, condition = factor_rows(96)
    judged = (1 - rows, condition)  # learning the rows soon makes these worse
    trained = network()
    fit = train_cvae(trained, rows, condition, COURSE, judged=judged, secret=Secret.of_seed(3))
    assert fit.epochs == fit.taken + COURSE.patience < COURSE.epochs
    again = network()
    short = train_cvae(
        again, rows, condition, replace(COURSE, epochs=fit.taken), judged=judged, secret=Secret.of_seed(3)
    )
    assert (short.taken, short.loss) == (fit.taken, fit.loss)
    for one, other in zip(trained.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
        assert not one.requires_grad


def test_without_patience_all_epochs_are_trained():
    rows, condition = factor_rows(96)
    course = replace(COURSE, patience=None, epochs=60)
    fit = train_cvae(network(), rows, condition, course, judged=(1 - rows, condition), secret=Secret.of_seed(3))
    assert fit.epochs == fit.taken == 60


def test_training_depends_on_its_seed_alone():
    rows, condition = factor_rows(50)
    course = replace(COURSE, epochs=3)
    made = []
    for seed in (3, 3, 4):
        torch.randn(seed)  # the global generator has no say
        made.append(network())
        train_cvae(made[-1], rows, condition, course, judged=(rows, condition), secret=Secret.of_seed(seed))
    first, again, other = (one.decoder[0].weight for one in made)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_training_that_diverges_says_so():
    rows, condition = factor_rows(50)
    with pytest.raises(FloatingPointError, match=r"epoch \d+: the loss must be finite, got .*; lower learning_rate"):
        train_cvae(
            network(), rows, condition, replace(COURSE, learning_rate=1e20), judged=(rows, condition),
            secret=Secret.of_seed(3)
        )  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"formula": "wrong"}, "formula must be corrected or official-code, got 'wrong'"),
        ({"beta": -1.0}, "beta must be at least 0 and finite, got -1.0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"learning_rate": math.inf}, "learning_rate must be positive and finite, got inf"),
    ],
)
def test_a_senseless_course_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(COURSE, **wrong)
