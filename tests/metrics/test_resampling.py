from __future__ import annotations

import torch

from metrics.resampling import draw_weights, half_samples


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
