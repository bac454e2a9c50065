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
        trials: Coins behind the bound, each of which released one of two inputs; 0 without an audit.
        games: The games played, by name.
        noise: Whether the noise is what the mechanism says; None where that cannot be read off a release.
    """

    claimed: float
    derived: float
    empirical: float | None
    ceiling: float | None
    trials: int
    games: str = ""
    noise: bool | None = None

    @property
    def word(self) -> Literal["violated", "noise fails", "consistent", "not refuted", "not audited"]:
        """Violated: a bound above the claimed epsilon was shown.

        Consistent takes noise that is what the mechanism says, too; where that cannot be seen, a claim is no more than
        not refuted.
        """
        if self.empirical is None:
            return "not audited"
        if self.empirical > self.claimed:
            return "violated"
        if self.noise is None or math.isinf(self.claimed):
            return "not refuted"
        return "consistent" if self.noise else "noise fails"

    @property
    def sentence(self) -> str:
        """The verdict with its reason, and with what these trials could not have found."""
        if self.empirical is None:
            return "not audited"
        shown, claimed, derived = (_text(bound) for bound in (self.empirical, self.claimed, self.derived))
        if self.word == "violated":
            text = f"violated: ε of at least {shown} was shown, {claimed} is claimed"
        elif math.isinf(self.claimed):
            text = "not refuted: no finite ε is claimed"
        else:
            seen = f"ε of at least {shown} was shown" if self.empirical > 0 else "nothing was shown"
            text = f"{self._stands}: {seen} against a claimed ε of {claimed}"
            if self.ceiling is not None and self.claimed > self.ceiling:
                text += f"; {self.trials:,} trials can show at most {_text(self.ceiling)}, so that it cannot be refuted"
        if self.empirical > self.derived:
            text += f"; the derived bound of {derived} does not hold"
        return text

    @property
    def _stands(self) -> str:
        """How the claim stands where no bound contradicts it."""
        played = f"the games played ({self.games})" if self.games else "the game played"
        if self.word == "noise fails":
            return f"the noise checks of `bench check` fail; consistent with {played} all the same"
        if self.word == "not refuted":
            return (
                f"not refuted by {played}; its noise cannot be read off a release, so that nothing else vouches for it"
            )
        return f"consistent with {played}, and its noise is as stated"


def verdict(claim: ClaimRecord, score: ScoreRecord | None) -> Verdict:
    """The verdict on a claim; `score` is the record's figure of the metric `METRIC`, None where there is none."""
    claimed, derived = (math.inf if bound is None else bound for bound in (claim.epsilon, claim.derived))
    if score is None:
        return Verdict(claimed, derived, None, None, 0)
    parts = score.parts
    games, noise = parts.get("games"), parts.get("noise checks")
    return Verdict(
        claimed, derived, score.value, parts["ceiling"].value, score.n, "" if games is None else games.note,
        None if noise is None else bool(noise.value),
    )  # fmt: skip


def _text(bound: float) -> str:
    return "∞" if math.isinf(bound) else number(bound, None)
