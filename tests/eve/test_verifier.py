"""Heads of the verifier: axes, people held out, and figures that learning may not worsen."""

from __future__ import annotations

import torch

from bench.eve.verifier import Course, Pairs, held_out_people, principal_axes, train_heads
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


def test_a_person_is_held_out_whole() -> None:
    people = torch.arange(40) // 4
    held = held_out_people(people, 3)
    assert 0 < int(held.sum()) < 40
    assert torch.equal(held.view(10, 4).any(dim=1), held.view(10, 4).all(dim=1))


def test_people_with_several_rows_are_held_out_among_many_with_one() -> None:
    people = torch.cat((torch.arange(4).repeat_interleave(2), torch.arange(4, 400)))
    for seed in range(20):
        held = held_out_people(people, seed)
        assert int(held[:8].sum()) == 2
        assert int(held[8:].sum()) == 99


def test_learning_finds_the_axes_that_people_share() -> None:
    random = torch.Generator().manual_seed(1)
    people = torch.arange(80).repeat_interleave(3)
    rows = torch.randn(80, 4, generator=random).repeat_interleave(3, dim=0)
    rows = torch.cat((rows, 2 * torch.randn(240, 12, generator=random)), dim=1)
    pairs = [Pairs(rows, rows, torch.arange(240))]
    course = Course(steps=200, least=100, rows=256, learning_rate=1e-2)
    run = train_heads(Heads(16, tied=True), pairs, pairs, people, own=False, course=course, seed=0, part="made")
    assert run.loss < run.learning.points[0][1] - 0.1
    assert run.loss == min(figure for _, figure in run.learning.points)
    shared = run.heads.raw.diagonal().abs()
    assert float(shared[:4].detach().min()) > float(shared[4:].detach().max())


def test_chance_does_not_get_worse() -> None:
    random = torch.Generator().manual_seed(2)
    people, rows = torch.arange(60) // 2, torch.randn(2, 60, 8, generator=random)
    pairs = [Pairs(rows[0], rows[1], torch.arange(60))]
    course = Course(steps=50, least=20, rows=64, learning_rate=1e-2)
    run = train_heads(Heads(8, tied=False), pairs, pairs, people, own=False, course=course, seed=0, part="made")
    assert run.loss <= run.learning.points[0][1] <= run.chance
