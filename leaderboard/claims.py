"""What an audit says of a formal claim: whether the bound that it has shown contradicts the claimed one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bench.results.records import ClaimRecord, ScoreRecord
from leaderboard.entries import number

METRIC = "empirical-epsilon"


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was shown.

    Args:
        claimed, derived: Bounds on epsilon; infinity where none is finite.
        empirical: The lower bound that the audit has shown; None where there was no audit.
        ceiling: The most that its trials could have shown; None without an audit.
        trials: Releases of each input behind the bound; 0 without an audit.
    """

    claimed: float
    derived: float
    empirical: float | None
    ceiling: float | None
    trials: int

    @property
    def word(self) -> Literal["violated", "consistent", "not audited"]:
        """Violated: a bound above the claimed epsilon was shown."""
        if self.empirical is None:
            return "not audited"
        return "violated" if self.empirical > self.claimed else "consistent"

    @property
    def sentence(self) -> str:
        """The verdict with its reason, and with what these trials could not have found."""
        if self.empirical is None:
            return "not audited"
        shown, claimed, derived = (_text(bound) for bound in (self.empirical, self.claimed, self.derived))
        if self.word == "violated":
            text = f"violated: ε of at least {shown} was shown, {claimed} is claimed"
        elif math.isinf(self.claimed):
            text = "consistent: no finite ε is claimed"
        elif self.ceiling is not None and self.claimed > self.ceiling:
            text = (
                f"consistent, but {self.trials:,} trials can show at most {_text(self.ceiling)}: "
                f"a claimed ε of {claimed} cannot be refuted with so many"
            )
        elif self.empirical == 0:
            text = f"consistent: nothing was shown against a claimed ε of {claimed}"
        else:
            text = f"consistent: ε of at least {shown} was shown, {claimed} is claimed"
        if self.empirical > self.derived:
            text += f"; the derived bound of {derived} does not hold"
        return text


def verdict(claim: ClaimRecord, score: ScoreRecord | None) -> Verdict:
    """The verdict on a claim; `score` is the record's figure of the metric `METRIC`, None where there is none."""
    claimed, derived = (math.inf if bound is None else bound for bound in (claim.epsilon, claim.derived))
    if score is None:
        return Verdict(claimed, derived, None, None, 0)
    return Verdict(claimed, derived, score.value, score.parts["ceiling"].value, score.n)


def _text(bound: float) -> str:
    return "∞" if math.isinf(bound) else number(bound, None)
