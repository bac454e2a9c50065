"""Attribute advantage: hand values, chance, and unknown groups."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.evidence import AttributeEvidence, UtilityEvidence
from bench.results.records import RANGES
from bench.types import NotApplicable
from metrics.attribute_advantage import AttributeAdvantage, _exchanged


def guesses(scores: torch.Tensor, labels: torch.Tensor, subjects: torch.Tensor | None = None) -> UtilityEvidence:
    return UtilityEvidence([scores[:, None].float()], labels[:, None].float(), subjects, ("group",), 1)


def of(**parts: UtilityEvidence) -> AttributeEvidence:
    return AttributeEvidence(parts, parts)


def test_the_advantage_is_twice_the_auc_less_one() -> None:
    score = AttributeAdvantage()(of(sex=guesses(torch.tensor([1.0, 3.0, 2.0, 4.0]), torch.tensor([0, 0, 1, 1]))))
    assert score.value == pytest.approx(2 * 0.75 - 1)
    assert score.p is None
    assert "no p: too few people" in score.note


def test_equal_guesses_have_no_advantage() -> None:
    score = AttributeAdvantage()(of(sex=guesses(torch.ones(40), torch.arange(40) % 2)))
    assert score.value == 0
    assert score.p == 1


def test_sure_guesses_are_sure_and_beyond_chance() -> None:
    score = AttributeAdvantage()(of(sex=guesses(torch.arange(40) % 2, torch.arange(40) % 2)))
    assert score.value == 1
    assert score.low is not None
    assert score.low < 1
    assert score.p is not None
    assert score.p < 0.001


def test_the_largest_of_several_is_held_against_the_largest_by_chance() -> None:
    random = torch.Generator().manual_seed(0)
    many = {
        name: guesses(torch.rand(60, generator=random), torch.randint(2, (60,), generator=random)) for name in "abcdef"
    }
    one, score = AttributeAdvantage()(of(a=many["a"])), AttributeAdvantage()(of(**many))
    assert one.null == pytest.approx(0, abs=0.02)
    assert score.null is not None
    assert score.null > 0.1
    assert score.value == max(score.parts[name].value for name in many)
    assert score.p is not None
    assert score.p > min(part.p for part in score.parts.values() if part.p is not None)


def test_the_first_draw_is_the_figure_itself_without_unknown_groups() -> None:
    random = torch.Generator().manual_seed(1)
    part = guesses(torch.rand(50, generator=random), torch.arange(50) % 2)
    assert float(_exchanged({"a": part})["a"][0]) == pytest.approx(AttributeAdvantage()(of(a=part)).value)


def test_a_person_keeps_images_together() -> None:
    """Twenty images of one person each: guesses of people are twenty times the evidence of rows, and no more."""
    person = torch.arange(12).repeat_interleave(20)
    truth, noise = person % 2, torch.rand(12, generator=torch.Generator().manual_seed(2))
    scores = (truth * 0.3 + noise[torch.arange(12)][person]).float()
    by_person = AttributeAdvantage()(of(a=guesses(scores, truth, person))).p
    by_row = AttributeAdvantage()(of(a=guesses(scores, truth))).p
    assert by_person is not None
    assert by_row is not None
    assert by_person > 10 * by_row


def test_rows_of_unknown_groups_are_not_judged() -> None:
    labels = (torch.arange(40) % 2).float()
    part = guesses(torch.arange(40) % 2, labels)
    labels = part.labels.clone()
    labels[:10] = torch.nan
    wrong = part.scores[0].clone()
    wrong[:10] = 1 - wrong[:10]
    score = AttributeAdvantage()(of(a=replace(part, scores=[wrong], labels=labels)))
    assert score.value == 1
    assert score.p is not None
    assert score.p < 0.001


def test_one_class_alone_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no attribute has a group with people in it and out of it"):
        AttributeAdvantage()(of(sex=guesses(torch.arange(20), torch.ones(20))))


def test_other_attributes_of_raw_rows_are_refused() -> None:
    part = guesses(torch.arange(4), torch.arange(4) % 2)
    with pytest.raises(ValueError, match="expected the same attributes of the same rows"):
        AttributeEvidence({"sex": part}, {"age": part})


def test_an_advantage_below_a_guess_can_be_recorded() -> None:
    low, _ = RANGES.get(AttributeAdvantage.unit, (-1, 1))
    score = AttributeAdvantage()(of(sex=guesses(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([0, 0, 1, 1]))))
    assert low <= score.value == pytest.approx(-1)
