"""How surely an attack finds a person: rates over keys, their distribution over people, and bounds for the worst.

An average near chance says nothing of the few who are found almost surely (Knolle et al. 2026, Nature). A person's rate
over K keys is that of K independent trials, so its bounds are Clopper and Pearson's. The bounds for the worst of P
people hold for all of them at once (Bonferroni): who is worst was not known beforehand. K keys without a hit bound the
rate of a person named beforehand by about 3 / K, and that of the worst of many by more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import numpy.typing as npt
import scipy
import torch

from bench.evidence import PersonRisk
from bench.rows.person_groups import FEWEST
from bench.statistics.components import with_interval
from bench.statistics.proportion import clopper_pearson
from bench.statistics.resampling import draw_weights, name_of
from bench.types import Replicates, Score

ALPHA = 0.05
DRAWS = 200

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds (P,) of the people's rates that hold for all of them at once, with 97.5 % each way."""

    low: Floats
    high: Floats


def rate_bounds(hits: Floats, trials: Floats, *, level: float) -> Bounds:
    """Clopper and Pearson's bounds of rates with `hits` (P,) of `trials` (P,); each errs with a chance of `level`."""
    return Bounds(*clopper_pearson(hits, trials, level))


def unseen_bound(keys: int, people: int = 1) -> float:
    """The 95 % upper bound of a rate that `keys` trials without a hit give: for a person named beforehand, or for
    the worst of `people`.

    >>> round(unseen_bound(10), 2), round(unseen_bound(33), 2), round(unseen_bound(10, 600), 2)
    (0.26, 0.09, 0.61)
    """
    return 1.0 - float((ALPHA / people) ** (1 / keys))


def luckiest(risk: PersonRisk) -> float:
    """p of the person who was found most surprisingly often, among all people (Bonferroni).

    Given what the attack said under each key, and rows dealt to people at random, a person is found under each with a
    chance of `luck`: the number of hits is Poisson-binomial, and whatever the scores look like, p holds.
    """
    luck, hits = (risk.luck * risk.trials).numpy(), risk.found.sum(dim=0).numpy()
    keys, people = risk.found.shape
    several = np.zeros((keys + 1, people))
    several[0] = 1.0
    for each in luck:
        several[1:] = several[1:] * (1 - each) + several[:-1] * each
        several[0] *= 1 - each
    tails: Floats = several[::-1].cumsum(axis=0)[::-1]
    least: np.float64 = tails[hits, np.arange(people)].min()
    return min(1.0, people * float(least))


def risk_score(risk: PersonRisk, *, seed: int) -> Score:
    """The worst person's rate beyond luck, with bounds, what random scores give, and the distribution as parts.

    Args:
        risk: Whom the attack found.
        seed: For resamples of people and the null's draws.
    """
    people, trials = risk.found.shape[1], risk.trials.sum(dim=0).double()
    hits, keys = risk.found.sum(dim=0).double(), int(trials.median())
    rates, luck = hits / trials, (risk.luck * risk.trials).sum(dim=0) / trials
    bounds = _beyond(risk, hits.numpy(), trials.numpy(), luck.numpy())
    draws = _null(risk, seed=seed)
    null_low, null_high = np.quantile(draws, (0.025, 0.975)).tolist()
    weights = draw_weights(None, people, DRAWS, seed=seed)
    parts = {
        "all people": mean_rate(risk, torch.ones(people, dtype=torch.bool), weights),
        "median person": Score(float(rates.median()), None, None, people),
        "person at 95 %": Score(float(torch.quantile(rates, 0.95)), None, None, people),
        "most often found": Score(float(rates.max()), None, None, people, note="luck included"),
        "bound without a hit": Score(unseen_bound(keys), None, None, keys),
    }
    for attribute, groups in risk.groups.items():
        for group, members in groups.items():
            if int(members.sum()) >= FEWEST:
                parts[f"{attribute}: {group}"] = mean_rate(risk, members, weights)
    return Score(
        float((rates - luck).clamp(min=0).max()),
        float(bounds.low.clip(0).max()),
        float(bounds.high.clip(0).max()),
        people, null=fmean(draws.tolist()), null_low=null_low, null_high=null_high, parts=parts,
        note=f"95 % bounds over {keys} keys that hold for all {people} people at once; so many keys bound the rate of "
        f"a person named beforehand and never found by {unseen_bound(keys):.2f}, of the worst of {people} by "
        f"{unseen_bound(keys, people):.2f}",
    )  # fmt: skip


def _beyond(risk: PersonRisk, hits: Floats, trials: Floats, luck: Floats) -> Bounds:
    """Bounds of what the people's rates exceed their luck by; luck that was counted has bounds of its own."""
    if risk.wrong is None:
        own = rate_bounds(hits, trials, level=ALPHA / 2 / len(hits))
        return Bounds(own.low - luck, own.high - luck)
    own = rate_bounds(hits, trials, level=ALPHA / 4 / len(hits))
    others = rate_bounds(*(counts.double().numpy() for counts in risk.wrong), level=ALPHA / 4 / len(hits))
    return Bounds(own.low - others.high, own.high - others.low)


def mean_rate(risk: PersonRisk, members: torch.Tensor, weights: torch.Tensor) -> Score:
    """The mean rate over some people (P,) bool, over people and keys; its part "worst" is the largest one of them.

    Args:
        risk: Whom the attack found.
        members: Whose mean it is.
        weights: (b, P) int64, how often each person occurs in each of b resamples.
    """
    found, asked, chance = risk.found[:, members].double(), risk.trials[:, members].double(), risk.chance[members]
    met = asked.sum(dim=1) > 0  # of a small group, a key may concern nobody
    found, asked = found[met], asked[met]
    times = weights[:, members].double()
    times = times[(times @ asked.T > 0).all(dim=1)]
    drawn = (found @ times.T) / (asked @ times.T)
    by_key, count = found.sum(dim=1) / asked.sum(dim=1), int(members.sum())
    deviation = 1.96 * math.sqrt(float((chance * (1 - chance)).sum()) / len(found)) / count
    middle = float(chance.mean())
    score = Score(
        float(by_key.mean()), None, None, count, null=middle, null_low=max(0.0, middle - deviation),
        null_high=min(1.0, middle + deviation),
        parts={"worst": Score(float((found.sum(dim=0) / asked.sum(dim=0)).max()), None, None, count,
                              note="luck included")},
    )  # fmt: skip
    if not 0 < score.value < 1:  # no resample of people varies it
        ends = rate_bounds(np.array([score.value * count]), np.array([count]), level=ALPHA / 2)
        note = "95 % interval as if each person were one trial: nobody differs"
        return replace(score, low=float(ends.low[0]), high=float(ends.high[0]), note=note)
    if len(times) < FEWEST:
        return replace(score, note="no interval: some keys concern too few of these people")
    made = Replicates(by_key.tolist(), drawn.tolist(), min(count - 1, DRAWS - 1), name_of(times), "share")
    return with_interval(score, made, over="people")


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
    found: Floats = (hits / torch.from_numpy(trials) - luck).amax(dim=1).clamp(min=0).numpy()
    return found


def counted_luck(wrong: torch.Tensor, of: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
    """How often the same is said of people wrongly, from counts, with one time more in which it is so by chance."""
    return (wrong + chance) / (of + 1)
