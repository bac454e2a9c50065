import math

import pytest
import torch

from bench.owner.generator_state import LabelMix
from bench.randomness import Secret

LABELS = torch.tensor([[1.0, 0.0], [1.0, math.nan], [1.0, 0.0], [0.0, 1.0]])


def test_a_mix_counts_patterns_of_labels_and_gives_them_back():
    mix, number = LabelMix.of(LABELS, torch.zeros(4, 3))
    assert sorted(mix.proportions.tolist()) == [0.25, 0.25, 0.5]
    assert torch.equal(mix.labels(number).nan_to_num(-1), LABELS.nan_to_num(-1))


def test_rows_without_labels_are_of_one_class_without_labels():
    mix, number = LabelMix.of(None, torch.zeros(4, 3))
    assert number.tolist() == [0, 0, 0, 0]
    assert mix.labels(mix.draw(3, Secret.of_seed(0).stream())) is None


def test_classes_are_drawn_by_their_proportions():
    mix = LabelMix(torch.tensor([[0.0], [1.0], [math.nan]]), torch.tensor([0.7, 0.3, 0.0], dtype=torch.float64))
    drawn = mix.draw(10_000, Secret.of_seed(1).stream())
    assert torch.equal(drawn, mix.draw(10_000, Secret.of_seed(1).stream()))
    assert not torch.equal(drawn, mix.draw(10_000, Secret.of_seed(2).stream()))
    counts = torch.bincount(drawn, minlength=3)
    assert counts[2] == 0
    assert abs(float(counts[1]) / 10_000 - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 10_000)


def test_no_rows_and_proportions_that_are_none_are_refused():
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        LabelMix.of(LABELS, torch.zeros(4, 3))[0].draw(0, Secret.of_seed(1).stream())
    for proportions in ([0.5, 0.6], [1.5, -0.5], [math.nan, 1.0]):
        with pytest.raises(ValueError, match="proportions must be at least 0 with sum 1"):
            LabelMix(torch.zeros(2, 1), torch.tensor(proportions, dtype=torch.float64))


@pytest.mark.parametrize("label", [math.inf, -1.0, 7.0])
def test_a_stranger_s_classes_have_labels(label):
    state = LabelMix.of(LABELS, torch.zeros(4, 3))[0].state()
    state["classes"][1, 0] = label
    with pytest.raises(ValueError, match=r"labels of classes must be NaN or in \[0, 1\]"):
        LabelMix.load(state)
