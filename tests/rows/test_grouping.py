"""Groups whose names a record may bear."""

from __future__ import annotations

import pytest
import torch
from made.datasets import unlabelled

from bench.contract.attributes import Attributes
from bench.rows.grouping import FEWEST, hold_out, named_groups
from bench.types import Dataset, NotApplicable


def rows(sites: list[int], first: int) -> tuple[Dataset, Attributes]:
    """Two rows a person; the second attribute is known of the first person alone."""
    n = len(sites)
    codes = torch.tensor([[site, 0 if row < 2 else -1] for row, site in enumerate(sites)])
    told = Attributes(("site", "name"), (("north", "south"), ("somebody",)), codes)
    subjects = first + torch.arange(n) // 2
    return Dataset("made", torch.zeros(n, 1), None, subjects, (), False, False), told


def test_a_word_that_few_people_have_is_not_named() -> None:
    # Two rows each: half of the people who are needed in either part have the first word, one person the second.
    north = [0] * FEWEST
    parts = [rows([*north, 1, 1], 0), rows(north, 100)]
    assert named_groups(parts) == {"site": ["north"]}
    assert named_groups(parts[:1]) == {}


def test_data_without_words_have_no_groups() -> None:
    assert named_groups([]) == {}


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


@pytest.mark.parametrize("seed", range(5))
def test_a_share_of_people_is_held_out_however_many_rows_they_have(seed):
    data = people([60, *[2] * 31])  # the person of 60 rows ends a share of a quarter of all 122 rows
    training, held = hold_out(data, 0.25, seed, of="people")
    assert len(torch.unique(data.subjects[held])) == 8
    assert not set(data.subjects[held].tolist()) & set(data.subjects[training].tolist())


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
