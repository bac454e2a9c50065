import math

import pytest
import torch
from torch import nn

from bench.eve import contrast
from bench.eve.contrast import Course, Example, train, training_precision
from bench.nets.contrastive_towers import Tower, Towers
from bench.nets.training import seeded


class Fixed(nn.Module):
    """A tower of one weight, which turns each row towards the first axis: no row can be told from another."""

    def __init__(self, share):
        super().__init__()
        self.share = nn.Parameter(torch.tensor(share))

    def forward(self, rows):
        return nn.functional.normalize(rows * self.share + torch.eye(8)[0] * 0, dim=1)


def exercise(course, rates):
    """Train towers that know half of the rows from the start and can learn no more; records the learning rates."""
    rows = torch.eye(8)
    seen = torch.cat((rows[:4], rows[4:5].expand(4, 8)))  # the last four look alike
    links = torch.arange(8).unsqueeze(1).expand(8, 2)
    towers = Towers(Fixed(1.0), Fixed(1.0))

    def example(step):
        return Example(seen, seen, links)

    step = torch.optim.Adam.step

    def noted(self, *args, **kwargs):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", noted)
        return train(towers, example, [example(0)], course)


def test_a_plateau_below_chance_runs_through_the_rest_of_the_cosine():
    rates = []
    outcome = exercise(Course(steps=10_000, learning_rate=1e-2, enough=0.01, least=100), rates)
    assert outcome.reason == "plateau"
    assert outcome.steps < 2000
    assert outcome.loss < 0.5 * outcome.chance
    cooled = outcome.steps - outcome.steps * 4 // 5
    assert rates[-cooled - 2] > 0.9e-2
    assert rates[-1] < 1e-4
    assert all(late <= early for early, late in zip(rates[-cooled:], rates[-cooled + 1 :], strict=False))
    curve = outcome.learning()
    assert curve.converged
    assert curve.points[-1] == (outcome.steps, outcome.loss)


def test_towers_that_know_nothing_are_trained_for_the_least_steps():
    rows = torch.eye(8)[:1].expand(8, 8)
    example = Example(rows, rows, torch.arange(8).unsqueeze(1).expand(8, 2))
    outcome = train(Towers(Fixed(1.0), Fixed(1.0)), lambda step: example, [example], Course(10_000, 1e-3, 0.01, 400))
    assert outcome.loss == pytest.approx(outcome.chance, abs=1e-4)
    assert (outcome.reason, outcome.steps) == ("plateau", 500)  # with a quarter more, of a falling rate


def test_without_a_plateau_the_cosine_is_the_plain_one():
    rates = []
    outcome = exercise(Course(steps=120, learning_rate=1e-3, enough=0.01, least=1000), rates)
    assert (outcome.reason, outcome.steps) == ("last step", 120)
    assert not outcome.learning().converged
    assert outcome.learning().reason == "the budget of 120 steps ended first"
    plain = [1e-3 * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / 120)) for step in range(120)]
    assert rates == pytest.approx(plain)


def test_chance_counts_every_link():
    with seeded(0):
        towers = Towers(nn.Linear(3, 4), nn.Linear(3, 4))
    links = torch.tensor([[0, 0], [1, 0], [2, 1], [3, 1]])  # two raw rows a released row
    example = Example(torch.rand(4, 3), torch.rand(2, 3), links)
    outcome = train(towers, lambda step: example, [example], Course(1, 1e-9, 0.0, 100))
    assert outcome.chance == pytest.approx((math.log(2) + math.log(4 / 2)) / 2)


def test_the_cpu_trains_in_float32():
    assert training_precision(torch.device("cpu")) == "float32"


def test_held_out_losses_and_scores_never_use_bfloat16(monkeypatch):
    precisions, held_out = [], []
    plain, judged = contrast._loss, contrast.contrastive_towers.symmetric_loss

    def seen(logits, linked):
        if not torch.is_grad_enabled():
            held_out.append((torch.is_autocast_enabled("cpu"), logits.dtype))
        return judged(logits, linked)

    monkeypatch.setattr(contrast.contrastive_towers, "symmetric_loss", seen)

    def noted(towers, one, precision):
        precisions.append((torch.is_grad_enabled(), precision))
        return plain(towers, one, "bfloat16" if precision == "bfloat16" else precision)

    monkeypatch.setattr(contrast, "_loss", noted)
    monkeypatch.setattr(contrast, "training_precision", lambda device: "bfloat16")
    rates = []
    outcome = exercise(Course(steps=12, learning_rate=1e-3, enough=0.01, least=100), rates)
    assert outcome.precision == "bfloat16"
    assert set(precisions) == {(True, "bfloat16")}
    assert set(held_out) == {(False, torch.float32)}


def test_under_bfloat16_products_and_loss_stay_float32():
    with seeded(0):
        towers = Towers(*(Tower("sau", (1, 16, 16), width=16, depth=1, relations=True) for _ in range(2)))
        rows = torch.rand(8, 1, 16, 16)
    example = Example(rows, rows.flip(3), torch.arange(8).unsqueeze(1).expand(8, 2))
    plain, fast = (contrast._loss(towers, example, precision) for precision in ("float32", "bfloat16"))
    assert fast.dtype == torch.float32
    assert not torch.equal(fast, plain)  # bfloat16 was used
    assert torch.allclose(fast, plain, rtol=0.05)
