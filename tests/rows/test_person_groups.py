"""Groups whose names a record may bear."""

from __future__ import annotations

import torch

from bench.contract.attributes import Attributes
from bench.rows.person_groups import FEWEST, named_groups
from bench.types import Dataset


def rows(sites: list[int], first: int) -> Dataset:
    n = len(sites)
    told = Attributes(
        ("site", "name"), (("north", "south"), ("somebody",)), torch.tensor([[site, 0] for site in sites])
    )
    subjects = first + torch.arange(n) // 2
    return Dataset("made", torch.zeros(n, 1), None, subjects, (), False, False, attributes=told)


def test_a_word_that_few_people_have_is_not_named() -> None:
    # Two rows each: half of the people who are needed in either part have the first word, one person the second.
    north = [0] * FEWEST
    parts = [replaced(rows([*north, 1, 1], 0)), replaced(rows(north, 100))]
    assert named_groups(parts) == {"site": ["north"]}
    assert named_groups(parts[:1]) == {}


def test_data_without_words_have_no_groups() -> None:
    assert named_groups([Dataset("made", torch.zeros(2, 1), None, None, (), False, False)]) == {}


def replaced(data: Dataset) -> Dataset:
    """With the second attribute known of one person alone."""
    assert data.attributes is not None
    codes = data.attributes.codes.clone()
    codes[2:, 1] = -1
    told = Attributes(data.attributes.names, data.attributes.groups, codes)
    return Dataset("made", data.samples, None, data.subjects, (), False, False, attributes=told)
