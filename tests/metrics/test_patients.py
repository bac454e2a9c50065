from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from metrics.patients import FEWEST, exchanged_links, patient_links


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


@st.composite
def linked_people(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Persons of one to three images in any order, and links of any kind."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=14))
    people = draw(st.permutations([person for person, size in enumerate(sizes) for _ in range(size)]))
    m = draw(st.integers(1, 8))
    links = draw(st.sets(st.tuples(st.integers(0, len(people) - 1), st.integers(0, m - 1)), min_size=1, max_size=20))
    return list(people), sorted(links)


@settings(max_examples=200, deadline=None)
@given(linked_people(), st.integers(0, 5))
def test_exchanged_links_keep_their_structure(case: tuple[list[int], list[tuple[int, int]]], seed: int) -> None:
    people, links = case
    size = Counter(people)
    sharing = Counter(size.values())
    exchangeable = [(row, col) for row, col in links if sharing[size[people[row]]] >= FEWEST]
    sets = exchanged_links(torch.tensor(links), torch.tensor(people), len(people), sets=3, seed=seed)
    if not exchangeable:
        assert sets == []
        return
    assert [tuple(pair) for pair in sets[0].tolist()] == exchangeable
    for exchanged in sets[1:]:
        pairs = list(zip(exchangeable, exchanged.tolist(), strict=True))
        assert [col for (_, col), _ in pairs] == [col for _, (_, col) in pairs]
        renamed = {before[0]: after[0] for before, after in pairs}
        assert len(set(renamed.values())) == len(renamed)
        assert all(renamed[before[0]] == after[0] for before, after in pairs)
        persons = {people[row]: people[other] for row, other in renamed.items()}
        assert all(persons[people[row]] == people[other] for row, other in renamed.items())
        assert all(size[person] == size[other] and person != other for person, other in persons.items())


def test_every_cycle_of_people_is_as_likely() -> None:
    n, sets = 5, 3000
    found = Counter(
        tuple(exchanged[:, 0].tolist())
        for exchanged in exchanged_links(torch.arange(n).repeat(2, 1).T, None, n, sets=sets, seed=1)[1:]
    )
    # Chi-squared over the 24 cycles: 23 degrees of freedom, exceeded once in a thousand.
    cycles = math.factorial(n - 1)
    assert len(found) <= cycles
    statistic = (
        sum((count - sets / cycles) ** 2 for count in found.values()) + (cycles - len(found)) * (sets / cycles) ** 2
    )
    assert statistic / (sets / cycles) < chi2.isf(1e-3, cycles - 1)


def test_subjects_must_name_every_row() -> None:
    with pytest.raises(ValueError, match="expected 4, got 3"):
        exchanged_links(torch.tensor([[0, 0]]), torch.tensor([1, 2, 3]), 4, seed=0)
