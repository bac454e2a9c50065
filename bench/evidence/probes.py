"""Scores of a detector of marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.evidence.utility import UtilityEvidence


@dataclass(frozen=True, eq=False)
class ProbeEvidence:
    """How a detector, trained on releases that Eve made herself, scores real releases with and without a mark.

    Args:
        released: By probe, scores (n, 1) of released rows against whether the raw row carried the mark.
        original: The same for raw rows: what there was to hide.
    """

    released: Mapping[str, UtilityEvidence]
    original: Mapping[str, UtilityEvidence]
