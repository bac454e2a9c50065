"""Membership: ROC AUC, and TPR at low FPR, of members' rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import scipy
import torch

from bench.evidence import CopyEvidence, MembershipEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import central
from bench.statistics.confidence_intervals import at_least_binomial, never_certain, with_interval
from bench.statistics.identification_risk import People, Ranking, people_of, replicates, unknown
from bench.statistics.pair_statistics import MEANS, one_sided
from bench.types import Column, Metric, NotApplicable, Score

MORE = 99_999
"""Exchanges drawn for a figure that none of the first `MEANS` reaches."""

RATES = {"1 %": 100, "0.1 %": 1000}


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
        resampled = replicates(evidence, rankings, membership_auc)
        value, seed = fmean(resampled.by_key), derive(evidence.seed, "null")
        ranks = [_centred_ranks(ranking, people) for ranking in rankings]
        # The AUC is 1/2 + T / (members x others), T the sum of the members' centred ranks; these are the keys' shares.
        shares = [
            own / (len(ranks) * int(members.sum()) * int((~members).sum()))
            for own, members in zip(ranks, evidence.members, strict=True)
        ]
        drawn = _exchanged_sums(shares, people, MEANS, seed)
        null_low, null_high = (min(1.0, max(0.0, end)) for end in central(0.5 + drawn))
        observed = sum(float(share[inside].sum()) for share, inside in zip(shares, people.members, strict=True))
        chosen = people.members.sum(dim=1).tolist()
        p = exchange_p(shares, observed, drawn, chosen=chosen)
        if 1 / (1 + MORE) < p <= 1 / (1 + MEANS):  # neither so few exchanges nor the bound can tell how rare it is
            p = exchange_p(shares, observed, _exchanged_sums(shares, people, MORE, derive(seed, "more")), chosen=chosen)
        wrong = "; below .5 the attack has the wrong sign, which is no protection" if value < 0.5 else ""
        score = Score(
            value, None, None, len(people.codes), null=0.5, null_low=null_low, null_high=null_high, p=p, sides=1,
            note=f"chance: people change sides{wrong}{unknown(evidence)}",
        )  # fmt: skip
        inside = people.members.sum(dim=1)
        fewer = int(torch.minimum(inside, people.members.shape[1] - inside).min())
        return never_certain(with_interval(score, resampled, over="people"), fewer)


def _exchanged_sums(shares: Sequence[torch.Tensor], people: People, draws: int, seed: int) -> torch.Tensor:
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
    """P that random choices of people do as well.

    It is counted among the drawn totals and the observed one, so it errs upwards. If no drawn total comes near, it is
    Chernoff's bound, if that is lower: a sum of people drawn without replacement exceeds any bar at most as
    Chernoff allows for one drawn with replacement (Hoeffding 1963, theorem 4), and keys draw independently.

    Args:
        sums: By key, (people,) float64, what each adds; sum 0.
        observed: The total over the members of all keys.
        drawn: (r,) totals over random choices of as many people under each key.
        chosen: By key, how many that is.
    """
    p = one_sided(drawn, observed, better="lower")
    return p if p > 1 / (1 + len(drawn)) else min(p, _tail_bound(sums, observed, chosen))


def _tail_bound(sums: Sequence[torch.Tensor], observed: float, chosen: Sequence[int]) -> float:
    """A one-sided bound on the chance of so extreme a total."""
    largest = max(float(shares.abs().amax()) for shares in sums)
    tilts = torch.logspace(-4, 4, 161, dtype=torch.float64) / max(largest, 1e-300)
    logs = -tilts * abs(observed)
    for shares, count in zip(sums, chosen, strict=True):
        # Those who are not chosen sum to the same with the other sign: the smaller group has the tighter bound.
        fewer = min(count, len(shares) - count)
        ours = (1 if fewer == count else -1) * math.copysign(1.0, observed) * shares
        logs += fewer * (torch.logsumexp(tilts[:, None] * ours, dim=1) - math.log(len(shares)))
    return math.exp(min(0.0, float(logs.amin())))


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
    counts = members.index_select(1, ranking.order[: int(higher.max())]).cumsum(dim=1)
    hits = torch.nn.functional.pad(counts, (1, 0)).gather(1, higher[:, None])[:, 0]
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
        nulls = _exchanged_rates(rankings, people, derive(evidence.seed, "null"))
        others = _fewest_others(evidence)
        known = [rate for rate, one_in in RATES.items() if rate == "1 %" or others >= one_in]
        parts = {rate: _tpr_score(evidence, people, rankings, rate, nulls[rate]) for rate in known}
        return replace(parts["1 %"], parts=parts)


def _exchanged_rates(rankings: list[Ranking], people: People, seed: int) -> dict[str, torch.Tensor]:
    """By rate, the mean over keys after each of `MEANS` exchanges."""
    drawn: dict[str, list[torch.Tensor]] = {rate: [] for rate in RATES}
    for key, ranking in enumerate(rankings):
        by_rate: dict[str, list[torch.Tensor]] = {rate: [] for rate in RATES}
        for chosen in people.exchanged(key, MEANS, seed):
            members = people.rows(chosen)
            for rate, one_in in RATES.items():
                by_rate[rate].append(membership_tpr(ranking, members, 1 - members, one_in=one_in))
        for rate, batches in by_rate.items():
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
        allowed, hits = (n - fewest) // one_in, math.ceil(value * fewest - 1e-9)
        first = len(set(people.codes[ranking.order[: hits + allowed]].tolist()))
        total += float(scipy.stats.hypergeom(len(sizes), int((~inside).sum()), first).cdf(allowed))
    return min(1.0, total)


def _tpr_score(
    evidence: MembershipEvidence, people: People, rankings: list[Ranking], rate: str, null: torch.Tensor
) -> Score:
    figure = partial(membership_tpr, one_in=RATES[rate])
    resampled = replicates(evidence, rankings, figure)
    value, others = fmean(resampled.by_key), _fewest_others(evidence)
    null_low, null_high = central(null)
    p = one_sided(null, value, better="lower")
    if p <= 1 / (1 + len(null)):
        p = min(p, tail_bound(rankings, people, value, one_in=RATES[rate]))
    score = Score(
        value, None, None, len(people.codes), null=float(null.mean()), null_low=null_low, null_high=null_high, p=p,
        sides=1, note=f"chance: people change sides{unknown(evidence)}",
    )  # fmt: skip
    if others < RATES[rate]:
        few = f"none of {others} others may stand above the threshold (it takes {RATES[rate]})"
        return replace(score, note=f"coarse, and no interval: {few}")
    bounded = with_interval(score, resampled, over="people")
    return at_least_binomial(
        bounded, sum(int(members.sum()) for members in evidence.members), people=people.members.shape[1]
    )


@dataclass(frozen=True)
class PatientMembershipAUC(Metric[MembershipEvidence]):
    """Area under the ROC curve of people in the release against others."""

    name: ClassVar[str] = "patient-membership-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Carlini et al. 2022, section III, by person"
    column: ClassVar[Column] = Column(
        title="Membership AUC by patient",
        meaning="The probability that Eve scores a patient of the private data above another patient, each by the mean "
        "rank of all images of theirs.",
        group="Membership: weakest figure over the attacks that count",
        digits=3,
        chance="0.5",
        order=7,
    )

    def __call__(self, evidence: MembershipEvidence) -> Score:
        """`MembershipAUC` of people's mean ranks.

        Raises:
            NotApplicable: Subjects are unknown, or each has one row; there are no members, or no others.
        """
        return MembershipAUC()(by_person(evidence))


def by_person(evidence: MembershipEvidence) -> MembershipEvidence:
    """The game by person, by the mean mid-rank of their rows.

    Ranks do not depend on the unit of an attack's scores, and one row far out does not count for all.

    Raises:
        NotApplicable: Subjects are unknown, or each has one row.
    """
    if evidence.subjects is None:
        raise NotApplicable("a figure by patient needs subjects: this data set does not say who is who")
    people = people_of(evidence)
    sizes = torch.bincount(people.codes)
    if int(sizes.amax()) == 1:
        raise NotApplicable("each patient has one image: the figure by image is that by patient")
    scores = [_centred_ranks(Ranking.of(scores), people) / sizes for scores in evidence.scores]
    return replace(evidence, scores=scores, members=list(people.members), subjects=None)


@dataclass(frozen=True)
class CopiedShare(Metric[CopyEvidence]):
    """Share of private rows that a release shows beyond held-out rows."""

    name: ClassVar[str] = "copied-share"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Amin et al. 2026 (arXiv 2606.16952); Meehan, Chaudhuri and Dasgupta 2020"
    column: ClassVar[Column] = Column(
        title="Copied",
        meaning="The share of private images that are nearer to a released row, beside images of other people, than 99 "
        "in a hundred held-out images: what the release shows of them, beyond what looks like them by itself.",
        group="Other attack figures: weakest",
        digits=3,
        chance="0.01",
        order=38,
    )
    on_request: ClassVar[bool] = True
    for_features: ClassVar[bool] = True

    def __call__(self, evidence: CopyEvidence) -> Score:
        """The share at 1 %, with the AUC as a part.

        The interval is over people, for this release; null and p by people exchanged between both sides. Official test
        rows may be of another kind than private ones; then both differ without any copy.

        Raises:
            NotApplicable: There are no private rows, or no held-out ones.
        """
        found = MembershipTPR()(evidence)
        return replace(found, parts={"AUC": MembershipAUC()(evidence)})
