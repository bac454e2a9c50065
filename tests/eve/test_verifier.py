"""Heads of the verifier: axes, people held out, and figures that learning may not worsen."""

from __future__ import annotations

import torch

from bench.eve.verifier import FOLDS, Course, Entry, Pairs, combine, folds_of, principal_axes, train_heads
from bench.nets.linear_heads import Heads


def test_axes_are_half_whitened_and_centre_each_set() -> None:
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(4000, 3, generator=random) * torch.tensor([16.0, 4.0, 1.0])
    axes = principal_axes([(rows,)])
    found = axes((rows + 5,))
    deviations = found.std(dim=0)
    assert torch.allclose(deviations[:-1] / deviations[1:], torch.tensor([2.0, 2.0]), rtol=0.05)
    assert float(found.mean(dim=0).abs().max()) < 1e-5
    assert abs(float(found.square().sum(dim=1).mean()) - 1) < 1e-3


def test_constant_rows_have_one_axis_and_finite_coordinates() -> None:
    axes = principal_axes([(torch.ones(5, 4),)])
    assert axes((torch.ones(5, 4),)).shape == (5, 1)
    assert bool(axes((torch.rand(5, 4),)).isfinite().all())


def test_plain_axes_keep_all_inner_products() -> None:
    rows = torch.randn(30, 8, generator=torch.Generator().manual_seed(3)) * torch.arange(1.0, 9.0)
    found = principal_axes([(rows,)], 0.0)((rows,))
    centred = rows - rows.mean(dim=0)
    cosine = torch.nn.functional.normalize
    assert torch.allclose(
        cosine(found, dim=1) @ cosine(found, dim=1).T, cosine(centred, dim=1) @ cosine(centred, dim=1).T, atol=1e-4
    )


def test_a_person_is_in_one_fold() -> None:
    people = torch.arange(40) // 4
    folds = folds_of(people, 3)
    assert sorted(torch.bincount(folds).tolist()) == [12, 12, 16]
    assert bool((folds.view(10, 4) == folds.view(10, 4)[:, :1]).all())


def test_people_with_several_rows_are_dealt_evenly_among_many_with_one() -> None:
    people = torch.cat((torch.arange(6).repeat_interleave(2), torch.arange(6, 402)))
    for seed in range(20):
        folds = folds_of(people, seed)
        assert torch.bincount(folds[:12]).tolist() == [4, 4, 4]
        assert torch.bincount(folds[12:]).tolist() == [132, 132, 132]


def test_learning_finds_the_axes_that_people_share() -> None:
    random = torch.Generator().manual_seed(1)
    people = torch.arange(80).repeat_interleave(3)
    rows = torch.randn(80, 4, generator=random).repeat_interleave(3, dim=0)
    rows = torch.cat((rows, 2 * torch.randn(240, 12, generator=random)), dim=1)
    pairs = [Pairs(rows, rows, torch.arange(240))]
    course = Course(steps=200, least=100, rows=256, learning_rate=1e-2)
    start = [Heads(16, tied=True)] * FOLDS
    run = train_heads(
        start, pairs, pairs, people, folds=folds_of(people, 0), own=False, course=course, seed=0, part="made"
    )
    assert run.loss < run.learning.points[0][1] - 0.1
    assert run.loss == min(figure for _, figure in run.learning.points)
    for heads in run.heads:
        shared = heads.raw.diagonal().abs()
        assert float(shared[:4].detach().min()) > float(shared[4:].detach().max())


def test_chance_does_not_get_worse() -> None:
    random = torch.Generator().manual_seed(2)
    people, rows = torch.arange(60) // 2, torch.randn(2, 60, 8, generator=random)
    pairs = [Pairs(rows[0], rows[1], torch.arange(60))]
    course = Course(steps=50, least=20, rows=64, learning_rate=1e-2)
    start = [Heads(8, tied=False)] * FOLDS
    run = train_heads(
        start, pairs, pairs, people, folds=folds_of(people, 0), own=False, course=course, seed=0, part="made"
    )
    assert run.loss <= run.learning.points[0][1] <= run.chance


def entries(*noises: float) -> tuple[list[Entry], torch.Tensor]:
    """Readings of 90 people's rows, each with noise of its own size; and the people."""
    random = torch.Generator().manual_seed(4)
    people = torch.arange(90).repeat_interleave(2)
    truth, found = torch.randn(90, 12, generator=random)[people], []
    for number, noise in enumerate(noises):
        raw, released = (truth + noise * torch.randn(180, 12, generator=random) for _ in range(2))
        pairs = [Pairs(raw, released, torch.arange(180))]
        found.append(Entry(f"reading {number}", (Heads(12, tied=False),) * FOLDS, pairs))
    return found, people


def test_two_readings_together_are_better_than_each() -> None:
    made, people = entries(1.0, 1.0)
    found = combine(made, people, folds=folds_of(people, 0), own=False, seed=0)
    assert not found.alone
    assert len(found.weights) == 2
    assert found.loss < min(found.losses) < max(found.losses) < found.chance


def test_readings_of_noise_get_next_to_no_weight() -> None:
    made, people = entries(100.0, 0.7, 100.0, 100.0)
    found = combine(made, people, folds=folds_of(people, 0), own=False, seed=0)
    assert found.weights[1] > 0.8 * sum(found.weights.values())


def test_a_reading_worse_than_chance_is_not_turned() -> None:
    made, people = entries(0.7, 0.7)
    raw, released = made[0].pairs[0].raw, made[0].pairs[0].released
    made[0] = Entry("turned", made[0].heads, [Pairs(raw, -released, torch.arange(180))])
    assert 0 not in combine(made, people, folds=folds_of(people, 0), own=False, seed=0).weights


def test_without_a_useful_reading_one_is_taken_by_itself() -> None:
    made, people = entries(1e4, 1e4)
    found = combine(made, people, folds=folds_of(people, 0), own=False, seed=0)
    assert found.weights
    assert min(found.losses) > found.chance - 0.1
