"""Counts of a distinguishing game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.types import PrivacyClaim

Noise = Literal["holds", "fails", "unread"]


@dataclass(frozen=True)
class Calls:
    """What a test that was fixed beforehand calls releases of the two inputs. Those that it abstains on are left out.

    Args:
        trials: Fair coins that were tossed: heads releases the first input, tails the second.
        firsts: How many of them fell on the first.
        hits: Releases of the first input that are called the first's.
        false_alarms: Releases of the second input that are called the first's.
        misses: Releases of the first input that are called the second's.
        rejections: Releases of the second input that are called the second's.
    """

    trials: int
    firsts: int
    hits: int
    false_alarms: int
    misses: int
    rejections: int

    @property
    def guesses(self) -> int:
        """Releases that the test did not abstain on."""
        return self.hits + self.false_alarms + self.misses + self.rejections

    @property
    def correct(self) -> int:
        """Right guesses."""
        return self.hits + self.rejections


@dataclass(frozen=True, eq=False)
class AuditEvidence:
    """A distinguishing game on two inputs, and what else bears on the claim.

    Args:
        claim: What the method claims.
        calls: Of fresh releases, none of which had a part in choosing the test.
        confidence: With which the bound is to hold, in (0, 1).
        one_run: All coins lie in one release, and the number of guesses was fixed beforehand.
        games: All that was played when the test was chosen, by name.
        noise: Whether the noise is what the mechanism says, every number drawn afresh; "unread" where that cannot be
            seen.
    """

    claim: PrivacyClaim
    calls: Calls
    confidence: float
    one_run: bool = False
    games: tuple[str, ...] = ()
    noise: Noise = "unread"
