from __future__ import annotations

from itertools import product

import pytest
import torch
from made.dense_scores import DenseScores

from bench.pairs.score_blocks import FirstGuesses, first_guesses
from bench.pairs.sweep import count
from bench.statistics.people_named import Named, found_people, met, owned_rows, told_apart
from bench.types import Attributes, Dataset


def raw(subjects: list[int] | None, n: int = 6) -> Dataset:
    return Dataset(
        "made", torch.zeros(n, 1), torch.tensor([[1.0], [0.0]] * (n // 2)),
        None if subjects is None else torch.tensor(subjects), ("x",), False, True,
    )  # fmt: skip


def links(n: int = 6) -> torch.Tensor:
    return torch.stack((torch.arange(n), torch.arange(n)), dim=1)


def named(guesses: list[int], pairs: torch.Tensor, subjects: list[int] | None) -> Named:
    """First guesses without ties."""
    person = torch.arange(6) if subjects is None else torch.tensor(subjects)
    matrix = torch.zeros(6, len(guesses))
    matrix[torch.tensor(guesses), torch.arange(len(guesses))] = 1
    owned = owned_rows(pairs, person)
    return Named(first_guesses(DenseScores(matrix), person, owned), owned)


def slow(matrix: torch.Tensor, person: torch.Tensor, owned: torch.Tensor) -> FirstGuesses:
    """The same from the whole matrix."""
    top = (matrix == matrix.max(dim=0).values).double()
    chances = torch.stack([top[person == one].sum(dim=0) for one in range(int(person.max()) + 1)]) / top.sum(dim=0)
    return FirstGuesses(chances[owned[0], owned[1]], chances.sum(dim=1), chances.square().sum(dim=1), matrix.shape[1])


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize("values", [1, 2, 5, 1000])
def test_first_guesses_are_averaged_over_ties_for_every_block_size(block: int, values: int) -> None:
    matrix = torch.randint(0, values, (17, 13), generator=torch.Generator().manual_seed(values)).double()
    person = torch.arange(17) // 2
    owned = torch.stack((torch.arange(13) // 2, torch.arange(13)))
    fast, expected = first_guesses(DenseScores(matrix), person, owned, block=block), slow(matrix, person, owned)
    for name in ("hits", "named", "squares"):
        assert getattr(fast, name) == pytest.approx(getattr(expected, name)), name


def test_pieces_of_tied_rows_give_the_same_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, person = torch.zeros(9, 7), torch.arange(9)
    owned = torch.stack((torch.arange(7), torch.arange(7)))
    monkeypatch.setattr("bench.pairs.score_blocks.TIED", 18)
    found = first_guesses(DenseScores(matrix), person, owned)
    assert found.hits == pytest.approx(torch.full((7,), 1 / 9).double())
    assert found.named == pytest.approx(torch.full((9,), 7 / 9).double())


@pytest.mark.parametrize("values", [1, 3, 10**6])
def test_the_mean_over_people_of_first_guesses_is_top_1(values: int) -> None:
    matrix = torch.randint(0, values, (6, 6), generator=torch.Generator().manual_seed(0)).double()
    owned = owned_rows(links(), torch.arange(6))
    risk = found_people([Named(first_guesses(DenseScores(matrix), torch.arange(6), owned), owned)], raw(None))
    assert float(risk.found.mean()) == pytest.approx(float(count(DenseScores(matrix), links()).top_1.mean()))


def test_one_in_k_is_said_of_everybody_behind_a_form_of_k() -> None:
    """Under every key, the rows of a form tie: once the first of them was found under all keys, the others never."""
    form = torch.arange(6) // 3
    matrix, owned = (form[:, None] == form).double(), owned_rows(links(), torch.arange(6))
    key = Named(first_guesses(DenseScores(matrix), torch.arange(6), owned), owned)
    risk = found_people([key] * 5, raw(None))
    assert risk.found.tolist() == [[pytest.approx(1 / 3)] * 6] * 5
    assert risk.luck.tolist() == [[pytest.approx(1 / 6)] * 6] * 5


def test_one_in_k_is_said_of_everybody_behind_k_equal_rows() -> None:
    """Equal rows are all named after the person nearest to them, who is found no more surely than the others."""
    matrix, owned = torch.zeros(6, 6), owned_rows(links(), torch.arange(6))
    matrix[0, :3] = matrix[4, 3:] = 1
    key = Named(first_guesses(DenseScores(matrix), torch.arange(6), owned), owned)
    risk = found_people([told_apart(key, torch.arange(6) // 3)] * 5, raw(None))
    assert risk.found.tolist() == [[pytest.approx(1 / 3)] * 6] * 5
    assert float(risk.found.mean()) == pytest.approx(float(count(DenseScores(matrix), links()).top_1.mean()))


def test_copies_of_a_row_of_one_person_hide_nobody() -> None:
    people = [0, 0, 1, 1, 2, 2]
    key = named([0, 1, 2, 3, 5, 0], links(), people)
    assert told_apart(key, torch.tensor(people)).guesses.hits.tolist() == [1, 1, 1, 1, 0.5, 0.5]
    assert torch.equal(told_apart(key, torch.arange(6)).guesses.hits, key.guesses.hits)


def test_a_person_is_found_by_any_of_their_rows_named_after_any_of_them() -> None:
    guesses = [1, 5, 0, 4, 4, 2]  # row 0 named after the same person's row 1; row 4 after itself
    people = [0, 0, 1, 1, 2, 2]
    assert found_people([named(guesses, links(), people)], raw(people)).found.tolist() == [[1, 0, 1]]
    assert found_people([named(guesses, links(), None)], raw(None)).found.tolist() == [[0, 0, 0, 0, 1, 0]]


def test_ties_of_several_rows_are_drawn_by_themselves() -> None:
    people, owned = torch.tensor([0, 0, 1, 1, 2, 2]), owned_rows(links(), torch.tensor([0, 0, 1, 1, 2, 2]))
    risk = found_people(
        [Named(first_guesses(DenseScores(torch.zeros(6, 6)), people, owned), owned)], raw(people.tolist())
    )
    assert risk.found.tolist() == [[pytest.approx(1 - (2 / 3) ** 2)] * 3]
    assert risk.luck.tolist() == [[pytest.approx(1 - (2 / 3) ** 2)] * 3]


def test_luck_is_that_of_rows_dealt_at_random() -> None:
    """The chance of a hit, against all orders of the guesses drawn many times."""
    own, once = torch.tensor([2]), torch.tensor([3.0]).double()
    random = torch.Generator().manual_seed(0)
    drawn = sum(bool((torch.randperm(8, generator=random)[:3] < 2).any()) for _ in range(20_000)) / 20_000
    assert met(own, once, once, 8)[0] == pytest.approx(drawn, abs=0.015)  # four deviations of 20,000 draws
    rows = torch.tensor([0.0, 7.0, 1.0]).double()
    assert met(torch.tensor([2, 2, 8]), rows, rows, 8).tolist() == [0.0, pytest.approx(1), pytest.approx(1)]


def test_luck_of_tied_guesses_is_the_mean_over_all_ways_to_break_the_ties() -> None:
    own, m, share, among = 2, 5, 0.5, 3  # three of five rows name the person with probability 1/2
    expected = 0.0
    for broken in product((0, 1), repeat=among):
        once = torch.tensor([float(sum(broken))]).double()
        expected += float(met(torch.tensor([own]), once, once, m)) * share**among
    fractional = torch.tensor([among * share]).double()
    assert float(met(torch.tensor([own]), fractional, fractional * share, m)) == pytest.approx(expected)


def test_mixed_rows_count_for_the_person_who_was_named() -> None:
    mixed = torch.tensor([[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]])
    risk = found_people([named([1, 2, 0], mixed, None)], raw(None))
    assert risk.found[0].nonzero()[:, 0].tolist() == [1, 2]


def test_people_whom_only_some_keys_release_count_under_those() -> None:
    keys = [named([0], torch.tensor([[0, 0]]), None), named([0], torch.tensor([[1, 0]]), None)]
    risk = found_people(keys, raw(None))
    assert risk.trials.tolist() == [[True, False], [False, True]]
    assert risk.found.tolist() == [[1, 0], [0, 0]]
    assert risk.chance.tolist() == [pytest.approx(1 / 6)] * 2


def test_groups_are_of_people_and_those_never_released_are_left_out() -> None:
    people = [0, 0, 1, 1, 2, 2]
    sexes = Attributes(("sex",), (("female", "male"),), (torch.arange(6)[:, None] >= 3).long())
    risk = found_people([named([0] * 6, links()[:4], people)], raw(people), sexes)
    assert risk.found.shape == (1, 2)
    assert {name: {group: of.tolist() for group, of in groups.items()} for name, groups in risk.groups.items()} == {
        "sex": {"female": [True, True], "male": [False, True]},
        "finding": {"x": [True, True]},
        "images": {"1": [False, False], "2": [True, True], "3 and more": [False, False]},
    }
