from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from made.board_records import claim, record, score

from bench.evidence import AuditEvidence, Calls
from bench.results.records import ClaimRecord, Record, ScoreRecord, score_record
from bench.types import PrivacyClaim
from leaderboard.board import rows
from leaderboard.claims import METRIC, SURE, CountsError, Verdict, at, verdict
from metrics.empirical_epsilon import EmpiricalEpsilon


def shown(value: float, ceiling: float = 6.0, noise: bool | None = True):
    parts = {"ceiling": score(ceiling), "games": score(2, note="one, other")}
    if noise is not None:
        parts["noise checks"] = score(float(noise))
    return score(value, value, value + 1, n=1500, parts=parts)


def judged(claimed: ClaimRecord, figure: ScoreRecord | None, sure: ScoreRecord | None = None) -> Verdict:
    return verdict(claimed, figure, figure if sure is None else sure)


def test_a_bound_that_chance_shows_of_one_true_claim_in_twenty_is_no_violation() -> None:
    found = judged(claim(1.0), shown(1.01), shown(0.8))
    assert found.word == "consistent"
    assert found.sentence.endswith(
        "ε of at least 1.01 was shown against a claimed ε of 1.00, as chance shows it of 1 true claim in 20 (surely, "
        "at 99.9 %, 0.8); this game could have shown at most 6.00 (1,500 trials)"
    )


def test_a_bound_above_the_derivation_by_chance_is_doubted_and_stands_beside_what_is_sure() -> None:
    found = judged(claim(1.0, 2.0), shown(2.01), shown(1.3))
    assert found.doubt == "1.30 at 99.9 %"
    assert found.sentence.endswith("above the derived bound of 2.00, as chance shows it of 1 true bound in 20 (1.30 at "
                                   "99.9 %)")  # fmt: skip
    assert judged(claim(1.0, 2.0), shown(1.5)).doubt == judged(claim(1.0, 2.0), shown(2.2), shown(2.1)).doubt == ""


COUNTS = {"trials": 4032, "firsts": 2004, "hits": 5, "false_alarms": 3, "misses": 91, "rejections": 309}
PLAYED = {**COUNTS, "games": ["one", "other"], "one_run": False, "noise": "holds", "confidence": 0.95}


def audit(details: Mapping[str, Any], of: Mapping[str, Any] = PLAYED, delta: float = 0.0) -> Record:
    """An audit whose figure is that of the counts `of`, with other details."""
    claimed = claim(1.0).model_copy(update={"delta": delta})
    calls = Calls(**{name: of[name] for name in COUNTS})
    stated = PrivacyClaim(claimed.unit, 1.0, delta, claimed.assumptions, claimed.basis, 1.0)
    metric = EmpiricalEpsilon()
    evidence = AuditEvidence(stated, calls, 0.95, one_run=of["one_run"], games=("one", "other"), noise="holds")
    figure = score_record(metric(evidence), better=metric.better, unit=metric.unit)
    return record("one", "audit", {METRIC: figure}, kind="audit", claim=claimed, details=dict(details))


def word(made: Record) -> str:
    (row,) = rows([made])
    assert row.audited is not None
    return row.audited.word


def test_a_row_is_judged_by_its_counts() -> None:
    made = audit(PLAYED)
    assert made.scores[METRIC].value == pytest.approx(1.0083, abs=1e-4)
    assert at(made, 0.95) == made.scores[METRIC]
    assert at(made, SURE).value == pytest.approx(0.846, abs=1e-3)
    assert word(made) == "consistent"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"trials": 10**15, "rejections": 10**15 - 100}, "of 4,032 trials, got 1,000"),
        ({"trials": "many"}, "must be a whole number"), ({"hits": True}, "must be a whole number"),
        ({"hits": 10**13, "misses": 10 - 10**13}, "must be a whole number from 0"), ({"hits": 2000}, "at most 2004"),
        ({"hits": 4}, "they give"), ({"trials": 4000}, "of 4,032 trials, got 4,000"), ({"one_run": True}, "they give"),
        ({"confidence": 0.9}, "they give"), ({"games": ["one"]}, "they give"), ({"noise": "fails"}, "they give"),
        ({"confidence": None}, "float"), ({"games": 3}, "not iterable"),
    ],
)  # fmt: skip
def test_counts_that_do_not_give_the_figure_refute_nothing(more: dict[str, Any], why: str) -> None:
    made = audit({**PLAYED, **more})
    with pytest.raises(CountsError, match=why):
        at(made, SURE)
    (row,) = rows([made])
    assert row.audited is not None
    assert row.audited.word == "not audited"
    assert "not audited: its counts do not give its figure" in row.audited.sentence


def test_a_claim_between_the_ceilings_of_two_confidences_cannot_be_refuted_on_the_board() -> None:
    few = {**PLAYED, "trials": 1000, "firsts": 500, "hits": 480, "false_alarms": 20, "misses": 20,
           "rejections": 480}  # fmt: skip
    made = audit(few, few)
    assert made.scores[METRIC].parts["ceiling"].value > 5.5
    assert word(made.model_copy(update={"claim": claim(5.5)})) == "cannot refute"
    assert word(made.model_copy(update={"claim": claim(4.9)})) == "consistent"


@pytest.mark.parametrize(
    ("right", "epsilon", "judged"),
    [(520, 1.0, "cannot refute"), (520, 0.1, "consistent"), (600, 0.9, "consistent"), (700, 1.0, "consistent")],
)
def test_a_test_that_half_the_noise_would_pass_refutes_nothing(right: int, epsilon: float, judged: str) -> None:
    calls = {**PLAYED, "trials": 1000, "firsts": 500, "hits": right // 2, "false_alarms": 500 - right // 2,
             "misses": 500 - right // 2, "rejections": right // 2}  # fmt: skip
    made = audit(calls, calls).model_copy(update={"claim": claim(epsilon)})
    (row,) = rows([made])
    assert row.audited is not None
    assert row.audited.word == judged
    assert "; this game could have shown at most 5.81 (1,000 trials)" in row.audited.sentence
    assert (", but with half the noise no more than 0.5" in row.audited.sentence) == (judged == "cannot refute")


def test_an_earlier_record_without_the_limit_of_its_test_is_judged_by_it_too() -> None:
    calls = {**PLAYED, "trials": 1000, "firsts": 500, "hits": 260, "false_alarms": 240, "misses": 240,
             "rejections": 260}  # fmt: skip
    made = audit(calls, calls)
    figure = made.scores[METRIC]
    parts = {name: part for name, part in figure.parts.items() if name != "limit"}
    earlier = made.model_copy(update={"scores": {METRIC: figure.model_copy(update={"parts": parts})}})
    assert figure.parts.keys() - parts.keys() == {"limit"}
    assert word(earlier) == word(made) == "cannot refute"


ONE_RUN = {**PLAYED, "trials": 1024, "firsts": 512, "hits": 50, "false_alarms": 14, "misses": 0, "rejections": 0,
           "one_run": True, "family": "Gaussian", "coins": "include"}  # fmt: skip


def one_run(details: Mapping[str, Any], epsilon: float, *, sided: bool) -> Record:
    """A Gaussian audit's record of `ONE_RUN`, with these details."""
    claimed = claim(epsilon).model_copy(update={"delta": 1e-5, "neighbours": "added"})
    stated = PrivacyClaim(claimed.unit, epsilon, 1e-5, claimed.assumptions, claimed.basis, epsilon, "added",
                          family="Gaussian")  # fmt: skip
    evidence = AuditEvidence(stated, Calls(1024, 512, 50, 14, 0, 0), 0.95, one_run=True, games=("one", "other"),
                             noise="holds", coins="include", sided=sided)  # fmt: skip
    metric = EmpiricalEpsilon()
    figure = score_record(metric(evidence), better=metric.better, unit=metric.unit)
    return record("one", "audit", {METRIC: figure}, kind="audit", claim=claimed, details=dict(details))


def test_guesses_of_one_side_count_as_they_did_when_their_record_was_made() -> None:
    earlier, later = one_run(ONE_RUN, 1.0, sided=False), one_run({**ONE_RUN, "runs": 1}, 1.0, sided=True)
    assert earlier.scores[METRIC].value == pytest.approx(1.017, abs=1e-3)
    assert later.scores[METRIC].value == pytest.approx(1.124, abs=1e-3)
    for made in (earlier, later):
        assert at(made, SURE).value < 1
        assert word(made) == "consistent"


@pytest.mark.parametrize(
    "training",
    [
        {"sampling_rate": 0.25, "steps": 1000.0}, {"sampling_rate": True, "steps": True},
        {"sampling_rate": 1.5, "steps": 9}, {"sampling_rate": 0.25, "steps": 10**9}, {"steps": 9},
        {"sampling_rate": [0.25], "steps": {}},
    ],
)  # fmt: skip
def test_a_training_that_cannot_be_read_is_left_out_and_the_verdict_says_so(training: dict[str, Any]) -> None:
    made = one_run({**ONE_RUN, "runs": 1, **training}, 1.0, sided=True)
    assert at(made, 0.95) == made.scores[METRIC]
    (row,) = rows([made])
    assert row.audited is not None
    assert row.audited.word == "consistent"
    assert "; its sampling rate and steps are left out (" in row.audited.sentence


def test_other_counts_with_the_same_bound_are_told_by_what_stands_beside_it() -> None:
    """2,300 right of 2,884 guesses in one run show what 1,600 of 2,000 do in as many, and at 99.9 % far less."""
    honest = {**PLAYED, "trials": 4000, "firsts": 2000, "hits": 800, "false_alarms": 200, "misses": 200,
              "rejections": 800}  # fmt: skip
    forged = {**honest, "hits": 1150, "false_alarms": 292, "misses": 292, "rejections": 1150, "one_run": True}
    with pytest.raises(CountsError):
        at(audit(forged, honest, delta=1e-4), SURE)


def test_more_trials_than_anybody_plays_are_not_judged_again() -> None:
    made = audit({**PLAYED, "trials": 10**9})
    figure = made.scores[METRIC].model_copy(update={"n": 10**9})
    with pytest.raises(CountsError, match="at most 2,000,000"):
        at(made.model_copy(update={"scores": {METRIC: figure}}), SURE)


def test_a_record_without_counts_stays_at_its_figure() -> None:
    made = audit({"peak memory by stage, GiB": {"start": 0.1}})
    assert at(made, SURE) == made.scores[METRIC]


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
        "claimed ε of 1.00; this game could have shown at most 6.00 (1,500 trials)"
    )


def test_noise_that_cannot_be_read_vouches_for_nothing() -> None:
    found = judged(claim(1.0), shown(0.5, noise=None))
    assert found.word == "not refuted"
    assert found.sentence.startswith("not refuted by the games played (one, other); its noise cannot be measured")


def test_noise_that_is_not_what_it_is_said_to_be_is_no_consistent_claim() -> None:
    found = judged(claim(1.0), shown(0.5, noise=False))
    assert found.word == "noise fails"
    assert "noise checks of `bench check` fail" in found.sentence
    assert judged(claim(0.2), shown(0.5, noise=False)).word == "violated"


def test_a_claim_above_the_ceiling_cannot_be_refuted() -> None:
    found = judged(claim(1000.0), shown(6.0), shown(5.5, ceiling=5.5))
    assert found.word == "cannot refute"
    assert found.sentence == (
        "cannot refute: the games played (one, other) cannot show more than is claimed: ε of at least 6.00 was shown "
        "against a claimed ε of 1,000; this game could have shown at most 6.00 (1,500 trials), and 5.50 at 99.9 %"
    )


@pytest.mark.parametrize("noise", [True, None])
def test_a_claim_between_the_ceilings_of_two_confidences_cannot_be_refuted(noise: bool | None) -> None:
    found = judged(claim(5.8), shown(1.0, noise=noise), shown(0.5, ceiling=5.5, noise=noise))
    assert found.word == "cannot refute"
    assert judged(claim(5.4), shown(1.0, noise=noise), shown(0.5, ceiling=5.5, noise=noise)).word != "cannot refute"


def test_what_the_best_test_shows_and_what_the_publication_alone_shows_stand_beside_the_bound() -> None:
    figure = shown(3.0)
    parts = {**figure.parts, "reach": score(5.5), "black-box": score(0.5), "black-box ceiling": score(4.0)}
    figure = figure.model_copy(update={"parts": parts})
    assert judged(claim(5.8), figure).sentence.endswith(
        "; of a mechanism of just this ε the best test is expected to show at least 5.50; from the publication alone "
        "0.5 was shown, of at most 4.00"
    )


def test_no_bound_contradicts_an_infinite_claim() -> None:
    found = judged(claim(None), shown(6.0))
    assert (found.word, found.sentence) == ("not refuted", "not refuted: no finite ε is claimed")


def test_a_claim_that_nobody_audited_is_not_called_consistent() -> None:
    found = judged(claim(1.0), None)
    assert (found.word, found.sentence) == ("not audited", "not audited")
