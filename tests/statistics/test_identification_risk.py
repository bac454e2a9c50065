import math

import numpy as np
import pytest
import torch
from scipy.stats import binom

from bench.evidence import PersonRisk
from bench.statistics.identification_risk import (
    fewest_keys,
    found_score,
    luckiest,
    rate_bounds,
    risk_score,
    unseen_bound,
)
from bench.types import NotApplicable

RUNS = 400


def risk(found: torch.Tensor, chance: float) -> PersonRisk:
    keys, people = found.shape
    return PersonRisk(
        found.double(), torch.full((keys, people), chance, dtype=torch.float64), torch.full((people,), chance).double()
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
    found, luck = torch.zeros(10, 50, dtype=torch.float64), torch.zeros(10, 50, dtype=torch.float64)
    found[:, 3], luck[:, 3] = 1.0, 1.0
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
    typical = found_score(risk(found, 0.001), seed=0)
    assert typical.value < 0.01
    assert typical.parts["median person"].value == 0.0


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
    found = torch.zeros(6, 40, dtype=torch.float64)
    women = torch.arange(40) < 20
    found[:, 0] = 1
    found[:3, :10] = 1
    few = torch.arange(40) < 9
    groups = {"sex": {"female": women, "male": ~women}, "site": {"small": few}}
    made = PersonRisk(found, torch.full((6, 40), 0.02).double(), torch.full((40,), 0.02).double(), groups)
    parts = found_score(made, seed=0).parts
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
    found, asked = torch.zeros(4, 30, dtype=torch.float64), torch.ones(4, 30, dtype=torch.bool)
    found[:2, 0], asked[2:, 0] = 1, False
    made = PersonRisk(found, torch.zeros(4, 30).double(), torch.zeros(30).double(), asked=asked)
    score = risk_score(made, seed=0)
    assert score.value == 1.0
    assert score.low == pytest.approx((0.025 / 30) ** (1 / 2))
    assert found_score(made, seed=0).value == pytest.approx((0 + 0 + 1 / 30 + 1 / 30) / 4)
    with pytest.raises(ValueError, match="only under such keys"):
        PersonRisk(found, torch.zeros(4, 30), torch.zeros(30), asked=asked & (torch.arange(30) > 1))


def test_a_key_that_concerns_nobody_of_a_group_is_left_out_of_its_mean() -> None:
    found, asked = torch.rand(5, 40, generator=torch.Generator().manual_seed(0)) < 0.3, torch.ones(5, 40).bool()
    asked[0, :12] = False
    groups = {"site": {"a": torch.arange(40) < 12}}
    made = PersonRisk((found & asked).double(), torch.zeros(5, 40).double(), torch.zeros(40).double(), groups, asked)
    part = found_score(made, seed=0).parts["site: a"]
    assert part.value == pytest.approx(float(found[1:, :12].double().mean()))
    assert part.low is not None
    assert part.low < part.value


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="expected found and luck"):
        PersonRisk(torch.zeros(2, 3, dtype=torch.bool), torch.zeros(3, 2), torch.zeros(3))


def test_the_number_of_keys_that_tells_a_sure_person_from_luck() -> None:
    """Of 600 people, random scores hit no person twice of 6 keys, but one twice of 7 in more than 2.5 % of draws."""
    chance = np.full(600, 1 / 600)
    assert 600 * binom.sf(1, 6, 1 / 600) < 0.025 < 600 * binom.sf(1, 7, 1 / 600)
    assert (0.025 / 600) ** (1 / 7) < 2 / 7
    assert (0.025 / 600) ** (1 / 8) > 2 / 8
    assert fewest_keys(chance) == 8
    assert fewest_keys(chance, share=0.5, others=0.5) > 16  # type: ignore[operator]
    assert fewest_keys(np.full(10, 1.0)) is None


@pytest.mark.parametrize("keys", [2, 5, 10])
def test_too_few_keys_give_no_worst_person_and_say_how_many_would(keys: int) -> None:
    sure = risk(torch.ones(keys, 600), 1 / 600)
    if keys == 10:
        assert risk_score(sure, seed=0).low > risk_score(sure, seed=0).null_high  # type: ignore[operator]
        return
    with pytest.raises(NotApplicable, match=f"with {keys} keys, .* the luckiest of 600 people .*: 8 keys are enough"):
        risk_score(sure, seed=0)


def test_fractional_hits_have_the_bounds_of_their_number() -> None:
    """One person in five behind each form, under ten keys: two expected hits each, and no p below that of two."""
    groups = risk(torch.full((10, 60), 0.2), 1 / 60)
    assert risk_score(groups, seed=0).value == pytest.approx(0.2 - 1 / 60)
    assert found_score(groups, seed=0).parts["median person"].value == pytest.approx(0.2)
    assert luckiest(groups) == pytest.approx(min(1, 60 * binom.sf(1, 10, 1 / 60)))
