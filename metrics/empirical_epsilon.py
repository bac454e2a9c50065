"""Empirical epsilon: the differential privacy that a distinguishing game has refuted, with a stated confidence.

Sources: Jagielski, Ullman and Oprea 2020, Auditing differentially private machine learning (section 3 and theorem 1:
Clopper-Pearson bounds on both rates); Nasr et al. 2021, Adversary instantiation (section IV: the same with delta).

Why it holds: under (epsilon, delta)-differential privacy every event S has P(S | first input) <= exp(epsilon)
P(S | second input) + delta, so epsilon >= log((TPR - delta) / FPR) for S = "the test calls the release the first
input's", whatever test was fixed beforehand. Each rate lies beyond its one-sided Clopper-Pearson bound with probability
at most (1 - confidence) / 2; both bounds hold together with at least the stated confidence (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.evidence import AuditEvidence
from bench.statistics.epsilon_bounds import clopper_pearson, log_ratio, lower_bound
from bench.types import Column, Metric, Score


def _upper_end(evidence: AuditEvidence) -> float:
    """The other Clopper-Pearson end of the same log ratio; infinity where no false alarm was seen."""
    level = (1 - evidence.confidence) / 2
    found = clopper_pearson(evidence.hits, evidence.trials, level)[1]
    alarm = clopper_pearson(evidence.false_alarms, evidence.trials, level)[0]
    return math.inf if alarm == 0 else float(log_ratio(found - evidence.claim.delta, alarm))


@dataclass(frozen=True)
class EmpiricalEpsilon(Metric[AuditEvidence]):
    """Largest epsilon that an audit has refuted: below it the claim cannot be, with the stated confidence."""

    name: ClassVar[str] = "empirical-epsilon"
    unit: ClassVar[str] = "ε"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Jagielski et al. 2020, Auditing differentially private machine learning, theorem 1"
    column: ClassVar[Column] = Column(
        title="Shown ε ≥",
        meaning="A lower bound on the true ε that an audit has shown, with the confidence stated beside it: the "
        "method was asked many times to release one of two inputs, and a test told them apart this well.",
        group="Formal privacy",
        order=5,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: AuditEvidence) -> Score:
        """The lower bound, 0 where it is negative; the part "ceiling" is the most that so many trials could show."""
        trials, delta, confidence = evidence.trials, evidence.claim.delta, evidence.confidence
        shown, most = lower_bound(
            [evidence.hits, trials], [evidence.false_alarms, 0], trials, delta=delta, confidence=confidence
        ).tolist()
        high = _upper_end(evidence)
        note = (
            f"lower bound on ε with {100 * confidence:g} % confidence; the upper end, as sure, is that of what this "
            "one test shows, not an upper bound on ε"
            + ("; none, for there was no false alarm" if high == math.inf else "")
            + ("; the bound is below 0 and stands at 0: nothing was shown" if shown < 0 else "")
        )
        ceiling = Score(max(most, 0.0), None, None, trials, note="all hits and no false alarms in so many trials")
        value = max(shown, 0.0)
        return Score(
            value, value, max(high, 0.0) if high < math.inf else None, trials, parts={"ceiling": ceiling}, note=note
        )
