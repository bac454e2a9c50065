from __future__ import annotations

import pytest
from made.board_records import claim, record, score

from bench.results.records import ClaimRecord, ScoreRecord
from leaderboard.board import rows
from leaderboard.claims import METRIC, SURE, Verdict, at, verdict


def shown(value: float, ceiling: float = 6.0, noise: bool | None = True, n: int = 1500):
    parts = {"ceiling": score(ceiling), "games": score(2, note="one, other")}
    if noise is not None:
        parts["noise checks"] = score(float(noise))
    return score(value, value, value + 1, n=n, parts=parts)


def judged(claimed: ClaimRecord, figure: ScoreRecord | None, sure: ScoreRecord | None = None) -> Verdict:
    return verdict(claimed, figure, figure if sure is None else sure)


def test_a_bound_that_chance_shows_of_one_true_claim_in_twenty_is_no_violation() -> None:
    found = judged(claim(1.0), shown(1.01), shown(0.8))
    assert found.word == "consistent"
    assert found.sentence.endswith(
        "ε of at least 1.01 was shown against a claimed ε of 1.00, as chance shows it of 1 true claim in 20 (surely, "
        "at 99.9 %, 0.8)"
    )


def test_a_bound_above_the_derivation_by_chance_is_doubted_and_stands_beside_what_is_sure() -> None:
    found = judged(claim(1.0, 2.0), shown(2.01), shown(1.3))
    assert found.doubt == "1.30 at 99.9 %"
    assert found.sentence.endswith("above the derived bound of 2.00, as chance shows it of 1 true bound in 20 (1.30 at "
                                   "99.9 %)")  # fmt: skip
    assert judged(claim(1.0, 2.0), shown(1.5)).doubt == judged(claim(1.0, 2.0), shown(2.2), shown(2.1)).doubt == ""


COUNTS = {"trials": 4032, "firsts": 2004, "hits": 5, "false_alarms": 3, "misses": 91, "rejections": 309}
FIGURE = shown(1.008301084, n=COUNTS["trials"])


def test_a_row_is_judged_by_its_counts_and_by_its_figure_where_these_are_no_audits() -> None:
    played = {**COUNTS, "games": ["one"], "one_run": False, "noise": "holds"}
    made = {
        "sound": played,
        "huge": {**played, "trials": 10**15, "rejections": 10**15 - 100, "one_run": True},
        "none": {"trials": "many"},
        "of another figure": {**played, "hits": 4},
        "of fewer trials": {**played, "trials": 4000},
    }
    audits = {
        name: record(name, "audit", {METRIC: FIGURE}, kind="audit", claim=claim(1.0), details=details)
        for name, details in made.items()
    }
    said = {name: next(iter(rows([audit]))).audited for name, audit in audits.items()}
    assert {name: None if found is None else found.word for name, found in said.items()} == {
        "sound": "consistent", **dict.fromkeys(list(made)[1:], "violated")
    }  # fmt: skip
    assert at(audits["sound"], SURE).value == pytest.approx(0.846, abs=1e-3)


def test_a_bound_above_the_claim_violates_it() -> None:
    found = judged(claim(1.0, 2.0), shown(1.5))
    assert found.word == "violated"
    assert found.sentence == "violated: ε of at least 1.50 was shown, 1.00 is claimed"


def test_a_bound_above_the_derivation_says_so_too() -> None:
    assert judged(claim(1.0, 2.0), shown(2.5)).sentence.endswith("; the derived bound of 2.00 does not hold")
    below_the_claim = judged(claim(2.0, 0.8), shown(1.5))
    assert below_the_claim.word == "consistent"
    assert "the derived bound of 0.8 does not hold" in below_the_claim.sentence


@pytest.mark.parametrize("bound", [0.0, 0.5, 1.0])
def test_a_bound_up_to_the_claim_is_consistent(bound: float) -> None:
    assert judged(claim(1.0), shown(bound)).word == "consistent"


def test_a_claim_is_consistent_with_the_games_played() -> None:
    assert judged(claim(1.0), shown(0.0)).sentence == (
        "consistent with the games played (one, other), and its noise is as stated: nothing was shown against a "
        "claimed ε of 1.00"
    )


def test_noise_that_cannot_be_read_vouches_for_nothing() -> None:
    found = judged(claim(1.0), shown(0.5, noise=None))
    assert found.word == "not refuted"
    assert found.sentence.startswith("not refuted by the games played (one, other); its noise cannot be read")


def test_noise_that_is_not_what_it_is_said_to_be_is_no_consistent_claim() -> None:
    found = judged(claim(1.0), shown(0.5, noise=False))
    assert found.word == "noise fails"
    assert "noise checks of `bench check` fail" in found.sentence
    assert judged(claim(0.2), shown(0.5, noise=False)).word == "violated"


def test_a_claim_above_the_ceiling_cannot_be_refuted() -> None:
    assert judged(claim(1000.0), shown(6.0)).sentence.endswith(
        "against a claimed ε of 1,000; 1,500 trials can show at most 6.00, so that it cannot be refuted"
    )


def test_no_bound_contradicts_an_infinite_claim() -> None:
    found = judged(claim(None), shown(6.0))
    assert (found.word, found.sentence) == ("not refuted", "not refuted: no finite ε is claimed")


def test_a_claim_that_nobody_audited_is_not_called_consistent() -> None:
    found = judged(claim(1.0), None)
    assert (found.word, found.sentence) == ("not audited", "not audited")
