"""A network's training ends when it falls behind the best model so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch

from bench.bob import recipe_training
from bench.bob.recipe_training import Judge, Moment, Rows, Training
from bench.bob.recipes import BobPlan, Recipe


@pytest.mark.parametrize(
    ("aucs", "leads", "tenths"),
    [
        ([0.85], [0.9], 3),  # at 3 tenths it may be .06 * .7 behind
        ([0.88], [0.9], 7),
        ([0.895], [0.9], 10),
        ([0.54], [0.5], 5),  # without a lead that is clear of chance it needs .55 by half of its course
        ([0.56], [0.5], 10),
        ([0.85, 0.88], [0.9, 0.9], 7),  # the judge that is content longest decides
    ],
)
def test_a_network_ends_where_it_falls_too_far_behind(
    monkeypatch: pytest.MonkeyPatch, aucs: Sequence[float], leads: Sequence[float], tenths: int
) -> None:
    drawn: list[int] = []

    def moments(*settings: object, **options: object) -> Iterator[Moment]:
        for tenth in range(1, 11):
            drawn.append(tenth)
            yield Moment(tenth / 10, torch.nn.Identity(), tuple(torch.zeros(1, 1) for _ in aucs))

    monkeypatch.setattr(recipe_training, "moments", moments)
    judges = [Judge(torch.zeros(1, 1), lambda predictions, at, auc=auc: auc) for auc in aucs]  # type: ignore[misc]
    training = Training(False, BobPlan(), "float32", 0)
    course = training.train(Recipe("resnet18"), Rows(torch.zeros(1, 1), torch.zeros(1, 1)), judges, leads)
    assert drawn[-1] == tenths
    assert course.stopped is (tenths < 10)
    assert [best.auc for best in course.best] == aucs
