"""Predictions of linear probes, clean and under noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.evidence.utility import UtilityEvidence


@dataclass(frozen=True, eq=False)
class LinearProbeEvidence:
    """Predictions of linear probes for test rows, clean and with Gaussian noise on them.

    Args:
        by_noise: By the noise's standard deviation, in standard deviations of the original rows (0 is clean):
            predictions, one (n, k) a seed; every seed has a key, a probe and noise of its own.
    """

    by_noise: Mapping[float, UtilityEvidence]
