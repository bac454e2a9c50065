"""ReID AUC: how well an attack's scores separate correct from wrong pairs (Syfer, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import PairEvidence
from bench.types import Metric, Score
from metrics.pairs import PairCounts
from metrics.resampling import spread


def reid_auc(counts: PairCounts) -> float:
    """Probability that a linked pair outscores an unlinked one, ties one half (exact Mann-Whitney, integer counts)."""
    others = counts.others.cumsum(0)
    below, tied = others[0:-1:2], counts.others[1::2]
    twice_wins = int((counts.linked * (2 * below + tied)).sum())
    unlinked = int(others[-1])
    if unlinked == 0:
        raise ValueError("ReID AUC needs at least one unlinked pair, got a grid in which every pair is linked")
    return twice_wins / (2 * int(counts.linked.sum()) * unlinked)


def chance_sd(counts: PairCounts, independent: float) -> float:
    """Standard deviation of the AUC of random scores with `independent` linked pairs: sqrt((p + q + 1) / (12 p q))."""
    unlinked = int(counts.others.sum())
    return math.sqrt((independent + unlinked + 1) / (12 * independent * unlinked))


@dataclass(frozen=True)
class ReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve of telling linked from unlinked pairs."""

    name: ClassVar[str] = "reid-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 5"
    level: ClassVar[Literal["image", "patient"]] = "image"

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys and data samples, null .5.

        The null interval takes keys as independent. S half samples of one key vary about its whole grid, so their mean
        has the variance of the whole grid times 1 + 1 / S. A person's images stand for one draw: the effective number
        of links is (sum of a row's links)^2 / (sum of their squares) over the released rows' people.
        """
        level = evidence.level(self.level)
        per_row = torch.bincount(level.links[:, 0], minlength=evidence.shape[0]).to(torch.float64)
        # A person with s images contributes s rows of s links each: dividing by s leaves one draw a person.
        independent = float((per_row.sum() ** 2) / (per_row**3).sum()) if self.level == "patient" else len(level.links)
        whole = chance_sd(level.counts[0][0], max(1.0, independent))
        sd = whole * math.sqrt((1 + 1 / len(evidence.samples)) / len(level.counts))
        figures = [[reid_auc(part) for part in key] for key in level.counts]
        return spread(
            figures,
            n=level.counts[0][0].shape[0],
            null=0.5,
            null_low=max(0.0, 0.5 - 1.96 * sd),
            null_high=min(1.0, 0.5 + 1.96 * sd),
        )


@dataclass(frozen=True)
class PatientReidAUC(ReidAUC):
    """Area under the ROC curve of telling pairs of one person from pairs of two."""

    name: ClassVar[str] = "patient-reid-auc"
    source: ClassVar[str] = "Syfer, section 5, with the person as the match"
    level: ClassVar[Literal["image", "patient"]] = "patient"
