"""Learning curves of attacks: what a record holds, and what is refused."""

from __future__ import annotations

from typing import cast

import pytest

from bench.contract.seal import ContractError
from bench.types import LEARNING, Attack, Attacker, LearningCurve, View, curves_of, learning_of

CURVE = LearningCurve("ReID AUC", ((0, 0.5), (50, 0.75)), converged=True, reason="it rose no more", part="seed 1")


class Learner(Attack):
    """An attack that learns, and may be silent."""

    name = "learner"
    learns = True

    def fit(self, view: View, seed: int) -> Attacker:
        raise AssertionError("not called")


class Silent(Attacker):
    """An attacker without curves."""


class Speaking(Attacker):
    """An attacker with a curve."""

    def learning(self) -> tuple[LearningCurve, ...]:
        return (CURVE,)


def test_a_record_gives_back_the_curves_it_holds_named_after_finding_and_training() -> None:
    (read,) = curves_of({LEARNING: learning_of(Learner(), Speaking(), "effusion")}) or ()
    assert read == LearningCurve("ReID AUC", CURVE.points, converged=True, reason=CURVE.reason, part="effusion seed 1")


def test_an_older_record_says_nothing_and_one_without_training_says_so() -> None:
    assert curves_of({}) is None
    assert curves_of({LEARNING: []}) == ()


def test_an_attack_that_learns_must_give_a_curve() -> None:
    with pytest.raises(ContractError, match="expected a LearningCurve of each training"):
        learning_of(Learner(), Silent())


@pytest.mark.parametrize(
    "points", [(), ((5, 0.5), (5, 0.6)), ((-1, 0.5),), ((0, float("nan")),), ((0.5, 0.5),), ((True, 0.5),)]
)
def test_a_curve_without_rising_steps_or_finite_figures_is_refused(points: object) -> None:
    with pytest.raises(ValueError, match="learning curve"):
        LearningCurve("AUC", cast("tuple[tuple[int, float], ...]", points), converged=True, reason="")


def test_a_malformed_statement_of_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="learning curves"):
        curves_of({LEARNING: [{"figure": "AUC", "points": [[3, 0.5], [2, 0.5]], "converged": True, "reason": ""}]})
