"""Membership TPR at low FPR: members an attack is sure of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import scipy
import torch

from bench.evidence import MembershipEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ENDS
from bench.statistics.confidence_intervals import at_least_binomial, with_interval
from bench.statistics.identification_risk import People, Ranking, people_of, replicates, unknown
from bench.statistics.pair_statistics import MEANS, two_sided
from bench.types import Column, Metric, Score

RATES = {"1 %": 100, "0.1 %": 1000}


def membership_tpr(ranking: Ranking, members: torch.Tensor, others: torch.Tensor, *, one_in: int) -> torch.Tensor:
    """Share of members found at a false-positive rate of 1 / `one_in`.

    Of t other rows, x = floor(t / one_in) may stand above the threshold, which is the score of the next one: the
    highest of all if t is below `one_in`. Rows level with the threshold stay below it.

    Args:
        ranking: Of one key's scores.
        members, others: (b, n) int64, how often each row counts as a member, and as none.
        one_in: The inverse of the false-positive rate.

    Returns:
        (b,) float64.
    """
    allowed = others.sum(dim=1) // one_in
    n, seen = len(ranking.order), 8 * (int(allowed.max()) + 1)
    while True:  # the threshold lies near the top
        order = ranking.order[:seen]
        above = others.index_select(1, order).cumsum(dim=1)
        if seen >= n or bool((above[:, -1] > allowed).all()):
            break
        seen *= 4
    threshold = order[torch.searchsorted(above, allowed[:, None], right=True)[:, 0]]
    higher = ranking.first[threshold]
    found = members.index_select(1, ranking.order[: int(higher.max())]).cumsum(dim=1)
    hits = torch.nn.functional.pad(found, (1, 0)).gather(1, higher[:, None])[:, 0]
    return hits.double() / members.sum(dim=1).double()


@dataclass(frozen=True)
class MembershipTPR(Metric[MembershipEvidence]):
    """Share of members found at a false-positive rate of 1 %."""

    name: ClassVar[str] = "membership-tpr"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Carlini et al. 2022, Membership inference attacks from first principles, section IV"
    column: ClassVar[Column] = Column(
        title="Membership TPR at 1 % FPR",
        meaning="The share of the private images that Eve names where she is wrong about one in a hundred of the "
        "others; the figure at one in a thousand stands beside it.",
        group="Membership: weakest figure over the attacks that count",
        digits=3,
        chance="0.01",
        order=10,
    )

    def __call__(self, evidence: MembershipEvidence) -> Score:
        """Mean over keys at 1 %; parts: 1 % and 0.1 %.

        0.1 % needs at least 1,000 others. The interval is over people and keys, each with members of its own;
        thresholds are drawn anew with the people. It is no narrower than that of as many independent answers as there
        are members and keys. If no other row is allowed above the threshold, an interval would hold the truth only
        64 to 77 times of a hundred (the highest of a sample tells little about the next sample's highest): at 1 % none
        is given then, and 0.1 % is left out.

        Null and p: under every key by itself, membership is exchanged among people, with the same number of members,
        and every figure is taken anew. With x of t other rows allowed and distinct scores, chance gives (x + 1) / (t +
        1), more than x / t. Below what exchanges can resolve, p is a bound in closed form (`tail_bound`).

        Raises:
            NotApplicable: There are no members, or no others.
        """
        people = people_of(evidence)
        rankings = [Ranking.of(scores) for scores in evidence.scores]
        nulls = _exchanged(rankings, people, derive(evidence.seed, "null"))
        others = _fewest_others(evidence)
        known = [rate for rate, one_in in RATES.items() if rate == "1 %" or others >= one_in]
        parts = {rate: _at(evidence, people, rankings, rate, nulls[rate]) for rate in known}
        return replace(parts["1 %"], parts=parts)


def _exchanged(rankings: list[Ranking], people: People, seed: int) -> dict[str, torch.Tensor]:
    """By rate, the mean over keys after each of `MEANS` exchanges."""
    drawn: dict[str, list[torch.Tensor]] = {rate: [] for rate in RATES}
    for key, ranking in enumerate(rankings):
        found: dict[str, list[torch.Tensor]] = {rate: [] for rate in RATES}
        for chosen in people.exchanged(key, MEANS, seed):
            members = people.rows(chosen)
            for rate, one_in in RATES.items():
                found[rate].append(membership_tpr(ranking, members, 1 - members, one_in=one_in))
        for rate, batches in found.items():
            drawn[rate].append(torch.cat(batches))
    return {rate: torch.stack(by_key).mean(dim=0) for rate, by_key in drawn.items()}


def _fewest_others(evidence: MembershipEvidence) -> int:
    return min(int((~members).sum()) for members in evidence.members)


def tail_bound(rankings: Sequence[Ranking], people: People, value: float, *, one_in: int) -> float:
    """A bound on the chance that a mean rate reaches `value`.

    The mean is over keys; membership is exchanged among people. Then some key finds at least f = value * members of its
    rows above the next of the x others that are allowed: of the first f + x rows at most x are others (rows that tie
    are found less often). So of the p people whose rows these are at most x are others, which is hypergeometric. People
    may have several rows each: members are at least as many rows as the people with fewest have, which makes f smallest
    and x largest. The keys together have at most the sum of their chances.
    """
    sizes, n, total = torch.bincount(people.codes).sort().values, len(people.codes), 0.0
    for ranking, inside in zip(rankings, people.members, strict=True):
        fewest = int(sizes[: int(inside.sum())].sum())
        allowed, found = (n - fewest) // one_in, math.ceil(value * fewest - 1e-9)
        first = len(set(people.codes[ranking.order[: found + allowed]].tolist()))
        total += float(scipy.stats.hypergeom(len(sizes), int((~inside).sum()), first).cdf(allowed))
    return min(1.0, total)


def _at(evidence: MembershipEvidence, people: People, rankings: list[Ranking], rate: str, null: torch.Tensor) -> Score:
    figure = partial(membership_tpr, one_in=RATES[rate])
    found = replicates(evidence, rankings, figure)
    value, others = fmean(found.by_key), _fewest_others(evidence)
    null_low, null_high = torch.quantile(null, torch.tensor(ENDS, dtype=torch.float64)).tolist()
    p = two_sided(null, value)
    if p <= 2 / (1 + len(null)):
        p = min(p, 2 * tail_bound(rankings, people, value, one_in=RATES[rate]))
    score = Score(
        value, None, None, len(people.codes), null=float(null.mean()), null_low=null_low, null_high=null_high, p=p,
        note=f"chance: people change sides{unknown(evidence)}",
    )  # fmt: skip
    if others < RATES[rate]:
        few = f"none of {others} others may stand above the threshold (it takes {RATES[rate]})"
        return replace(score, note=f"coarse, and no interval: {few}")
    made = with_interval(score, found, over="people")
    return at_least_binomial(
        made, sum(int(members.sum()) for members in evidence.members), people=people.members.shape[1]
    )
