"""ReID AUC: how well an attack's scores separate correct from wrong pairs (Syfer, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.null import Draws, Layout, Null, exchanged_null, normal_null
from bench.statistics.primary import with_primary
from bench.statistics.spread import mean, spread
from bench.types import Column, Metric, NotApplicable, Score


def reid_auc(counts: PairCounts) -> float:
    """Probability that a linked pair outscores an unlinked one, ties one half (exact Mann-Whitney, integer counts)."""
    others = counts.others.cumsum(0)
    below, tied = others[0:-1:2], counts.others[1::2]
    twice_wins = int((counts.linked * (2 * below + tied)).sum())
    unlinked = int(others[-1])
    if unlinked == 0:
        raise ValueError("ReID AUC needs at least one unlinked pair, got a grid in which every pair is linked")
    return twice_wins / (2 * int(counts.linked.sum()) * unlinked)


def chance_sd(layout: Layout) -> float:
    """Standard deviation, under independent distinct scores, of the AUC's mean over one key's data samples.

    Of samples s and t with p linked and q unlinked pairs each, a linked and b unlinked ones in both, the AUCs have the
    covariance (a b + a q_s q_t + b p_s p_t) / (12 p_s p_t q_s q_t): two comparisons covary by 1/4 if they are the same,
    by 1/12 if they share one pair. With s = t it is Mann and Whitney's (p + q + 1) / (12 p q).
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
        """Mean over keys and data samples; the interval is their spread.

        Null and p: .5 and a normal with the exact deviation of independent distinct scores (`chance_sd`), keys being
        independent. A sum of ranks has lighter tails than a normal, so that p errs upwards.
        With links of exchanged people at hand, see `bench.statistics.null.exchanged_null`.

        Raises:
            NotApplicable: All pairs of a data sample are linked.
        """
        return with_primary(evidence, partial(_score, evidence))


@dataclass(frozen=True)
class PatientReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve of telling pairs of one person from pairs of two."""

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
        """As `ReidAUC`. Images of a person score alike: independent scores are no null.

        Without links of exchanged people, a person's images stand for one draw (`people_null`), which is too wide where
        they do not score alike.

        Raises:
            NotApplicable: Nobody knows the people, or a data sample holds only one.
        """
        return _score(evidence, evidence.level("patient"), people=True)


def _score(evidence: PairEvidence, level: PairLevel, *, people: bool = False) -> Score:
    if any(int(part.others.sum()) == 0 for key in level.counts for part in key):
        raise NotApplicable("an AUC needs wrong pairs, and in some data sample all pairs are right")
    figures = [[reid_auc(part) for part in key] for key in level.counts]
    layout, value = Layout.of(evidence, level.links), mean(figures)
    if level.permuted:
        apart = Draws(0.5, chance_sd(layout), 0.5, chance_sd(layout.whole))
        null = exchanged_null(level, reid_auc, apart, seed=derive(evidence.seed, "null"))
    elif people:
        null = people_null(layout, value, keys=len(figures))
    else:
        step = 0.25 * fmean(1 / (linked * (pairs - linked)) for linked, pairs in _sizes(layout))
        sd = chance_sd(layout) / math.sqrt(len(figures))
        null = normal_null(value, mean=0.5, sd=sd, step=step / (len(figures) * len(figures[0])))
    return spread(figures, _clip(null), n=level.counts[0][0].shape[0])


def _sizes(layout: Layout) -> list[tuple[int, int]]:
    return list(zip(layout.inside.sum(axis=1).tolist(), layout.pairs.tolist(), strict=True))


def _clip(null: Null) -> Null:
    return Null(null.mean, max(0.0, null.low), min(1.0, null.high), null.p)


def people_null(layout: Layout, value: float, *, keys: int) -> Null:
    """The null where all images of a person score the same: one draw a person.

    A person with s images contributes s rows of s links each, hence the number of independent links is (sum of a row's
    links)^2 / (sum of their cubes). Data samples widen the whole grid's deviation by 1 + 1 / samples.
    """
    per_row = np.bincount(layout.links[:, 0]).astype(np.float64)
    independent = max(1.0, float(per_row.sum() ** 2 / (per_row**3).sum()))
    unlinked = layout.shape[0] * layout.shape[1] - len(layout.links)
    variance = (independent + unlinked + 1) / (12 * independent * unlinked) * (1 + 1 / len(layout.rows)) / keys
    return normal_null(value, mean=0.5, sd=math.sqrt(variance))
