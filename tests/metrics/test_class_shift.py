from __future__ import annotations

import pytest
import torch

from bench.evidence import SetEvidence
from bench.types import NotApplicable, Score
from metrics.class_shift import ClassShift, shares

OCTDL = (752, 700, 599, 13)
"""Four classes of 2,064 rows, the smallest of 13."""


def one_hot(*counts: int) -> torch.Tensor:
    numbers = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return torch.nn.functional.one_hot(numbers, len(counts)).float()


def shift(labels: torch.Tensor | None, released: torch.Tensor | None, *, exclusive: bool = True) -> Score:
    rows, names = torch.zeros(3, 1), tuple("abcdef"[: 0 if labels is None else labels.shape[1]])
    return ClassShift()(SetEvidence(rows, rows, None, None, 5, labels, released, names, exclusive))


def inside(score: Score) -> bool:
    assert score.null_low is not None
    assert score.null_high is not None
    return score.null_low <= score.value <= score.null_high


def test_a_release_that_keeps_every_label_moves_nothing() -> None:
    labels = one_hot(*OCTDL)
    score = shift(labels, labels.flip(0))
    assert score.value == 0.0
    assert (score.low, score.high) == (None, None)
    assert all(part.value == 0.0 for part in score.parts.values())
    assert score.p is not None
    assert score.p < 0.01  # closer than chance


def test_a_generator_that_draws_by_proportions_is_what_chance_gives() -> None:
    labels = one_hot(*OCTDL)
    drawn = torch.randint(2064, (2064,), generator=torch.Generator().manual_seed(3))
    score = shift(labels, labels[drawn])
    assert score.value > 0
    assert inside(score)
    assert all(inside(part) for part in score.parts.values())


def test_a_class_of_13_that_is_lost_shows_in_its_own_part_and_by_name() -> None:
    score = shift(one_hot(*OCTDL), one_hot(765, 700, 599, 0))
    assert score.value == pytest.approx(13 / 2064)
    assert score.parts["d"].value == pytest.approx(-13 / 2064)
    assert not inside(score.parts["d"])
    assert score.parts["d"].p is not None
    assert score.parts["d"].p < 0.01
    assert "not released at all: d" in score.note


def test_equal_classes_in_place_of_unequal_ones_are_far_outside_chance() -> None:
    score = shift(one_hot(*OCTDL), one_hot(516, 516, 516, 516))
    # By hand: (752 - 516 + 700 - 516 + 599 - 516) / 2064.
    assert score.value == pytest.approx(503 / 2064)
    assert not inside(score)
    assert score.p == pytest.approx(2 / 1000)  # the least that 999 draws can say


def test_findings_are_compared_where_they_are_known() -> None:
    nan = torch.nan
    labels = torch.tensor([[1.0, 0.0], [0.0, nan], [nan, 0.0], [nan, nan], [1.0, 1.0]])
    released = torch.tensor([[1.0, nan], [0.0, 0.5], [nan, nan]])
    assert shares(labels).tolist() == pytest.approx([2 / 3, 1 / 3])
    score = shift(labels, released, exclusive=False)
    assert score.parts["a"].value == pytest.approx(1 / 2 - 2 / 3)
    assert score.parts["b"].value == pytest.approx(1 / 2 - 1 / 3)  # a soft label counts by its size
    assert score.value == pytest.approx(1 / 6)


def test_more_withheld_labels_are_no_shift() -> None:
    labels = one_hot(40, 60)[:, :1]
    released = torch.where((torch.arange(100) % 2 == 0)[:, None], torch.nan, labels)
    assert shift(labels, released, exclusive=False).value == 0.0


@pytest.mark.parametrize(
    ("labels", "released"),
    [
        (None, None),
        (one_hot(3, 4), None),
        (one_hot(3, 4), torch.full((5, 2), torch.nan)),
        (one_hot(3, 4), torch.tensor([[1.0, torch.nan]])),
    ],
)
def test_without_labels_there_are_no_proportions(labels: torch.Tensor | None, released: torch.Tensor | None) -> None:
    with pytest.raises(NotApplicable, match="class proportions need"):
        shift(labels, released, exclusive=False)
