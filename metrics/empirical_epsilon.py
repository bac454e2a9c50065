"""Empirical epsilon: the differential privacy that a distinguishing game has refuted.

Sources: Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run (theorems 5.1 and 5.2);
Mahloujifar, Melis and Chaudhuri 2024, Auditing f-differential privacy in one run (algorithm 3); Nasr et al. 2023, Tight
auditing of differentially private machine learning (section 4); Jagielski, Ullman and Oprea 2020.

Why it holds: a fair coin decides which of two inputs is released. Whatever a release of an epsilon-differentially
private mechanism is, the coin fell on either side with a probability of at most e^epsilon / (1 + e^epsilon) given that
release. Of r guesses, therefore, no more are correct than of r coins with that probability; the bound is the epsilon
below which so many correct ones have a chance of at most 1 - confidence. The test may abstain if a release tells
little: only its guesses count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.evidence import AuditEvidence, Calls
from bench.statistics.confidence_intervals import upper_proportion
from bench.statistics.epsilon_bounds import family_of, gaussian_bound, lower_bound, one_run_bound, unexplained
from bench.statistics.epsilon_reach import limit_of_test
from bench.statistics.sampled_gaussian import SampledGaussian
from bench.types import Column, Metric, Score

MOST = 60.0  # an exponent that is still finite
RATE_REFUTED = (
    "the stated sampling rate and steps are refuted, for no noise explains so many right guesses: this is the larger "
    "of the bounds of any Gaussian mechanism and of a training as stated"
)
CHECKED = {"holds": 1.0, "fails": 0.0}


def shown(evidence: AuditEvidence, calls: Calls, runs: int = 1) -> float:
    """The lower bound from these decisions, of so many independent releases."""
    claim, confidence = evidence.claim, evidence.confidence
    correct, guesses, trials = calls.correct, calls.guesses, calls.trials
    # If neighbours differ by one row more or less, two inputs that replace each other are two steps apart.
    steps = 2 if claim.neighbours == "added" and evidence.coins == "replace" else 1
    if evidence.one_run:
        sides = calls.sides if evidence.sided else "both"
        return one_run_bound(
            correct, guesses, trials, delta=claim.delta, confidence=confidence, steps=steps,
            family=family_of(claim) if steps == 1 else claim.family, sides=sides, runs=runs,
        )  # fmt: skip
    # What group privacy makes of delta is taken at the claimed epsilon: the claim is what the bound is held against.
    delta = claim.delta if steps == 1 else min(1.0, claim.delta * (1 + math.exp(min(claim.epsilon, MOST))))
    return float(lower_bound(correct, guesses, trials, delta=delta, confidence=confidence)) / steps


def rate_refuted(evidence: AuditEvidence) -> bool:
    """True if no noise explains the guesses of a training as stated."""
    family, calls = family_of(evidence.claim), evidence.calls
    return (
        isinstance(family, SampledGaussian)
        and evidence.one_run
        and evidence.coins == ("replace" if family.replaced else "include")
        and unexplained(
            family, calls.correct, calls.guesses, calls.trials, confidence=evidence.confidence, sides=calls.sides,
            runs=evidence.runs,
        )
    )  # fmt: skip


def _ceiling(evidence: AuditEvidence, trials: int) -> float:
    """The bound if every coin is guessed rightly, 0 at least.

    Of a private training also if only the included rows are: a row that no step samples leaves no trace.
    """
    firsts = trials // 2
    every, included = Calls(trials, firsts, firsts, 0, 0, trials - firsts), Calls(trials, firsts, firsts, 0, 0, 0)
    return max(0.0, shown(evidence, every), shown(evidence, included) if evidence.claim.steps else 0.0)


def _upper_end(evidence: AuditEvidence) -> float:
    """The other Clopper-Pearson end of those odds; infinity without wrong guesses."""
    share = float(upper_proportion(evidence.calls.correct, evidence.calls.guesses, 1 - evidence.confidence))
    return math.inf if share == 1 else math.log(share / (1 - share)) if share > 0 else 0.0


@dataclass(frozen=True)
class EmpiricalEpsilon(Metric[AuditEvidence]):
    """Largest epsilon that an audit has refuted, with the stated confidence."""

    name: ClassVar[str] = "empirical-epsilon"
    unit: ClassVar[str] = "ε"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Steinke et al. 2023, Privacy auditing with one (1) training run, theorems 5.1 and 5.2"
    column: ClassVar[Column] = Column(
        title="Shown ε ≥",
        meaning="A lower bound on the true ε that an audit has shown, with the confidence stated beside it: the "
        "method was asked many times to release one of two inputs, and a test told them apart this well.",
        group="Formal privacy",
        order=5,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: AuditEvidence) -> Score:
        """The lower bound, 0 if it is negative.

        Parts: "ceiling" is the most that so many trials could show, "limit" the most that this very test shows with any
        number of them; "games" counts the games played and names them;
        "noise checks" is 1 if the noise is as stated, 0 if not, and missing if it cannot be read;
        "if Gaussian" is the bound for a mechanism whose noise is Gaussian, if delta is above 0.
        """
        calls, confidence = evidence.calls, evidence.confidence
        bound = shown(evidence, calls, evidence.runs)
        high = _upper_end(evidence)
        note = (
            f"lower bound on ε with {100 * confidence:g} % confidence; the upper end, as sure, is that of what this "
            "one test shows, not an upper bound on ε"
            + ("; none, for no guess was wrong" if high == math.inf else "")
            + ("; the bound is below 0 and stands at 0: nothing was shown" if bound < 0 else "")
            + ("; " + RATE_REFUTED if rate_refuted(evidence) else "")
        )
        value = max(bound, 0.0)
        return Score(
            value, value, max(high, value) if high < math.inf else None, calls.trials, parts=_parts(evidence), note=note
        )


def _parts(evidence: AuditEvidence) -> dict[str, Score]:
    calls, claim = evidence.calls, evidence.claim
    ceiling = _ceiling(evidence, calls.trials)
    parts = {"ceiling": Score(ceiling, None, None, calls.trials, note="all guesses made, and correct")}
    if evidence.limited:
        steps = 2 if claim.neighbours == "added" and evidence.coins == "replace" else 1
        limit = limit_of_test(
            calls.correct, calls.guesses, calls.trials, delta=claim.delta, confidence=evidence.confidence, steps=steps,
            family=family_of(claim) if evidence.one_run else "any",
        )  # fmt: skip
        if limit is not None:
            note = "the most that this test shows with any number of trials, as surely as the bound"
            parts["limit"] = Score(limit, None, None, calls.trials, note=note)
    if evidence.reach is not None:
        note = "the bound that the best test is expected to show of a mechanism that has just the claimed epsilon"
        parts["reach"] = Score(max(evidence.reach, 0.0), None, None, calls.trials, note=note)
    if evidence.black_box is not None:
        number = evidence.black_box.trials
        bound, most = shown(evidence, evidence.black_box), _ceiling(evidence, number)
        parts["black-box"] = Score(max(bound, 0.0), None, None, number, note="from the publication alone")
        parts["black-box ceiling"] = Score(most, None, None, number, note="all guesses made, and correct")
    if evidence.games:
        parts["games"] = Score(len(evidence.games), None, None, calls.trials, note="; ".join(evidence.games))
    if evidence.noise in CHECKED:
        parts["noise checks"] = Score(CHECKED[evidence.noise], None, None, calls.trials, note=f"noise {evidence.noise}")
    if claim.delta > 0 and not evidence.one_run and claim.neighbours == "replaced":
        bound = gaussian_bound(
            calls.hits, calls.firsts, calls.false_alarms, calls.trials - calls.firsts, delta=claim.delta,
            confidence=evidence.confidence,
        )  # fmt: skip
        note = "a lower bound on ε if the noise is Gaussian, which is not tested"
        parts["if Gaussian"] = Score(max(bound, 0.0), None, None, calls.trials, note=note)
    return parts
