"""A figure that was measured again confirms one that is about the same, and nothing that an author states wider."""

from __future__ import annotations

from typing import Any

import pytest
from made.board_records import claim, record, score

from bench.exchange.recheck_fit import Refitted, disagreement, misfits
from bench.exchange.tolerance import score_difference
from bench.results.records import ScoreRecord, claim_record
from bench.runs.tasks import Fitted
from bench.types import PrivacyClaim

HERE = score(
    0.6, 0.5, 0.7, null=0.5, null_low=0.46, null_high=0.54, p=1e-5, prediction_low=0.4, prediction_high=0.8,
    parts={"one": score(0.7, 0.6, 0.8), "two": score(0.3)},
)  # fmt: skip


def said(**more: Any) -> ScoreRecord:
    return HERE.model_copy(update=more)


@pytest.mark.parametrize(
    "more",
    [
        {}, {"value": 0.65, "low": 0.54, "high": 0.75}, {"low": 0.48, "high": 0.73}, {"p": 2e-5}, {"null": 0.5001},
        {"value": 0.54, "low": 0.44, "high": 0.64, "p": 0.03},
        {"parts": {"one": score(0.72, 0.61, 0.83), "two": score(0.32)}},
    ],
)  # fmt: skip
def test_what_another_machine_gives_is_alike(more: dict[str, Any]) -> None:
    assert score_difference(said(**more), HERE) is None


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"low": 0.1, "high": 1.0}, "its interval"),
        ({"value": 0.9, "low": 0.1, "high": 1.0}, "it is 0.9"),
        ({"value": 0.75, "low": 0.65, "high": 0.85}, "it is 0.75"),
        ({"low": 0.599, "high": 0.601}, "its interval"),
        ({"low": None, "high": None}, "it has no low"),
        ({"p": 0.5}, "its p"), ({"p": None}, "it has no p"),
        ({"null": 0.52, "null_low": 0.48, "null_high": 0.56}, "chance gives"),
        ({"null_low": 0.1, "null_high": 0.9}, "its interval of chance"),
        ({"null_low": 0.54, "null_high": 0.54}, "its interval of chance"),
        ({"null_low": 0.46, "null_high": 0.46}, "its interval of chance"),
        ({"null_low": 0.54, "null_high": 0.58}, "its interval of chance"),
        ({"prediction_low": 0.8, "prediction_high": 0.8}, "its interval of a further key"),
        ({"prediction_low": 0.8, "prediction_high": 1.2}, "its interval of a further key"),
        ({"prediction_high": 3.0}, "its interval of a further key"),
        ({"n": 7}, "its n"), ({"unit": "x"}, "its unit"), ({"better": "higher"}, "its better"),
        ({"parts": {}}, "its part one"),
        ({"parts": {"one": score(0.7, 0.6, 0.8), "two": score(0.9)}}, "part two: it is 0.9"),
    ],
)  # fmt: skip
def test_what_an_author_made_up_is_told(more: dict[str, Any], where: str) -> None:
    assert (score_difference(said(**more), HERE) or "").startswith(where)


def test_on_a_log_scale_intervals_are_as_wide_as_their_ratios() -> None:
    here = score(2.0, 1.0, 4.0)
    assert score_difference(score(3.0, 1.5, 6.0), here) is None
    assert "its interval" in (score_difference(score(3.0, 1.0, 1000.0), here) or "")


def test_an_interval_with_a_single_end_is_compared_by_it() -> None:
    here = score(0.6, high=0.7)
    assert score_difference(score(0.62, high=0.73), here) is None
    assert (score_difference(score(0.6, high=3.0), here) or "").startswith(
        "its interval is 0.6 (none, 3) in the record, and"
    )


def test_a_figure_that_is_left_out_or_made_up_disagrees() -> None:
    made = record(scores={"reid-auc": HERE})
    moved = record(not_applicable={"reid-auc": "makes no sense here"})
    assert disagreement(made, made) is None
    assert disagreement(moved, made) == "reid-auc has a figure here alone"
    assert disagreement(made, moved) == "reid-auc has a figure in the record alone"


@pytest.mark.parametrize("high", [1.6, None])
def test_a_bound_that_one_coin_moves_is_alike_and_one_that_is_half_of_it_is_not(high: float | None) -> None:
    """What an audit shows begins at its figure."""
    here, other, forged = (score(value, value, high) for value in (1.12988, 1.1342, 0.5))
    assert score_difference(other, here) is None
    assert score_difference(here, other) is None
    assert score_difference(forged, here) is not None


def test_a_claim_without_units_is_for_one_of_them() -> None:
    stated = record("a", "audit", kind="audit", claim=claim(1.0))
    assert "units" not in stated.model_dump()["claim"]
    for units, reasons in ((1, []), (16, ["its formal claim: units is 1 in the record, and 16 here"])):
        here = claim_record(PrivacyClaim("image", 1.0, 0.0, "pixels in range", "a paper, eq. 1", units=units))
        fitted = Fitted(claim=here, notes=stated.scheme, seconds=0.0)
        assert list(misfits(stated, Refitted(stated.dataset, fitted))) == reasons
