from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2
from torch import Tensor

from bench.pairs.person_links import FEWEST, exchanged_links, patient_links
from bench.statistics.pair_statistics import permutation_p


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
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=40))
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


def test_every_set_is_as_likely_to_hold_a_pair_the_true_one_too() -> None:
    # 12 people beside 10 sets, the true one first: no pair stands in two sets, and whose a given pair is, is a draw.
    n, sets, repeats = 12, 9, 1500
    random = torch.Generator().manual_seed(0)
    holders = torch.zeros(sets + 1)
    for seed in range(repeats):
        links = torch.stack((torch.randperm(n, generator=random), torch.arange(n)), dim=1)
        found = torch.stack(exchanged_links(links, None, n, sets=sets, seed=seed))
        for col in range(n):
            assert len(torch.unique(found[:, col, 0])) == sets + 1
        holders += (found[:, 0, 0] == 0).double()
    # Chi-squared over the 10 sets: 9 degrees of freedom, exceeded once in a thousand.
    expected = repeats / n
    assert float(((holders - expected) ** 2).sum() / expected) < chi2.isf(1e-3, sets)


@pytest.mark.parametrize(("people", "keys"), [(10, 10), (12, 1)])
def test_few_people_are_refused_no_more_often_than_promised(people: int, keys: int) -> None:
    random, repeats = np.random.default_rng(1), 300
    links = np.stack((np.arange(people), np.arange(people)), axis=1)
    refused = 0
    for _ in range(repeats):
        figures = []
        for _ in range(keys):
            scores = random.standard_normal((people, people))
            sets = exchanged_links(torch.from_numpy(links), None, people, sets=9, seed=int(random.integers(2**60)))
            figures.append([float(np.sum(scores > scores[of[:, 0], of[:, 1]].max())) for of in map(Tensor.numpy, sets)])
        refused += (
            permutation_p([own for own, *_ in figures], [rest for _, *rest in figures], better="lower", seed=0) <= 0.2
        )
    assert refused <= binom.isf(1e-3, repeats, 0.2)


def test_subjects_must_name_every_row() -> None:
    with pytest.raises(ValueError, match="expected 4, got 3"):
        exchanged_links(torch.tensor([[0, 0]]), torch.tensor([1, 2, 3]), 4, seed=0)
