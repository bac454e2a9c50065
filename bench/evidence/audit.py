"""Counts of a distinguishing game."""

from __future__ import annotations

from dataclasses import dataclass

from bench.types import PrivacyClaim


@dataclass(frozen=True, eq=False)
class AuditEvidence:
    """A distinguishing game on two inputs: how often a test chosen beforehand calls a release the first input's.

    Args:
        claim: What the method claims.
        trials: Fresh releases of each input, none of which had a part in choosing the test.
        hits: Releases of the first input that the test calls the first's.
        false_alarms: Releases of the second input that it calls the first's.
        confidence: With which the bound is to hold, in (0, 1).
    """

    claim: PrivacyClaim
    trials: int
    hits: int
    false_alarms: int
    confidence: float
