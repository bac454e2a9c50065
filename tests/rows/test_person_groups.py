"""Groups whose names a record may bear."""

from __future__ import annotations

import torch

from bench.contract.attributes import Attributes
from bench.rows.grouping import FEWEST, named_groups
from bench.types import Dataset


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
