"""Membership AUC: separation of members' rows from other people's by scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

import torch

from bench.evidence import MembershipEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ENDS
from bench.statistics.confidence_intervals import never_certain, with_interval
from bench.statistics.identification_risk import People, Ranking, people_of, replicates, unknown
from bench.statistics.pair_statistics import MEANS, two_sided
from bench.types import Column, Metric, Score

MORE = 99_999
"""Exchanges drawn for a figure that none of the first `MEANS` reaches."""


def membership_auc(ranking: Ranking, members: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Probability that a member outscores another row, ties one half.

    One figure, (b,) float64, for each row of weights.

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
    """Area under the ROC curve of members' against other people's rows."""

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
        """Mean over keys; the interval is over people and keys.

        Each key has members of its own. Null and p: under every key by itself, membership is exchanged among people,
        with the same number of members. Members are drawn anew for every key, so scores need not be independent. The
        null's mean is 1/2 exactly. p counts exchanges (`exchange_p`), `MORE` of them if none of the first comes near:
        with many attacks and two figures each, chance has many tries. A figure below 1/2 means an attack of the wrong
        sign, not protection.

        Raises:
            NotApplicable: There are no members, or no others.
        """
        people = people_of(evidence)
        rankings = [Ranking.of(scores) for scores in evidence.scores]
        found = replicates(evidence, rankings, membership_auc)
        value, seed = fmean(found.by_key), derive(evidence.seed, "null")
        ranks = [_centred_ranks(ranking, people) for ranking in rankings]
        # The AUC is 1/2 + T / (members x others), T the sum of the members' centred ranks; these are the keys' shares.
        shares = [
            own / (len(ranks) * int(members.sum()) * int((~members).sum()))
            for own, members in zip(ranks, evidence.members, strict=True)
        ]
        drawn = _exchanged(shares, people, MEANS, seed)
        null_low, null_high = torch.quantile(0.5 + drawn, torch.tensor(ENDS, dtype=torch.float64)).clamp(0, 1).tolist()
        observed = sum(float(share[inside].sum()) for share, inside in zip(shares, people.members, strict=True))
        chosen = people.members.sum(dim=1).tolist()
        p = exchange_p(shares, observed, drawn, chosen=chosen)
        if 2 / (1 + MORE) < p <= 2 / (1 + MEANS):  # neither so few exchanges nor the bound can tell how rare it is
            p = exchange_p(shares, observed, _exchanged(shares, people, MORE, derive(seed, "more")), chosen=chosen)
        wrong = "; below .5 the attack has the wrong sign, which is no protection" if value < 0.5 else ""
        score = Score(
            value, None, None, len(people.codes), null=0.5, null_low=null_low, null_high=null_high, p=p,
            note=f"chance: people change sides{wrong}{unknown(evidence)}",
        )  # fmt: skip
        inside = people.members.sum(dim=1)
        fewer = int(torch.minimum(inside, people.members.shape[1] - inside).min())
        return never_certain(with_interval(score, found, over="people"), fewer)


def _exchanged(shares: Sequence[torch.Tensor], people: People, draws: int, seed: int) -> torch.Tensor:
    """(draws,) float64: the sum of members' shares after each exchange."""
    return torch.stack([
        torch.cat([share[chosen].sum(dim=1) for chosen in people.exchanged(key, draws, seed)])
        for key, share in enumerate(shares)
    ]).sum(dim=0)  # fmt: skip


def _centred_ranks(ranking: Ranking, people: People) -> torch.Tensor:
    """(people,) float64: the sum of each person's mid-ranks, centred over rows.

    Higher scores have higher ranks. Of n rows, the mid-rank is centred at (n - 1) / 2; a member's wins over other
    members cancel.
    """
    n = len(people.codes)
    ranks = (n / 2 - (ranking.first + ranking.last) / 2).double()
    return torch.zeros(people.members.shape[1], dtype=torch.float64).index_add_(0, people.codes, ranks)


def exchange_p(sums: Sequence[torch.Tensor], observed: float, drawn: torch.Tensor, *, chosen: Sequence[int]) -> float:
    """Two-sided p of the observed total among random choices of people.

    It is counted among the drawn totals and the observed one, so it errs upwards. If no drawn total comes near, it is
    Chernoff's bound, if that is lower: a sum of people drawn without replacement exceeds any bar at most as
    Chernoff allows for one drawn with replacement (Hoeffding 1963, theorem 4), and keys draw independently.

    Args:
        sums: By key, (people,) float64, what each adds; sum 0.
        observed: The total over the members of all keys.
        drawn: (r,) totals over random choices of as many people under each key.
        chosen: By key, how many that is.
    """
    p = two_sided(drawn, observed)
    return p if p > 2 / (1 + len(drawn)) else min(p, 2 * _tail_bound(sums, observed, chosen))


def _tail_bound(sums: Sequence[torch.Tensor], observed: float, chosen: Sequence[int]) -> float:
    """A one-sided bound on the chance of so extreme a total."""
    largest = max(float(each.abs().amax()) for each in sums)
    tilts = torch.logspace(-4, 4, 161, dtype=torch.float64) / max(largest, 1e-300)
    logs = -tilts * abs(observed)
    for each, count in zip(sums, chosen, strict=True):
        # Those who are not chosen sum to the same with the other sign: the smaller group has the tighter bound.
        fewer = min(count, len(each) - count)
        ours = (1 if fewer == count else -1) * math.copysign(1.0, observed) * each
        logs += fewer * (torch.logsumexp(tilts[:, None] * ours, dim=1) - math.log(len(each)))
    return math.exp(min(0.0, float(logs.amin())))
