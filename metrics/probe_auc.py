"""Probe AUC: detection of marks in released images (DP-GLOW, section 7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import scipy
import torch

from bench.evidence import ProbeEvidence, UtilityEvidence
from bench.seeds import derive, generator
from bench.statistics.bootstrap import central
from bench.statistics.classification_scores import auc_score
from bench.statistics.pair_statistics import one_sided
from bench.types import Column, Metric, Score

DRAWS = 4999  # so that p may fall below one in a thousand


@dataclass(frozen=True)
class ProbeAUC(Metric[ProbeEvidence]):
    """AUC of the most visible mark (a block, a flip) in releases."""

    name: ClassVar[str] = "probe-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "DP-GLOW, section 7.2 and figures 3 to 6, which show pictures"
    column: ClassVar[Column] = Column(
        title="Probe AUC",
        meaning="How well a detector that Eve trained on releases of her own tells whether a released image "
        "carried a mark (a block) or was flipped: the weaker of the two.",
        group="Other attack figures: weakest",
        digits=3,
        chance="0.5",
        order=30,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: ProbeEvidence) -> Score:
        """The largest AUC on released rows; each probe is a part.

        The AUC on raw images stands beside it. The interval bootstraps people. The null deals the marks to people anew;
        p counts the probes looked at (Bonferroni). Ties count half.
        """
        parts = {probe: _score(part) for probe, part in evidence.released.items()}
        worst = max(parts, key=lambda probe: parts[probe].value)
        p = parts[worst].p
        assert p is not None
        raw: Mapping[str, Score] = {f"{probe}, raw image": _score(part) for probe, part in evidence.original.items()}
        note = f"worst of {len(parts)} probes: {worst}; 95 % bootstrap over people"
        return replace(parts[worst], p=min(1.0, p * len(parts)), parts={**parts, **raw}, note=note)


def _score(evidence: UtilityEvidence) -> Score:
    """The AUC of one probe; chance marks another half of the people."""
    (score,) = auc_score(evidence).parts.values()
    m = len(evidence.labels)
    # The AUC is linear in the ranks (Mann and Whitney), so that the mean over keys is that of their mean ranks.
    ranks = torch.stack(
        [torch.from_numpy(scipy.stats.rankdata(scores[:, 0].double())) for scores in evidence.scores]
    ).mean(dim=0)
    codes = torch.arange(m) if evidence.subjects is None else torch.unique(evidence.subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    sums = torch.zeros(people, 2, dtype=torch.float64)
    sums.index_add_(0, codes, torch.stack((ranks, torch.ones_like(ranks)), dim=1))
    random = generator(derive(evidence.seed, "probe null"))
    dealt = [sums[torch.randperm(people, generator=random)[: max(1, people // 2)]].sum(dim=0) for _ in range(DRAWS)]
    total, marked = torch.stack(dealt).T
    draws = (total - marked * (marked + 1) / 2) / (marked * (m - marked))
    low, high = central(draws)
    return replace(
        score, null=0.5, null_low=low, null_high=high, p=one_sided(draws, score.value, better="lower"), sides=1
    )
