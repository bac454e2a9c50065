"""Scores of a likelihood ratio of two density models."""

from __future__ import annotations

from dataclasses import dataclass

from bench.evidence.utility import UtilityEvidence


@dataclass(frozen=True, eq=False)
class DetectionEvidence:
    """Scores of a likelihood ratio of two density models for rows of the release, with the rows' true labels.

    Args:
        released: (m, 1) scores of the released rows, higher is likelier abnormal.
        original: The same for the raw rows.
    """

    released: UtilityEvidence
    original: UtilityEvidence
