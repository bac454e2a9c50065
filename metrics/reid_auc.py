"""ReID AUC: separation of correct from wrong pairs (Syfer, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.confidence_intervals import never_certain
from bench.statistics.pair_statistics import Chance, Layout, from_halves, pair_score, with_primary
from bench.types import Column, Metric, NotApplicable, Score


def reid_auc(counts: PairCounts) -> float:
    """Probability of a linked above an unlinked pair (Mann-Whitney, ties half)."""
    others = counts.others.cumsum(0)
    below, tied = others[0:-1:2], counts.others[1::2]
    twice_wins = int((counts.linked * (2 * below + tied)).sum())
    unlinked = int(others[-1])
    if unlinked == 0:
        raise ValueError("ReID AUC needs at least one unlinked pair, got a grid in which every pair is linked")
    return twice_wins / (2 * int(counts.linked.sum()) * unlinked)


def chance_sd(layout: Layout) -> float:
    """Standard deviation of one key's mean AUC under random scores.

    The mean is over its data samples; scores are independent and distinct. Of samples s and t with p linked and q
    unlinked pairs each, a linked and b unlinked ones in both, the AUCs have the covariance (a b + a q_s q_t + b p_s
    p_t) / (12 p_s p_t q_s q_t): two comparisons covary by 1/4 if they are the same, by 1/12 if they share one pair.
    With s = t it is Mann and Whitney's (p + q + 1) / (12 p q).
    """
    inside, rows, cols = (part.astype(np.float64) for part in (layout.inside, layout.rows, layout.cols))
    linked = inside @ inside.T
    unlinked = (rows @ rows.T) * (cols @ cols.T) - linked
    p, q = np.diag(linked), np.diag(unlinked)
    pp, qq = np.outer(p, p), np.outer(q, q)
    return math.sqrt(float(((linked * unlinked + linked * qq + unlinked * pp) / (12 * pp * qq)).mean()))


@dataclass(frozen=True)
class ReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve of telling linked from unlinked pairs."""

    name: ClassVar[str] = "reid-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 5"
    column: ClassVar[Column] = Column(
        title="ReID AUC",
        meaning="The probability that Eve scores a true pair of a raw and a released image above a wrong one; "
        "ties count half.",
        group="Privacy by image: weakest figure over the attacks that count",
        digits=3,
        chance="0.5",
        order=10,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the area on the whole release.

        The interval is over people and keys. Chance: .5 and a normal with the exact deviation of independent distinct
        scores (`chance_sd`), keys being independent. p: people exchanged.

        Raises:
            NotApplicable: All pairs of a data sample are linked.
        """
        return with_primary(evidence, partial(_score, evidence))


@dataclass(frozen=True)
class PatientReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve: one person's pairs against two people's."""

    name: ClassVar[str] = "patient-reid-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 5, with the person as the match"
    column: ClassVar[Column] = Column(
        title="Patient ReID AUC",
        meaning="ReID AUC where any image of the same patient counts as a correct match.",
        group="Privacy by patient: weakest figure",
        digits=3,
        chance="0.5",
        order=10,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """As `ReidAUC`.

        Raises:
            NotApplicable: The people are unknown, or a data sample holds only one.
        """
        return _score(evidence, evidence.level("patient"))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    if any(int(part.others.sum()) == 0 for key in [*level.counts, level.full] for part in key):
        raise NotApplicable("an AUC needs wrong pairs, and in some data sample all pairs are right")
    width = 1.96 * chance_sd(Layout.of(evidence, level.links).whole) / math.sqrt(len(level.full))
    chance = Chance(0.5, max(0.0, 0.5 - width), min(1.0, 0.5 + width))
    found = from_halves(evidence, level, reid_auc, "share")
    score = pair_score(evidence, level, reid_auc, found, chance, seed=derive(evidence.seed, "null"))
    return never_certain(score, int(evidence.persons.max()) + 1)
