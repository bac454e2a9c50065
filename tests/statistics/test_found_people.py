import pytest
import torch

from bench.contract.attributes import Attributes
from bench.pairs.score_blocks import first_guesses
from bench.statistics.identification_risk import Named, found_people, met
from bench.types import Dataset, PairScores


class Dense(PairScores):
    def __init__(self, matrix: torch.Tensor) -> None:
        self.matrix, self.shape = matrix, (matrix.shape[0], matrix.shape[1])

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        return self.matrix[rows, cols]


def raw(subjects: list[int] | None, n: int = 6) -> Dataset:
    return Dataset(
        "made", torch.zeros(n, 1), torch.tensor([[1.0], [0.0]] * (n // 2)),
        None if subjects is None else torch.tensor(subjects), ("x",), False, True,
    )  # fmt: skip


def links(n: int = 6) -> torch.Tensor:
    return torch.stack((torch.arange(n), torch.arange(n)), dim=1)


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_first_guesses_are_the_best_rows_whatever_the_blocks(block: int) -> None:
    matrix = torch.randint(0, 5, (17, 13), generator=torch.Generator().manual_seed(0)).float()
    best = first_guesses(Dense(matrix), block=block)
    assert torch.equal(matrix[best, torch.arange(13)], matrix.amax(dim=0))


def test_a_person_is_found_by_any_of_their_rows_named_after_any_of_them() -> None:
    guesses = torch.tensor([1, 5, 0, 4, 4, 2])  # row 0 named after the same person's row 1; row 4 after itself
    risk = found_people([Named(guesses, links())], raw([0, 0, 1, 1, 2, 2]))
    assert risk.found.tolist() == [[True, False, True]]
    risk = found_people([Named(guesses, links())], raw(None))
    assert risk.found.tolist() == [[False, False, False, False, True, False]]


def test_luck_is_that_of_rows_dealt_at_random() -> None:
    """The chance of a hit, against all orders of the guesses drawn many times."""
    own, named = torch.tensor([2]), torch.tensor([3])
    random = torch.Generator().manual_seed(0)
    drawn = sum(bool((torch.randperm(8, generator=random)[:3] < 2).any()) for _ in range(20_000)) / 20_000
    assert met(own, named, 8)[0] == pytest.approx(drawn, abs=0.015)  # four deviations of 20,000 draws
    assert met(torch.tensor([2, 2, 8]), torch.tensor([0, 7, 1]), 8).tolist() == [0.0, 1.0, 1.0]


def test_mixed_rows_count_for_the_person_who_was_named() -> None:
    mixed = torch.tensor([[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]])
    risk = found_people([Named(torch.tensor([1, 2, 0]), mixed)], raw(None))
    assert risk.found[0].nonzero()[:, 0].tolist() == [1, 2]


def test_people_whom_only_some_keys_release_count_under_those() -> None:
    named = [Named(torch.tensor([0]), torch.tensor([[0, 0]])), Named(torch.tensor([0]), torch.tensor([[1, 0]]))]
    risk = found_people(named, raw(None))
    assert risk.trials.tolist() == [[True, False], [False, True]]
    assert risk.found.tolist() == [[True, False], [False, False]]
    assert risk.chance.tolist() == [pytest.approx(1 / 6)] * 2


def test_groups_are_of_people_and_those_never_released_are_left_out() -> None:
    only = links()[:4]
    sexes = Attributes(("sex",), (("female", "male"),), (torch.arange(6)[:, None] >= 3).long())
    risk = found_people([Named(torch.zeros(6, dtype=torch.int64), only)], raw([0, 0, 1, 1, 2, 2]), sexes)
    assert risk.found.shape == (1, 2)
    assert {name: {group: of.tolist() for group, of in groups.items()} for name, groups in risk.groups.items()} == {
        "sex": {"female": [True, True], "male": [False, True]},
        "finding": {"x": [True, True]},
        "images": {"1": [False, False], "2": [True, True], "3 and more": [False, False]},
    }
