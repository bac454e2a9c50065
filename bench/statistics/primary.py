"""A figure for mixed releases by both notions: any constituent of a released row, and the one that weighs most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.evidence import PairEvidence, PairLevel
from bench.types import Score

PART = "primary constituent"


def with_primary(evidence: PairEvidence, score_at: Callable[[PairLevel], Score]) -> Score:
    """The score between images; where rows are mixed, the primary constituent alone as correct is a part of it."""
    score = score_at(evidence.images)
    if evidence.primary is None:
        return score
    return replace(score, parts={**score.parts, PART: score_at(evidence.primary)})
