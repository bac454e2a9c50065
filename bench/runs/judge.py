"""The judge: metrics on evidence; the worst finding for the owner counts."""

from __future__ import annotations

__figures__ = True

from collections.abc import Mapping
from dataclasses import replace

from bench.contract.sound_score import sound
from bench.evidence import finding_of
from bench.statistics.confidence_intervals import RARE
from bench.types import Metric, Score


def judge(metric: Metric[object], evidence: Mapping[str, object]) -> Score:
    """The metric's figure; of several findings or trainings the worst, with parts.

    A figure that beats chance is worse than any that does not: among few rows chance finds one soon.
    """
    found = {name: sound(metric(part)) for name, part in evidence.items()}
    if len(found) == 1:
        return next(iter(found.values()))
    sign = 1 if metric.better == "higher" else -1

    def rank(name: str) -> tuple[bool, float]:
        score = found[name]
        harms = score.null is not None and sign * score.value < sign * score.null
        return not (harms and score.p is not None and score.p * len(found) < RARE), sign * score.value

    worst = min(found, key=rank)
    score = found[worst]
    # The least of several figures is looked at: its probability under chance grows by as much (Bonferroni).
    p = None if score.p is None else min(1.0, score.p * len(found))
    what = "findings" if all(finding_of(name) == name for name in found) else "trainings"
    # Exchanges of one finding's people do not stand for the worst of several.
    note = f"worst of {len(found)} {what}: {worst}; {score.note}"
    return replace(score, p=p, parts=found, exchanges=None, note=note)
