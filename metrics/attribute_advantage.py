"""Attribute advantage: sex, age, view, site or findings in released rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import scipy
import torch

from bench.evidence import AttributeEvidence, UtilityEvidence
from bench.pairs.exchanged_areas import exchangeable, exchanged_people
from bench.seeds import derive
from bench.statistics.bootstrap import central
from bench.statistics.classification_scores import auc_score, judged
from bench.statistics.confidence_intervals import with_interval
from bench.statistics.pair_statistics import one_sided
from bench.types import Column, Metric, NotApplicable, Replicates, Score

SETS = 4999  # exchanges, so that p may fall below one in a thousand
TOGETHER = 1 << 22
"""Numbers looked up at a time."""


@dataclass(frozen=True)
class AttributeAdvantage(Metric[AttributeEvidence]):
    """Advantage over guesses by priors at the most readable attribute."""

    name: ClassVar[str] = "attribute-advantage"
    unit: ClassVar[str] = "advantage"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Yeom et al. 2018, definition 6 (attribute advantage), by ranks: twice the AUC less 1"
    column: ClassVar[Column] = Column(
        title="Attribute advantage",
        meaning="What a model of Eve's own releases reads of sex, age, view, site or findings in released rows, as "
        "twice the AUC less 1: 0 is the best guess without the release, 1 is certainty; the most readable attribute "
        "counts.",
        group="Other attack figures: weakest",
        digits=3,
        chance="a little above 0, for the largest of several counts",
        order=32,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: AttributeEvidence) -> Score:
        """The largest 2 AUC - 1 over attributes; a mean over keys.

        The best guess without the release is by the frequencies of groups. It is the same for everybody, and its AUC is
        one half however unequal the groups are: therefore the AUC counts, and not the accuracy. An attribute of several
        groups has the mean AUC of each group against all others. Parts: each attribute from released rows, raw rows,
        and released labels alone.

        The interval is over people and keys. Null and p: people with equally many rows exchange their released rows,
        the same ones for all attributes and keys, and the largest advantage is taken anew.

        Raises:
            NotApplicable: No attribute has a group with people in it and out of it.
        """
        own = {name: part for name, part in evidence.released.items() if judged(part)}
        if not own:
            raise NotApplicable("no attribute has a group with people in it and out of it among the released")
        draws = _exchanged(own)
        parts = {name: _beside_chance(_score(part), draws.get(name)) for name, part in own.items()}
        worst = max(parts, key=lambda name: parts[name].value)
        every = torch.stack(list(draws.values())).amax(dim=0) if draws else None
        for kind, references in (("raw rows", evidence.original), ("labels alone", evidence.labels)):
            parts |= {f"{name}, {kind}": _score(part) for name, part in references.items() if name in own}
        note = f"most readable of {len(own)}: {worst}; {parts[worst].note}"
        if every is None:
            note += "; no p: too few people with equally many images to exchange"
        return replace(_beside_chance(parts[worst], every), parts=parts, note=note)


def _score(evidence: UtilityEvidence) -> Score:
    """Twice the mean AUC less 1, with its interval."""
    found = auc_score(evidence)
    score = Score(2 * found.value - 1, None, None, found.n, null=0.0, note=found.note)
    if found.replicates is None:
        return score
    by_key, resampled = (torch.tensor(numbers, dtype=torch.float64) for numbers in
                         (found.replicates.by_key, found.replicates.resampled))  # fmt: skip
    replicates = Replicates(
        (2 * by_key - 1).tolist(), (2 * resampled - 1).tolist(), found.replicates.degrees, found.replicates.people
    )
    wide = with_interval(replace(score, note=""), replicates, over="people")
    if found.low is None or found.high is None:
        return wide
    # The bounds of the AUC, which allow for its log odds.
    return replace(wide, low=2 * found.low - 1, high=2 * found.high - 1)


def _beside_chance(score: Score, draws: torch.Tensor | None) -> Score:
    """The score with null and p; the first draw is true."""
    if draws is None:
        return score
    low, high = central(draws[1:])
    p = one_sided(draws[1:], float(draws[0]), better="lower")
    return replace(score, null=float(draws[1:].mean()), null_low=low, null_high=high, p=p, sides=1)


def _exchanged(parts: Mapping[str, UtilityEvidence]) -> dict[str, torch.Tensor]:
    """(1 + SETS,) advantages by attribute, the true first; perhaps empty.

    Mean ranks over keys stand for scores: the AUC is linear in them (Mann and Whitney 1947). Rows of an unknown group
    are ranked too, so that all attributes share the exchanges: the figure is then near the AUC, and p exact for it.
    """
    first = next(iter(parts.values()))
    n = len(first.labels)
    counted = exchangeable(first.subjects, n)
    if not bool(counted.any()):
        return {}
    renamed = exchanged_people(first.subjects, n, sets=SETS, seed=derive(first.seed, "attribute null"))
    found = {}
    for name, part in parts.items():
        total = torch.zeros(1 + SETS, dtype=torch.float64)
        columns = 0
        for column in range(part.labels.shape[1]):
            sides = [(part.labels[:, column] == value) & counted for value in (1, 0)]
            if not all(bool(side.any()) for side in sides):
                continue
            ranks = torch.stack(
                [torch.from_numpy(scipy.stats.rankdata(scores[:, column].double())) for scores in part.scores]
            ).mean(dim=0)
            yes, no = (side.double() / side.sum() for side in sides)
            weights, columns = yes - no, columns + 1
            for start in range(0, 1 + SETS, max(1, TOGETHER // n)):
                some = slice(start, start + max(1, TOGETHER // n))
                total[some] += 2 / n * (ranks[renamed[some].long()] @ weights)
        if columns:
            found[name] = total / columns
    return found
