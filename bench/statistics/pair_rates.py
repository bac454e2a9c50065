"""Rates of an attack on pairs at a threshold, from integer counts."""

from __future__ import annotations

import torch

from bench.pairs.sweep import PairCounts


def tpr_at(counts: PairCounts, one_in: int) -> float:
    """Share of the linked pairs found when one unlinked pair in `one_in` may be taken for linked.

    The height of the ROC curve at 1 / one_in, from integer counts. Where the allowance ends among pairs of one score,
    the curve runs straight between the corners, as it does for the area: the linked ones count in proportion.
    """
    above = int(counts.others.sum()) - counts.others.cumsum(0)[1::2]
    tied, allowed = counts.others[1::2], int(counts.others.sum())
    # Everything times one_in, so that the allowance is an integer too.
    left = allowed - one_in * above
    whole = left >= one_in * tied
    found = float(counts.linked[whole].sum())
    part = ~whole & (left > 0)
    found += float(((counts.linked * left)[part].to(torch.float64) / (one_in * tied[part])).sum())
    return found / int(counts.linked.sum())
