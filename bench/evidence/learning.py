"""Predictions after training on parts of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.evidence.utility import UtilityEvidence


@dataclass(frozen=True, eq=False)
class LearningEvidence:
    """Bob's predictions after training on parts of the release, by the share (above 0, below 1) of its rows."""

    curve: Mapping[float, UtilityEvidence]
