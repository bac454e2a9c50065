"""Evidence of predictions: classifiers, linear probes and detectors trained on releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from bench.types import Attributes


@dataclass(frozen=True, eq=False)
class UtilityEvidence:
    """Bob's predictions for test rows in the real classes, by key.

    Args:
        scores: One (n, k) float32 a key; higher is likelier.
        labels: (n, k) float32: 1, 0, NaN.
        subjects: (n,) int64 or None.
        findings: The k names.
        seed: For the bootstrap.
        outsiders: Predictions as `scores`, by models chosen without other people's labels, on held-out released rows
            alone; empty if no such choice was made.
        attributes: Groups that the rows belong to; None if unknown.
    """

    scores: Sequence[torch.Tensor]
    labels: torch.Tensor
    subjects: torch.Tensor | None
    findings: tuple[str, ...]
    seed: int
    outsiders: Sequence[torch.Tensor] = ()
    attributes: Attributes | None = None


@dataclass(frozen=True, eq=False)
class LearningEvidence:
    """Bob's predictions by the share of released rows in his training."""

    curve: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class LinearProbeEvidence:
    """Predictions of linear probes for clean and for noisy test rows.

    Args:
        by_noise: By the noise's standard deviation, in standard deviations of the original rows (0 is clean):
            predictions, one (n, k) a seed; every seed has a key, a probe and noise of its own.
    """

    by_noise: Mapping[float, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class DetectionEvidence:
    """Likelihood-ratio scores of released rows, with the rows' true labels.

    Args:
        released: (m, 1) scores of the released rows, higher is likelier abnormal.
        original: The same for the raw rows.
    """

    released: UtilityEvidence
    original: UtilityEvidence


@dataclass(frozen=True, eq=False)
class TransferEvidence:
    """Predictions by route, trained/tested on original or released: "o/o", "p/o", "o/p", "p/p"."""

    by_route: Mapping[str, UtilityEvidence]


@dataclass(frozen=True, eq=False)
class CADPClassifierEvidence(TransferEvidence):
    """The same of the classifier of the CADP paper."""


@dataclass(frozen=True, eq=False)
class ProbeEvidence:
    """Detector scores of real releases with and without a mark.

    The detector was trained on releases that Eve made herself.

    Args:
        released: By probe, scores (n, 1) of released rows against whether the raw row carried the mark.
        original: The same for raw rows: what there was to hide.
    """

    released: Mapping[str, UtilityEvidence]
    original: Mapping[str, UtilityEvidence]
