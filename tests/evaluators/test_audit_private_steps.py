"""White-box audits of private trainings: correct noise keeps its claim, each planted fault is refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
import torch
from scipy.optimize import brentq

from bench.audit.distinguishing_game import CONFIDENCE, Played, audit
from bench.audit.private_step_statistics import rates, statistics_of_steps
from bench.evidence import AuditEvidence
from bench.nets import private_training
from bench.nets.convolutional_networks import private_cnn
from bench.nets.private_training import PrivateCourse, Watch, row_losses, train_privately
from bench.randomness import Secret
from bench.seeds import generator
from bench.statistics.epsilon_bounds import gaussian_epsilon
from bench.types import Classifier, Dataset, Key, NotApplicable, PrivacyClaim, PrivateStep, Release, Scheme, State
from metrics.empirical_epsilon import EmpiricalEpsilon

pytestmark = pytest.mark.usefixtures("one_thread")

Fault = Literal["none", "half the noise", "no clip", "wrong neighbours", "batch not sampled", "every row twice"]
NUMBERS, LONG, EPSILON, DELTA = 2048, 3.0, 6.0, 1e-5
MU = brentq(lambda mu: gaussian_epsilon(mu, DELTA) - EPSILON, 0.1, 4.0)
STEPS, NOISE = 4, 2 / MU  # every row in every step: exactly Gaussian
MANY, SAMPLED = 40, 1.5  # the noise that epsilon 6 takes for steps of a quarter of the rows, by Opacus' accountant


def public(rows: int = 40) -> Dataset:
    labels = (torch.arange(rows) % 2).float()[:, None]
    samples = torch.rand(rows, 1, 6, 6, generator=generator(3))
    return Dataset("", samples, labels, None, ("a",), False, True)


@dataclass(frozen=True)
class Steps(Scheme):
    """Noisy sums of clipped gradients that point in a direction of each row's own."""

    fault: Fault = "none"

    def sample_key(self, secret: Secret) -> Key:
        return StepsKey(self, secret)

    def load_key(self, state: State) -> Key:
        return StepsKey(self, Secret.load(state["secret"]))

    def claim(self) -> PrivacyClaim:
        neighbours: Literal["replaced", "added"] = "replaced" if self.fault == "wrong neighbours" else "added"
        return PrivacyClaim("image", EPSILON, DELTA, "none", "a test", neighbours=neighbours, family="Gaussian")


@dataclass(frozen=True)
class StepsKey(Key):
    scheme: Steps
    secret: Secret

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("a classifier is published")

    def classifier(self, private: Dataset) -> Classifier:
        return lambda rows: torch.zeros(len(rows), 1)

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        fault, random = self.scheme.fault, generator(int(self.secret.stream("steps").integers(1 << 32)))
        mine, theirs = gradients(private), gradients(probes)
        if fault != "no clip":
            mine = torch.nn.functional.normalize(mine, dim=1)
        sampled = fault == "batch not sampled"
        for _ in range(MANY if sampled else STEPS):
            noise = (SAMPLED if sampled else NOISE) * torch.randn(NUMBERS, generator=random)
            noise = noise / 2 if fault == "half the noise" else noise
            total = mine.sum(dim=0) * (2 if fault == "every row twice" else 1) + noise
            see(PrivateStep(total, theirs, 1.0))

    def state(self) -> State:
        return {"secret": self.secret.tensor()}


def gradients(rows: Dataset) -> torch.Tensor:
    """(n, NUMBERS) float32 of length LONG; those of two labels point in opposite directions."""
    assert rows.labels is not None
    mixed = torch.randn(36, NUMBERS, generator=generator(9))
    signs = torch.sin(7 * ((rows.samples.flatten(1) - 0.5) @ mixed)).sign()
    return LONG * torch.nn.functional.normalize(signs, dim=1) * (1 - 2 * rows.labels[:, :1])


def played(scheme: Steps, seed: int = 0) -> tuple[Played, float]:
    stated = scheme.claim()
    found = audit(scheme, stated, public(), trials=640, secret=Secret.of_seed(seed))
    score = EmpiricalEpsilon()(
        AuditEvidence(stated, found.calls, CONFIDENCE, one_run=True, coins=found.coins, black_box=found.black_box)
    )
    return found, score.value


def test_half_of_the_claim_is_shown_of_correct_noise_and_no_more_than_all_of_it() -> None:
    found, shown = played(Steps())
    assert "white-box" in found.inputs
    assert found.black_box is not None
    assert EPSILON / 2 < shown <= EPSILON


@pytest.mark.parametrize("fault", ["half the noise", "no clip", "wrong neighbours", "batch not sampled",
                                   "every row twice"])  # fmt: skip
def test_a_fault_of_a_private_training_is_refuted(fault: Fault) -> None:
    assert played(Steps(fault))[1] > EPSILON


@dataclass(frozen=True)
class Given(Steps):
    """The same, whose rows of given gradients are clipped as they should be."""

    def sample_key(self, secret: Secret) -> Key:
        return GivenKey(self, secret)


@dataclass(frozen=True)
class GivenKey(StepsKey):
    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        random = generator(int(self.secret.stream("steps").integers(1 << 32)))
        for _ in range(STEPS):
            noise = NOISE * torch.randn(NUMBERS, generator=random)
            see(PrivateStep(torch.nn.functional.normalize(gradients, dim=1).sum(dim=0) + noise, gradients[:0], 1.0))


@pytest.mark.parametrize("fault", ["none", "every row twice"])
def test_real_rows_are_counted_if_they_show_a_fault_that_given_gradients_do_not(fault: Fault) -> None:
    found, shown = played(Given(fault))
    assert found.inputs.startswith("gradient canaries" if fault == "none" else "canaries in the steps")
    assert (shown > EPSILON) == (fault != "none")


def test_the_game_on_the_publication_alone_shows_nothing_of_a_constant_classifier() -> None:
    stated, (found, _) = Steps().claim(), played(Steps("half the noise"))
    assert found.black_box is not None
    outside = AuditEvidence(stated, found.black_box, CONFIDENCE, one_run=True, coins=found.coins)
    assert EmpiricalEpsilon()(outside).value < 3


@pytest.mark.parametrize("paired", [False, True])
def test_log_odds_are_exact_if_gradients_do_not_overlap(paired: bool) -> None:
    k, count, rate, noise = 6, 30, 0.25, 0.7
    first = public(k)
    gradients = torch.eye(2 * k, 600)
    random = generator(0)
    totals = noise * torch.randn(count, 600, generator=random)
    totals[:, :k] += (torch.rand(count, k, generator=random) < rate) * torch.tensor([1.0, 1, 1, 0, 0, 0])

    class Shows(StepsKey):
        def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
            for total in totals:
                see(PrivateStep(2 * total, 3 * gradients[: len(probes)], 2.0))

    key = Shows(Steps(), Secret.of_seed(0))
    odds = statistics_of_steps(key, first, first, first if paired else None, claimed=rate)
    exponents = (totals.double() - 0.5) / noise**2
    exact = torch.log(1 - rate + rate * exponents.exp()).sum(dim=0)
    exact = exact[:k] - exact[k : 2 * k] if paired else exact[: k - 1]
    assert odds.shape == (len(rates(rate)), k)
    assert torch.corrcoef(torch.stack((odds[0, : len(exact)], exact)))[0, 1] > 0.99
    assert (odds[0, : len(exact)] - exact).abs().max() < 0.1 * exact.abs().max() + 0.5


def test_the_steps_of_a_real_training_are_its_noisy_sums_and_the_training_stays_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(private_training, "calibrate", lambda *values, **options: 0.6)
    monkeypatch.setattr(private_training, "account", lambda *values, **options: 8.0)
    data = public(12)
    course = PrivateCourse(epsilon=8.0, delta=1e-5, epochs=1, batch=10_000, learning_rate=0.5, clip_norm=0.7)
    nets, seen = [], list[PrivateStep]()
    assert data.labels is not None
    for watch in (None, Watch(data.samples, data.labels, seen.append)):
        torch.manual_seed(0)
        nets.append(private_cnn((1, 6, 6), 1, width=4))
        before = flat(nets[-1])
        train_privately(
            nets[-1], data.samples, data.labels, course, exclusive=False, secret=Secret.of_seed(3), watch=watch
        )
    assert torch.equal(flat(nets[0]), flat(nets[1]))
    (step,) = seen
    assert torch.allclose(before - flat(nets[1]), 0.5 * step.total / len(data), atol=1e-6)
    torch.manual_seed(0)
    net = private_cnn((1, 6, 6), 1, width=4)
    for row in range(3):
        net.zero_grad()
        row_losses(net(data.samples[row : row + 1]), data.labels[row : row + 1], exclusive=False).sum().backward()
        whole = torch.cat([weight.grad.flatten() for weight in net.parameters() if weight.grad is not None])
        assert torch.allclose(step.gradients[row], whole, atol=1e-5)


def flat(net: torch.nn.Module) -> torch.Tensor:
    return torch.cat([weight.detach().flatten().clone() for weight in net.parameters()])
