from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.statistics.bootstrap import bootstrap_sums, bounds, draw_weights, half_samples, units_of


def test_half_samples_hold_half_of_the_people_whole() -> None:
    subjects = torch.tensor([3, 3, 1, 1, 1, 8, 9, 9])
    for rows in half_samples(subjects, 8, 5, seed=0):
        people = set(subjects[rows].tolist())
        assert len(people) == 2
        assert len(rows) == int(torch.isin(subjects, torch.tensor(sorted(people))).sum())


def test_bootstrap_weights_move_people_together() -> None:
    subjects = torch.tensor([0, 0, 1, 2, 2])
    weights = draw_weights(subjects, 5, 50, seed=0)
    assert torch.equal(weights[:, 0], weights[:, 1])
    assert torch.equal(weights[:, 3], weights[:, 4])
    assert bool((weights[:, [0, 2, 3]].sum(dim=1) == 3).all())


@pytest.mark.parametrize("subjects", [None, torch.tensor([5, 5, 0, 2, 2, 2])])
def test_bootstrap_sums_are_weighted_sums(subjects: torch.Tensor | None) -> None:
    values = torch.arange(12.0).reshape(6, 2)
    weights = draw_weights(subjects, 6, 40, seed=3)
    torch.testing.assert_close(bootstrap_sums(values, subjects, 40, seed=3), weights.double() @ values.double())


def test_bootstrap_sums_of_many_rows_take_little_memory() -> None:
    # Weights of 400 draws of 50,000 rows would be 160 MB; the sums need a hundredth of it.
    tracer = Largest()
    with tracer:
        bootstrap_sums(torch.ones(50_000, 1), None, 400, seed=0)
    assert tracer.numbers <= 400_000


@pytest.mark.parametrize("people", [2, 5])
def test_bounds_of_few_people_hold_the_truth_as_often_as_those_of_many(people: int) -> None:
    random, held = torch.Generator().manual_seed(0), 0
    subjects = torch.arange(people).repeat_interleave(2)
    for run in range(150):
        values = torch.randn(people, generator=random, dtype=torch.float64).repeat_interleave(2)
        total, rows = bootstrap_sums(torch.stack((values, torch.ones_like(values)), dim=1), subjects, 200, seed=run).T
        low, high = bounds(float(values.mean()), total / rows, units_of(subjects, len(values)))
        assert low is not None
        assert high is not None
        held += low <= 0 <= high
    assert held >= 131  # percentiles of 5 people hold it 119 times, of two 75


def test_one_person_has_no_bounds() -> None:
    same = torch.zeros(4)
    assert bounds(1.0, torch.ones(400), units_of(same, 4)) == (None, None)


class Largest(TorchDispatchMode):
    """The largest tensor that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        self.numbers = max(
            [self.numbers, *(part.numel() for part in tree_leaves(made) if isinstance(part, torch.Tensor))]
        )
        return made
