"""Risk of people: identification rates, bounds, and membership resampling.

An average near chance hides the few who are identified almost surely (Knolle et al. 2026, Nature). A person's rate over
K keys is that of K independent trials, bounded by Clopper and Pearson. The bounds for the worst of P people hold for
all at once (Bonferroni), as the worst is not known beforehand. K keys without a hit bound the rate of a person named
beforehand by about 3 / K, and that of the worst of many by more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import scipy
import torch

from bench.evidence import MembershipEvidence, PersonRisk
from bench.rows.grouping import FEWEST
from bench.seeds import derive, generator
from bench.statistics.bootstrap import ONE_EACH, draw_weights, name_of
from bench.statistics.confidence_intervals import clopper_pearson, with_interval
from bench.types import NotApplicable, Replicates, Score

if TYPE_CHECKING:
    import numpy.typing as npt

ALPHA = 0.05
DRAWS = 200

Floats: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Simultaneous 97.5 % bounds (P,) of the people's rates, each way."""

    low: Floats
    high: Floats


def rate_bounds(hits: Floats, trials: Floats, *, level: float) -> Bounds:
    """Clopper-Pearson bounds of `hits` (P,) of `trials` (P,), at `level`."""
    return Bounds(*clopper_pearson(hits, trials, level))


def unseen_bound(keys: int, people: int = 1) -> float:
    """95 % upper bound of a rate: `keys` trials, no hit.

    For a person named beforehand, or for the worst of `people`.

    >>> round(unseen_bound(10), 2), round(unseen_bound(33), 2), round(unseen_bound(10, 600), 2)
    (0.26, 0.09, 0.61)
    """
    return 1.0 - float((ALPHA / people) ** (1 / keys))


def luckiest(risk: PersonRisk) -> float:
    """Smallest p of a person's hits, corrected for all people (Bonferroni).

    Hits are Poisson-binomial: rows dealt to people at random find a person under each key with probability `luck`. Of
    tied first guesses the expected hits are rounded down: they vary less than hits drawn with that probability.
    """
    luck, hits = (risk.luck * risk.trials).numpy(), whole_hits(risk).numpy()
    keys, people = risk.found.shape
    mass = np.zeros((keys + 1, people))
    mass[0] = 1.0
    for chances in luck:
        mass[1:] = mass[1:] * (1 - chances) + mass[:-1] * chances
        mass[0] *= 1 - chances
    tails: Floats = mass[::-1].cumsum(axis=0)[::-1]
    least: np.float64 = tails[hits, np.arange(people)].min()
    return min(1.0, people * float(least))


def whole_hits(risk: PersonRisk) -> torch.Tensor:
    """(P,) int64: expected hits over keys, rounded down."""
    return (risk.found.sum(dim=0) + 1e-9).floor().long()


def risk_score(risk: PersonRisk, *, seed: int) -> Score:
    """The worst person's rate beyond luck, with bounds and null.

    Raises:
        NotApplicable: With so few keys a person who is found under all of them cannot be told from the luckiest person
            under random scores (`fewest_keys`).
    """
    people, trials = risk.found.shape[1], risk.trials.sum(dim=0).double()
    hits, keys = risk.found.sum(dim=0), int(trials.median())
    _require_telling(risk, keys)
    rates, luck = hits / trials, (risk.luck * risk.trials).sum(dim=0) / trials
    bounds = _beyond(risk, hits.numpy(), trials.numpy(), luck.numpy())
    draws = _null(risk, seed=seed)
    null_low, null_high = np.quantile(draws, (0.025, 0.975)).tolist()
    parts = {
        "most often found": Score(float(rates.max()), None, None, people, note="luck included"),
        "bound without a hit": Score(unseen_bound(keys), None, None, keys),
    }
    return Score(
        float((rates - luck).clamp(min=0).max()),
        float(bounds.low.clip(0).max()),
        float(bounds.high.clip(0).max()),
        people, null=fmean(draws.tolist()), null_low=null_low, null_high=null_high, parts=parts,
        note=f"95 % bounds over {keys} keys that hold for all {people} people at once; so many keys bound the rate of "
        f"a person named beforehand and never found by {unseen_bound(keys):.2f}, of the worst of {people} by "
        f"{unseen_bound(keys, people):.2f}",
    )  # fmt: skip


def found_score(risk: PersonRisk, *, seed: int, trainings: Sequence[int] = ()) -> Score:
    """The mean rate of all people, with interval and chance.

    Parts are the median person, the person at 95 %, and the mean of each group of at least `FEWEST` people. `trainings`
    is as in `Replicates`.
    """
    people = risk.found.shape[1]
    rates = risk.found.sum(dim=0) / risk.trials.sum(dim=0)
    weights = draw_weights(None, people, DRAWS, seed=seed)
    parts = {
        "median person": Score(float(rates.quantile(0.5)), None, None, people),
        "person at 95 %": Score(float(rates.quantile(0.95)), None, None, people),
    }
    for attribute, groups in risk.groups.items():
        for group, members in groups.items():
            if int(members.sum()) >= FEWEST:
                parts[f"{attribute}: {group}"] = mean_rate(risk, members, weights, trainings)
    everybody = mean_rate(risk, torch.ones(people, dtype=torch.bool), weights, trainings)
    return replace(everybody, parts={**everybody.parts, **parts})


MOST_KEYS = 200
"""Keys up to which `fewest_keys` looks."""
LASTING = 20
"""Further keys under which the answer must stay, for whole hits of few keys are coarse."""


def fewest_keys(chance: Floats, *, share: float = 1.0, others: float = 0.0) -> int | None:
    """Fewest keys that tell a sure person from luck; None above `MOST_KEYS`.

    The lower bound of a person found under every key is then above the 97.5 % quantile of the luckiest person's rate
    under random scores.

    Args:
        chance: (P,) probability, under random scores, that a person is found under a key.
        share: Share of the keys under which a person can be found.
        others: Share of the keys under which a person can be found wrongly, if luck is counted so; else 0.

    >>> fewest_keys(np.full(600, 1 / 600))
    8
    """
    values, people = np.unique(chance, return_counts=True)
    lasting = 0
    for keys in range(1, MOST_KEYS + LASTING):
        lasting = lasting + 1 if _tells(max(1.0, keys * share), keys * others, values, people.astype(np.float64)) else 0
        if lasting == LASTING:
            return keys - LASTING + 1
    return None


def _tells(trials: float, others: float, chance: Floats, people: Floats) -> bool:
    """True if a sure person's lower bound is above random scores' luckiest."""
    luck = float(chance @ people) / people.sum()
    level = ALPHA / (4 if others else 2) / people.sum()
    low = level ** (1 / trials) - (1 - level ** (1 / others) if others else luck)
    hits = np.arange(math.ceil(trials) + 1)
    none_above = (scipy.stats.binom.cdf(hits[:, None], hits[-1], chance) ** people).prod(axis=1)
    return bool(low > np.argmax(none_above >= 1 - ALPHA / 2) / trials - luck)


def _require_telling(risk: PersonRisk, trials: int) -> None:
    keys, people = risk.found.shape
    others = 0.0 if risk.wrong is None else float(risk.wrong[1].double().median()) / keys
    enough = fewest_keys(risk.chance.numpy(), share=trials / keys, others=others)
    if enough is None or enough > keys:
        raise NotApplicable(
            f"with {keys} keys, a person found under every key cannot be told from the luckiest of {people} people "
            f"under random scores: "
            + (f"more than {MOST_KEYS} keys are needed" if enough is None else f"{enough} keys are enough")
        )


def _beyond(risk: PersonRisk, hits: Floats, trials: Floats, luck: Floats) -> Bounds:
    """Bounds of the people's rates minus their luck, which may be estimated."""
    if risk.wrong is None:
        own = rate_bounds(hits, trials, level=ALPHA / 2 / len(hits))
        return Bounds(own.low - luck, own.high - luck)
    own = rate_bounds(hits, trials, level=ALPHA / 4 / len(hits))
    others = rate_bounds(*(counts.double().numpy() for counts in risk.wrong), level=ALPHA / 4 / len(hits))
    return Bounds(own.low - others.high, own.high - others.low)


def mean_rate(risk: PersonRisk, members: torch.Tensor, weights: torch.Tensor, trainings: Sequence[int] = ()) -> Score:
    """Mean rate of `members` (P,) bool; part "worst" is the largest.

    `weights` (b, P) are the times each person occurs in each of b resamples.
    """
    hits, trials, chance = risk.found[:, members].double(), risk.trials[:, members].double(), risk.chance[members]
    concerned = trials.sum(dim=1) > 0  # a key may concern no one of a small group
    trainings = [trainings[key] for key in concerned.nonzero()[:, 0].tolist()] if trainings else ()
    hits, trials = hits[concerned], trials[concerned]
    times = weights[:, members].double()
    times = times[(times @ trials.T > 0).all(dim=1)]
    drawn = (hits @ times.T) / (trials @ times.T)
    by_key, count = hits.sum(dim=1) / trials.sum(dim=1), int(members.sum())
    deviation = 1.96 * math.sqrt(float((chance * (1 - chance)).sum()) / len(hits)) / count
    middle = float(chance.mean())
    score = Score(
        float(by_key.mean()), None, None, count, null=middle, null_low=max(0.0, middle - deviation),
        null_high=min(1.0, middle + deviation),
        parts={"worst": Score(float((hits.sum(dim=0) / trials.sum(dim=0)).max()), None, None, count,
                              note="luck included")},
    )  # fmt: skip
    if not 0 < score.value < 1:  # no resample of people varies it
        bounds = rate_bounds(np.array([score.value * count]), np.array([count]), level=ALPHA / 2)
        note = "95 % interval as if each person were one trial: all have the same rate"
        return replace(score, low=float(bounds.low[0]), high=float(bounds.high[0]), note=note)
    if len(times) < FEWEST:
        return replace(score, note="no interval: some keys concern too few of these people")
    replicates = Replicates(
        by_key.tolist(), drawn.tolist(), min(count - 1, DRAWS - 1), name_of(times), "share", trainings
    )
    return with_interval(score, replicates, over="people")


def _null(risk: PersonRisk, *, seed: int) -> Floats:
    """Draws of the worst person's rate beyond luck when scores are random."""
    trials, chance = risk.trials.sum(dim=0).numpy(), risk.chance.numpy()
    random, size = np.random.default_rng(seed), (DRAWS, len(chance))
    hits, luck = (
        torch.from_numpy(scipy.stats.binom.rvs(trials, chance, size=size, random_state=random)).double(),
        risk.chance,
    )
    if risk.wrong is not None:
        others = scipy.stats.binom.rvs(risk.wrong[1].numpy(), chance, size=size, random_state=random)
        luck = counted_luck(torch.from_numpy(others).double(), risk.wrong[1], risk.chance)
    beyond: Floats = (hits / torch.from_numpy(trials) - luck).amax(dim=1).clamp(min=0).numpy()
    return beyond


def counted_luck(wrong: torch.Tensor, trials: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
    """Estimated luck: (false identifications + chance) / (trials + 1)."""
    return (wrong + chance) / (trials + 1)


MEMBERSHIP_DRAWS = 400
TOGETHER = 1_000_000
"""Numbers drawn at a time."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in falling order of one key's scores.

    Args:
        order: (n,) int64, rows from the highest score down.
        first, last: (n,) int64, by row: number of rows that score higher, and at least as high.
    """

    order: torch.Tensor
    first: torch.Tensor
    last: torch.Tensor

    @classmethod
    def of(cls, scores: torch.Tensor) -> Self:
        """The ranking of scores (n,)."""
        order = torch.argsort(scores, descending=True, stable=True)
        falling = -scores[order]
        first, last = (torch.searchsorted(falling, -scores, right=right) for right in (False, True))
        return cls(order, first, last)

    def sums(self, weights: torch.Tensor) -> torch.Tensor:
        """Cumulative weights (b, n + 1) in ranking order of (b, n)."""
        return torch.nn.functional.pad(weights.index_select(1, self.order).cumsum(dim=1), (1, 0))


Figure: TypeAlias = "Callable[[Ranking, torch.Tensor, torch.Tensor], torch.Tensor]"
"""A key's ranking, member counts and non-member counts of rows, (b, n) int64 both -> figures (b,) float64."""


@dataclass(frozen=True, eq=False)
class People:
    """People among the candidates, and members by key.

    Args:
        codes: (n,) int64, the person of each row, from 0.
        members: (keys, people) bool.
    """

    codes: torch.Tensor
    members: torch.Tensor

    def exchanged(self, key: int, draws: int, seed: int) -> Iterator[torch.Tensor]:
        """Batches of random choices of as many people as members."""
        people, count = self.members.shape[1], int(self.members[key].sum())
        random = generator(derive(seed, key))
        for size in _batches(draws, people):
            places = torch.rand(size, people, generator=random, dtype=torch.float64)
            yield torch.from_numpy(np.argpartition(places.numpy(), count - 1, axis=1)[:, :count])

    def rows(self, chosen: torch.Tensor) -> torch.Tensor:
        """(b, n) int64: 1 for rows of the people in (b, members)."""
        mask = torch.zeros(len(chosen), self.members.shape[1], dtype=torch.int64).scatter_(1, chosen, 1)
        return mask.index_select(1, self.codes)


def people_of(evidence: MembershipEvidence) -> People:
    """The people behind the candidates (rows without subjects).

    Raises NotApplicable for a key without members or others, ValueError for a person on both sides.
    """
    codes = torch.arange(len(evidence.scores[0]))
    if evidence.subjects is not None:
        codes = torch.unique(evidence.subjects, return_inverse=True)[1]
    count, sides = int(codes.max()) + 1, []
    for members in evidence.members:
        if not 0 < int(members.sum()) < len(members):
            raise NotApplicable(
                f"membership needs members and others, got {int(members.sum())} members of {len(members)} rows"
            )
        inside, outside = (torch.bincount(codes[part], minlength=count) > 0 for part in (members, ~members))
        if bool((inside & outside).any()):
            both = int((inside & outside).sum())
            raise ValueError(f"a person must be a member of a key or not, got {both} people who are both")
        sides.append(inside)
    return People(codes, torch.stack(sides))


def unknown(evidence: MembershipEvidence) -> str:
    """Addition to a note if the subjects are unknown."""
    return "" if evidence.subjects is not None else f"; {ONE_EACH}"


def replicates(evidence: MembershipEvidence, rankings: Sequence[Ranking], figure: Figure) -> Replicates:
    """A figure by key, and on people resampled alike for all attacks."""
    members, n, dropped = evidence.members, len(evidence.members[0]), 0
    by_key = [
        float(figure(ranking, own.long()[None], (~own).long()[None]))
        for ranking, own in zip(rankings, members, strict=True)
    ]
    drawn: list[list[float]] = [[] for _ in rankings]
    for number, size in enumerate(_batches(MEMBERSHIP_DRAWS, n)):
        times = draw_weights(evidence.subjects, n, size, seed=derive(evidence.draws, number))
        both = [(times[:, side].sum(dim=1) > 0)[:, None] for own in members for side in (own, ~own)]
        times = times[torch.cat(both, dim=1).all(dim=1)]  # a draw of few people may lack one side
        dropped += size - len(times)
        for of_key, ranking, own in zip(drawn, rankings, members, strict=True):
            of_key += figure(ranking, times * own, times * ~own).tolist()
    people = people_of(evidence)
    inside = people.members
    fewer = int(torch.minimum(inside.sum(dim=1), (~inside).sum(dim=1)).min())
    shared = evidence.subjects is not None and not dropped
    name = name_of(torch.tensor([evidence.draws, inside.shape[1], n])) if shared else ""
    return Replicates(by_key, drawn, float(min(max(1, 2 * (fewer - 1)), MEMBERSHIP_DRAWS - 1)), name, "share")


def _batches(draws: int, width: int) -> list[int]:
    """Sizes of batches of `draws` draws of `width` numbers."""
    size = max(1, TOGETHER // width)
    return [min(size, draws - start) for start in range(0, draws, size)]
