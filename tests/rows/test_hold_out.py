import pytest
import torch
from made.datasets import unlabelled

from bench.rows.grouping import hold_out
from bench.types import Dataset, NotApplicable


def people(sizes):
    subjects = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return Dataset("made", torch.zeros(len(subjects), 2), None, subjects, (), False, True)


def test_held_out_people_have_no_row_in_training():
    data = people([3, 1, 4, 1, 5, 9, 2, 6] * 10)
    training, held = hold_out(data, 0.2, 0)
    assert torch.equal(torch.cat((training, held)).sort().values, torch.arange(len(data)))
    assert not set(data.subjects[training].tolist()) & set(data.subjects[held].tolist())
    assert 0.2 * len(data) - 9 < len(held) <= 0.2 * len(data)
    assert not torch.equal(held, hold_out(data, 0.2, 1)[1])


def test_both_sides_of_a_hold_out_have_somebody():
    for share in (0.0, 1.0):
        training, held = hold_out(people([5, 5]), share, 0)
        assert len(training) == len(held) == 5
    with pytest.raises(NotApplicable, match="made has 1, needs at least 2"):
        hold_out(people([5]), 0.1, 0)


def test_rows_without_people_are_people_of_their_own():
    data = unlabelled(torch.zeros(20, 2))
    training, held = hold_out(data, 0.25, 0)
    assert (len(training), len(held)) == (15, 5)
