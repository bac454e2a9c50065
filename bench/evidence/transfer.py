"""Predictions between original and released rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.evidence.utility import UtilityEvidence


@dataclass(frozen=True, eq=False)
class TransferEvidence:
    """Predictions of classifiers trained and tested on original (o) and on private (p) rows.

    `by_route` maps "o/o", "p/o", "o/p" and "p/p" (trained on / tested on) to predictions; a route that makes no sense
    for the method is missing.
    """

    by_route: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class CADPClassifierEvidence(TransferEvidence):
    """The same of the classifier of the CADP paper."""
