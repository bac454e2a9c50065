from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from scipy.stats import norm
from torch import Tensor, nn

from bench.nets import private_training
from bench.nets.convolutional_networks import private_cnn
from bench.nets.private_training import PrivateCourse, account, calibrate, row_losses, train_privately
from bench.randomness import Grid, Secret
from bench.types import Dataset, NotApplicable
from methods.dp_sgd import DPSGD

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = float("nan")
COURSE = PrivateCourse(epsilon=8.0, delta=1e-5, epochs=1, batch=10_000, learning_rate=0.5, clip_norm=0.7)


def data(n: int = 240, seed: int = 0, *, table: bool = False, exclusive: bool = False) -> Dataset:
    """Rows whose second half (columns, or pixels) is higher where the label is 1; two classes or a finding."""
    source = torch.Generator().manual_seed(seed)
    samples = torch.randn((n, 6) if table else (n, 1, 8, 8), generator=source)
    yes = torch.arange(n) % 2 == 1
    samples[yes, ..., samples.shape[-1] // 2 :] += 1.5
    labels = torch.stack((~yes, yes), dim=1).float() if exclusive else yes.float()[:, None]
    return Dataset("made", samples, labels, None, ("no", "yes") if exclusive else ("yes",), exclusive, True)


def network(findings: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return private_cnn((1, 8, 8), findings, width=4)


def weights(net: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in net.parameters()])


def one_step(rows: Tensor, labels: Tensor, *, exclusive: bool) -> tuple[Tensor, float]:
    """The step that one batch of all rows makes, in units of the sum of their gradients; and the epsilon spent."""
    net = network(labels.shape[1])
    before = weights(net)
    spent = train_privately(net, rows, labels, COURSE, exclusive=exclusive, secret=Secret.of_seed(3))
    return (before - weights(net)) * len(rows) / 0.5, spent


@pytest.mark.parametrize(("epsilon", "steps"), [(0.2, 1), (1.0, 40), (10.0, 5), (500.0, 5)])
def test_the_noise_keeps_the_budget_of_the_gaussian_mechanism_and_wastes_little(epsilon: float, steps: int) -> None:
    multiplier = calibrate(epsilon, 1e-5, share=1.0, steps=steps)
    mu = (
        math.sqrt(steps) / multiplier
    )  # all rows in every step: one Gaussian mechanism (Balle and Wang 2018, theorem 8)
    for bound, holds in ((epsilon, True), (0.95 * epsilon, False)):
        delta = norm.cdf(mu / 2 - bound / mu) - math.exp(bound) * norm.cdf(-mu / 2 - bound / mu)
        assert (delta <= 1e-5) == holds


def test_sampling_rows_spends_less_than_taking_them_all() -> None:
    whole, part = (account(4.0, 1e-5, share=share, steps=20, error=0.01) for share in (1.0, 0.25))
    assert part < whole / 2


@pytest.mark.parametrize("exclusive", [True, False])
def test_no_row_moves_the_sum_of_gradients_by_more_than_the_clip(exclusive: bool) -> None:
    rows = data(24, exclusive=True)
    labels = rows.labels
    assert labels is not None
    if not exclusive:
        labels = labels.clone()
        labels[3, 0], labels[5, 1] = NAN, NAN
    without = labels.clone()
    without[3] = NAN  # a row without a label counts for nothing: as if it were not there
    moved = [one_step(rows.samples, each, exclusive=exclusive)[0] for each in (labels, without)]
    # The first gradient of a zero head is long, as its features are: it is cut to the clip.
    assert float(torch.linalg.vector_norm(moved[0] - moved[1])) == pytest.approx(COURSE.clip_norm, rel=1e-3)


def test_weights_of_a_training_whose_clip_did_not_hold_never_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, places = data(24, exclusive=True), Grid.places
    monkeypatch.setattr(Grid, "places", lambda *given, **how: 2 * places(*given, **how))
    with pytest.raises(AssertionError, match="longer than the clip"):
        one_step(rows.samples, rows.labels, exclusive=True)


def test_without_labels_the_step_is_the_calibrated_noise_alone() -> None:
    step, spent = one_step(data(24).samples, torch.full((24, 2), NAN), exclusive=False)
    assert 0.95 * COURSE.epsilon < spent <= COURSE.epsilon
    expected = COURSE.clip_norm * calibrate(COURSE.epsilon, 1e-5, share=1.0, steps=1)
    # The mean square of d normal numbers has relative deviation root(2 / d): five of them.
    assert float(step.square().mean()) == pytest.approx(expected**2, rel=5 * math.sqrt(2 / len(step)))


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_rows_loss_is_its_own(exclusive: bool) -> None:
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.eye(3).repeat(2, 1)
    labels[1], labels[2, 0] = NAN, NAN
    alone = torch.cat([row_losses(logits[[row]], labels[[row]], exclusive=exclusive) for row in range(6)])
    assert torch.equal(row_losses(logits, labels, exclusive=exclusive), alone)
    assert alone[1] == 0
    log = logits.double().log_softmax(dim=1) if exclusive else nn.functional.logsigmoid(logits.double())
    rest = 0 if exclusive else nn.functional.logsigmoid(-logits.double())[0, 1:].sum()
    assert float(alone[0]) == pytest.approx(-float(log[0, 0] + rest) / (1 if exclusive else 3), rel=1e-5)


@pytest.mark.parametrize(("table", "exclusive"), [(False, True), (True, False)])
def test_an_easy_task_is_learned_with_a_budget(table: bool, exclusive: bool) -> None:
    private, test = (data(n, seed, table=table, exclusive=exclusive) for n, seed in ((240, 1), (400, 2)))
    assert private.labels is not None
    private.labels[:20] = NAN
    key = (
        DPSGD(epsilon=8.0, width=4, epochs=10, batch=240)
        .fit(data(100, 3, table=table), 0)
        .sample_key(Secret.of_seed(0))
    )
    scores = key.classifier(private)(test.samples)
    assert scores.shape == (400, len(test.findings))
    right = ((scores[:, -1] > (scores[:, 0] if exclusive else 0)) == (torch.arange(400) % 2 == 1)).double().mean()
    assert right > 0.65  # chance is a half, with deviation .025: six of them, one in a billion


def test_columns_are_standardised_by_the_public_rows_and_a_constant_one_is_centred() -> None:
    random = torch.Generator().manual_seed(0)
    public, private = (torch.randn(50, 3, generator=random) * torch.tensor([0.1, 1.0, 20.0]) + 3 for _ in range(2))
    public[:, 1] = 3
    method = DPSGD()
    learned = method.fit(replace(data(50, table=True), samples=public), 0).state()
    spread = torch.stack((public[:, 0].std(correction=0), torch.tensor(1.0), public[:, 2].std(correction=0)))
    torch.testing.assert_close(method.read(private, learned), (private - public.mean(dim=0)) / spread)


def test_same_seed_same_classifier_and_another_key_another_one() -> None:
    private, method = data(60, 1), DPSGD(width=4, epochs=1, batch=60)
    scheme = method.fit(data(60, 2), 0)
    key = scheme.sample_key(Secret.of_seed(1))
    before = torch.random.get_rng_state()
    scores = key.classifier(private)(private.samples)
    assert torch.equal(before, torch.random.get_rng_state())
    again = method.load(scheme.state()).load_key(key.state())
    assert torch.equal(again.classifier(private)(private.samples), scores)
    assert not torch.equal(scheme.sample_key(Secret.of_seed(2)).classifier(private)(private.samples), scores)


def test_batches_that_draw_no_row_are_noise_alone() -> None:
    scores = (
        DPSGD(width=4, epochs=1, batch=1)
        .fit(data(20), 0)
        .sample_key(Secret.of_seed(0))
        .classifier(data(20))(data(20).samples)
    )
    assert scores.isfinite().all()


def test_features_can_be_learned_on_public_rows_first() -> None:
    public = data(64, 2)
    method = DPSGD(width=4, pretrain=1, epochs=1)
    state = method.fit(public, 0).state()
    assert any(name.startswith("features.") for name in state)
    private = data(40, 1)
    scores = [
        DPSGD(width=4, epochs=1).load(learned).sample_key(Secret.of_seed(0)).classifier(private)(private.samples)
        for learned in (state, {"mean": state["mean"], "std": state["std"]})
    ]
    assert not torch.equal(scores[0], scores[1])
    with pytest.raises(NotApplicable, match="table"):
        method.fit(data(20, table=True), 0)
    with pytest.raises(NotApplicable, match="needs public labels"):
        method.fit(replace(public, labels=None), 0)


def test_nothing_is_released() -> None:
    key = DPSGD(width=4).fit(data(20), 0).sample_key(Secret.of_seed(0))
    with pytest.raises(NotApplicable, match="nothing is released"):
        key.release(data(20))
    with pytest.raises(NotApplicable, match="no labels"):
        key.classifier(replace(data(20), labels=None))


def test_the_claim_names_the_budget_and_its_unit() -> None:
    image, table = (DPSGD(epsilon=0.2).fit(data(20, table=table), 0).claim() for table in (False, True))
    assert (image.unit, image.epsilon, image.delta, image.derived) == ("image", 0.2, 1e-5, None)
    assert table.unit == "record"
    assert "PRV" in image.basis
    assert "balancing" in image.assumptions
    assert DPSGD(delta=1e-3).fit(data(20), 0).claim().delta == 1e-3


def test_a_delta_that_would_allow_to_publish_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1 / n"):
        DPSGD(delta=0.05, width=4).fit(data(20), 0).sample_key(Secret.of_seed(0)).classifier(data(20))


def test_two_accountants_agree_on_what_training_spends() -> None:
    pytest.importorskip("dp_accounting")
    found = DPSGD(epsilon=1.0, epochs=4).load({}).accounts(300)
    assert set(found) == {"Opacus, PRV", "dp-accounting, PLD"}
    assert max(found.values()) <= 1.0
    assert abs(found["Opacus, PRV"] - found["dp-accounting, PLD"]) < 0.03


def test_the_cadp_papers_baseline_repeats_to_the_bit_though_it_drops_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_training, "calibrate", cache(calibrate))  # which takes seconds, twice the same
    method = DPSGD(epsilon=50.0, delta=0.004, epochs=1, network="strided", optimiser="adam", clip_norm=10.0)
    rows = data(60, exclusive=True)
    scheme = method.load(method.fit(data(seed=1, exclusive=True), 0).state())
    scores = [scheme.sample_key(Secret.of_seed(2)).classifier(rows)(rows.samples) for _ in range(2)]
    assert torch.equal(*scores)
    assert scores[0].shape == (60, 2)


def test_a_linear_model_of_scattering_coefficients_learns() -> None:
    method = DPSGD(epsilon=50.0, delta=0.004, epochs=2, network="scattering")
    scheme = method.fit(data(seed=1, exclusive=True), 0)
    test = data(80, seed=5, exclusive=True)
    scores = scheme.sample_key(Secret.of_seed(2)).classifier(data(exclusive=True))(test.samples)
    assert test.labels is not None
    assert float((scores.argmax(dim=1) == test.labels.argmax(dim=1)).double().mean()) > 0.8


def test_with_fixed_features_every_gradient_is_cut_to_the_clip_and_noise_is_as_calibrated() -> None:
    """What is learned is a linear layer of coefficients: the budget is that of any other."""
    method = DPSGD(network="scattering")
    rows = data(24)
    features = method.read(rows.samples, method.fit(rows, 0).state())
    assert features.shape == (24, 81 * 4)
    net = method.classifier(tuple(features.shape[1:]), 2)
    before = weights(net)
    spent = train_privately(
        net, features, torch.full((24, 2), NAN), COURSE, exclusive=False, secret=Secret.of_seed(3)
    )  # nothing is known of any row: the noise alone
    step = (before - weights(net)) * len(rows) / 0.5
    expected = COURSE.clip_norm * calibrate(COURSE.epsilon, 1e-5, share=1.0, steps=1)
    assert 0.95 * COURSE.epsilon < spent <= COURSE.epsilon
    assert float(step.square().mean()) == pytest.approx(expected**2, rel=5 * math.sqrt(2 / len(step)))


def test_adam_keeps_its_rate_and_sgd_rises_and_falls() -> None:
    adam, sgd = (replace(COURSE, learning_rate=None, optimiser=name) for name in ("adam", "sgd"))
    assert adam.peak(1000) == 5e-4
    assert [adam.rate(step, 20, 5e-4) for step in (0, 10, 19)] == [5e-4] * 3
    assert [round(sgd.rate(step, 20, 1.0), 3) for step in (0, 1, 10, 19)] == [0.5, 0.994, 0.5, 0.006]


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ValueError, match="those of network=scattering are fixed"):
        DPSGD(network="scattering", pretrain=1)
    with pytest.raises(ValueError, match="network must be one of"):
        DPSGD(network="resnet")
    small = replace(data(), samples=torch.zeros(240, 1, 4, 4))
    with pytest.raises(NotApplicable, match="images of 8 pixels a side"):
        DPSGD(network="scattering").fit(small, 0)
