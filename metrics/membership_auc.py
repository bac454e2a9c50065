"""Membership AUC: how well an attack's scores separate the rows behind a release from rows of other people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.evidence import MembershipEvidence
from bench.seeds import derive
from bench.statistics.components import with_interval
from bench.statistics.membership_draws import People, Ranking, people_of, replicates, unknown
from bench.statistics.null import MEANS, two_sided
from bench.statistics.resampling import LEVELS
from bench.types import Column, Metric, Score


def membership_auc(ranking: Ranking, members: Tensor, others: Tensor) -> Tensor:
    """Probability that a member outscores another row, ties one half: one figure, (b,) float64, a row of weights.

    Args:
        ranking: Of one key's scores.
        members, others: (b, n) int64, how often each row counts as a member, and as none.
    """
    above = ranking.sums(others)
    total = above[:, -1:]
    # Other rows that stand below each row, those level with it by half, times two.
    twice = 2 * total - above.index_select(1, ranking.first) - above.index_select(1, ranking.last)
    wins = (members * twice).sum(dim=1)
    return wins.double() / (2 * members.sum(dim=1) * total[:, 0]).double()


@dataclass(frozen=True)
class MembershipAUC(Metric[MembershipEvidence]):
    """Area under the ROC curve of telling the rows behind a release from rows of other people."""

    name: ClassVar[str] = "membership-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Carlini et al. 2022, Membership inference attacks from first principles, section III"
    column: ClassVar[Column] = Column(
        title="Membership AUC",
        meaning="The probability that Eve scores an image that was in the private data above one of the same kind "
        "that was not; ties count half.",
        group="Membership: weakest figure over the attacks that count",
        digits=3,
        chance="0.5",
        order=5,
    )

    def __call__(self, evidence: MembershipEvidence) -> Score:
        """Mean over keys; the interval is over people, members and others apart, and keys.

        Null and p: membership exchanged among people, as many members among them as there are. The mean AUC over keys
        is 1/2 + T / (members x others), T the sum over members of their mean ranks over keys, centred: keys need not be
        independent for that, and the null's mean is 1/2 exactly. p counts exchanges (`exchange_p`).
        A figure below 1/2 means an attack of the wrong sign, not protection.

        Raises:
            NotApplicable: There are no members, or no others.
        """
        people = people_of(evidence)
        rankings = [Ranking.of(scores) for scores in evidence.scores]
        found = replicates(evidence, rankings, membership_auc, seed=derive(evidence.seed, "bootstrap"))
        value = fmean(found.by_key)
        pairs = int(evidence.members.sum()) * int((~evidence.members).sum())
        sums = _centred_ranks(rankings, people)
        drawn = torch.cat(
            [sums[chosen].sum(dim=1) for chosen in people.exchanged(MEANS, derive(evidence.seed, "null"))]
        )
        null = 0.5 + drawn / pairs
        null_low, null_high = torch.quantile(null, LEVELS).clamp(0, 1).tolist()
        observed = float(sums[people.members].sum())
        p = exchange_p(sums, observed, drawn, chosen=int(people.members.sum()))
        wrong = "; below .5 the attack has the wrong sign, which protects nobody" if value < 0.5 else ""
        score = Score(
            value, None, None, len(evidence.members), null=0.5, null_low=null_low, null_high=null_high, p=p,
            note=f"chance: people change sides{wrong}{unknown(evidence)}",
        )  # fmt: skip
        return with_interval(score, found, over="people")


def _centred_ranks(rankings: list[Ranking], people: People) -> Tensor:
    """(people,) float64: the sum of each person's mid-ranks (higher scores, higher ranks), meant over keys, centred."""
    n = len(people.codes)
    ranks = torch.stack([n / 2 - (ranking.first + ranking.last) / 2 for ranking in rankings]).double().mean(dim=0)
    return torch.zeros(len(people.members), dtype=torch.float64).index_add_(0, people.codes, ranks)


def exchange_p(sums: Tensor, observed: float, drawn: Tensor, *, chosen: int) -> float:
    """Probability that a random choice of people has a sum at least as far from 0 as the observed one, two-sided.

    Counted among the drawn choices with the observed one as one more, so that it errs upwards. Where none of them comes
    near, it is Chernoff's bound, if that is lower: a sum of people drawn without replacement exceeds any bar at most as
    Chernoff allows for one drawn with replacement (Hoeffding 1963, theorem 4).

    Args:
        sums: (people,) float64, what each adds; sum 0.
        observed: The sum over the members.
        drawn: (r,) sums over random choices of as many people.
        chosen: How many that is.
    """
    p = two_sided(drawn, observed)
    return p if p > 2 / (1 + len(drawn)) else min(p, 2 * _tail_bound(sums, observed, chosen))


def _tail_bound(sums: Tensor, observed: float, chosen: int) -> float:
    """A bound on the chance that `chosen` people have a sum at least as far out, on its side, as the observed one."""
    # Those who are not chosen sum to the same with the other sign: the smaller group has the tighter bound.
    fewer = min(chosen, len(sums) - chosen)
    ours = (1 if fewer == chosen else -1) * math.copysign(1.0, observed) * sums
    tilts = torch.logspace(-4, 4, 161, dtype=torch.float64) / ours.abs().amax().clamp_min(1e-300)
    logs = fewer * (torch.logsumexp(tilts[:, None] * ours, dim=1) - math.log(len(sums))) - tilts * abs(observed)
    return math.exp(min(0.0, float(logs.amin())))
