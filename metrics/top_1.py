"""Top-1: how often the raw row that an attack likes best for a released row is the right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from scipy.stats import poisson

from bench.evidence import PairEvidence
from bench.types import Metric, Score
from metrics.resampling import spread


@dataclass(frozen=True)
class Top1(Metric[PairEvidence]):
    """Share of released rows whose best-scored raw row is linked to them, ties broken at random."""

    name: ClassVar[str] = "top-1"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = (
        "design/METHODS.md, likelihood attack: AUC depends on the normalisation of scores, rank does not"
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys and data samples; the null is one link in n.

        Hits of one key are about Poisson under chance; its half samples share them, so keys alone count as draws.
        """
        counts = evidence.images.counts
        n, released = counts[0][0].shape[0], len(counts[0][0].top_1)
        links_a_row = int(counts[0][0].linked.sum()) / released
        chance = min(1.0, links_a_row / n)
        expected = chance * released * len(counts)
        low, high = poisson.ppf((0.025, 0.975), expected) / (released * len(counts))
        figures = [[float(part.top_1.mean()) for part in key] for key in counts]
        return spread(figures, n=n, null=chance, null_low=float(low), null_high=min(1.0, float(high)))
