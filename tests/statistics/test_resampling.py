from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.statistics.resampling import bootstrap_sums, draw_weights, half_samples


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


class Largest(TorchDispatchMode):
    """The largest tensor that any operation made."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        self.numbers = max(
            [self.numbers, *(part.numel() for part in tree_leaves(made) if isinstance(part, torch.Tensor))]
        )
        return made
