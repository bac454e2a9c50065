import math

import numpy as np
import pytest
import torch
from scipy.stats import binom

from bench.contract.attributes import Attributes
from bench.evidence import PersonRisk
from bench.pairs.score_blocks import first_guesses
from bench.statistics.identification_risk import (
    Named,
    found_people,
    luckiest,
    met,
    rate_bounds,
    risk_score,
    unseen_bound,
)
from bench.types import Dataset, PairScores

RUNS = 400


def risk(found: torch.Tensor, chance: float) -> PersonRisk:
    keys, people = found.shape
    return PersonRisk(
        found, torch.full((keys, people), chance, dtype=torch.float64), torch.full((people,), chance).double()
    )


def test_keys_without_a_hit_bound_a_rate_by_about_three_over_their_number() -> None:
    assert unseen_bound(10) == pytest.approx(0.2589, abs=1e-4)
    assert unseen_bound(33) == pytest.approx(3 / 33, abs=0.005)
    bounds = rate_bounds(np.array([0.0, 10.0]), np.array([10.0, 10.0]), level=0.05)
    assert bounds.high.tolist() == [pytest.approx(unseen_bound(10)), 1.0]
    assert bounds.low.tolist() == [0.0, pytest.approx(1 - unseen_bound(10))]


def test_bounds_hold_for_all_people_at_once() -> None:
    """Of rates drawn anew, those of the worst of 40 people leave the bounds in at most 5 % of runs."""
    random = np.random.default_rng(0)
    missed = 0
    for _ in range(RUNS):
        rates = random.beta(0.3, 3, size=40)
        bounds = rate_bounds(random.binomial(12, rates).astype(float), np.full(40, 12.0), level=0.025 / 40)
        missed += not bounds.low.max() <= rates.max() <= bounds.high.max()
    assert missed <= binom.isf(1e-4, RUNS, 0.05)


def test_p_holds_under_chance_and_sees_a_single_person_who_is_always_found() -> None:
    random = torch.Generator().manual_seed(0)
    few = sum(luckiest(risk(torch.rand(10, 100, generator=random) < 0.02, 0.02)) <= 0.05 for _ in range(RUNS))
    assert few <= binom.isf(1e-4, RUNS, 0.05)
    found = torch.rand(10, 100, generator=random) < 0.02
    found[:, 7] = True
    assert luckiest(risk(found, 0.02)) < 1e-9


def test_a_person_whom_an_attack_names_for_every_row_is_not_found() -> None:
    found, luck = torch.zeros(10, 50, dtype=torch.bool), torch.zeros(10, 50, dtype=torch.float64)
    found[:, 3], luck[:, 3] = True, 1.0
    named = PersonRisk(found, luck, torch.full((50,), 0.02).double())
    score = risk_score(named, seed=0)
    assert score.value == 0.0
    assert luckiest(named) == 1.0
    assert score.parts["most often found"].value == 1.0


def test_one_person_in_a_thousand_stands_out_of_an_average_at_chance() -> None:
    found = torch.rand(10, 1000, generator=torch.Generator().manual_seed(1)) < 0.001
    found[:, 500] = True
    score = risk_score(risk(found, 0.001), seed=0)
    assert score.value == pytest.approx(0.999)
    assert luckiest(risk(found, 0.001)) < 1e-6
    assert score.low is not None
    assert score.low > 0.3
    assert score.parts["all people"].value < 0.01
    assert score.parts["median person"].value == 0.0


def test_what_random_scores_give_is_given_beside_the_worst_person() -> None:
    """Values under chance lie within the stated interval as often as they should."""
    random, inside = torch.Generator().manual_seed(2), 0
    for run in range(100):
        score = risk_score(risk(torch.rand(10, 60, generator=random) < 0.05, 0.05), seed=run)
        assert score.null_low is not None
        assert score.null_high is not None
        inside += score.null_low <= score.value <= score.null_high
    assert inside >= 100 - binom.isf(1e-4, 100, 0.05 + 0.05)  # rates over ten keys are coarse, and 200 draws few


def test_groups_have_means_with_intervals_and_their_worst_and_small_groups_none() -> None:
    found = torch.zeros(6, 40, dtype=torch.bool)
    women = torch.arange(40) < 20
    found[:, 0] = True
    found[:3, :10] = True
    few = torch.arange(40) < 9
    groups = {"sex": {"female": women, "male": ~women}, "site": {"small": few}}
    made = PersonRisk(found, torch.full((6, 40), 0.02).double(), torch.full((40,), 0.02).double(), groups)
    parts = risk_score(made, seed=0).parts
    assert "site: small" not in parts
    female = parts["sex: female"]
    assert female.value == pytest.approx((6 + 9 * 3) / 120)
    assert female.parts["worst"].value == 1.0
    assert female.low is not None
    assert female.high is not None
    assert female.low < female.value < female.high
    assert (parts["sex: male"].value, parts["sex: male"].low) == (0.0, 0.0)
    assert parts["sex: male"].high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert all(math.isfinite(part.value) for part in parts.values())


def test_rates_are_over_the_keys_under_which_a_person_could_be_found() -> None:
    found, asked = torch.zeros(4, 30, dtype=torch.bool), torch.ones(4, 30, dtype=torch.bool)
    found[:2, 0], asked[2:, 0] = True, False
    made = PersonRisk(found, torch.zeros(4, 30).double(), torch.zeros(30).double(), asked=asked)
    score = risk_score(made, seed=0)
    assert score.value == 1.0
    assert score.low == pytest.approx((0.025 / 30) ** (1 / 2))
    assert score.parts["all people"].value == pytest.approx((0 + 0 + 1 / 30 + 1 / 30) / 4)
    with pytest.raises(ValueError, match="only under such keys"):
        PersonRisk(found, torch.zeros(4, 30), torch.zeros(30), asked=asked & (torch.arange(30) > 1))


def test_a_key_that_concerns_nobody_of_a_group_is_left_out_of_its_mean() -> None:
    found, asked = torch.rand(5, 40, generator=torch.Generator().manual_seed(0)) < 0.3, torch.ones(5, 40).bool()
    asked[0, :12] = False
    groups = {"site": {"a": torch.arange(40) < 12}}
    made = PersonRisk(found & asked, torch.zeros(5, 40).double(), torch.zeros(40).double(), groups, asked)
    part = risk_score(made, seed=0).parts["site: a"]
    assert part.value == pytest.approx(float(found[1:, :12].double().mean()))
    assert part.low is not None
    assert part.low < part.value


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="expected found and luck"):
        PersonRisk(torch.zeros(2, 3, dtype=torch.bool), torch.zeros(3, 2), torch.zeros(3))


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
def test_first_guesses_are_the_first_of_the_best_rows_for_every_block_size(block: int) -> None:
    matrix = torch.randint(0, 5, (17, 13), generator=torch.Generator().manual_seed(0)).float()
    assert first_guesses(Dense(matrix), block=block).tolist() == matrix.numpy().argmax(axis=0).tolist()


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
