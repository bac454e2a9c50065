from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.patients import patient_links


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 8), st.data())
def test_every_pair_of_one_person_is_linked_and_no_other(people: list[int], m: int, data: st.DataObject) -> None:
    n = len(people)
    links = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), min_size=1, max_size=20))
    owners = {(people[row], col) for row, col in links}
    expected = {(row, col) for row in range(n) for col in range(m) if (people[row], col) in owners}
    found = patient_links(torch.tensor(links), torch.tensor(people))
    assert {tuple(pair) for pair in found.tolist()} == expected
    assert len(found) == len(expected)
