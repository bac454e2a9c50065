"""The audit: a distinguishing game that tries to refute a method's differential-privacy claim.

Sources: Jagielski, Ullman and Oprea 2020, Auditing differentially private machine learning; Nasr et al. 2021, Adversary
instantiation. Two inputs are known to all; is a release that of the first or of the second? On one half of the
releases the pair of inputs, the statistic, its direction and its threshold are chosen; on the other half that one test
is counted (`metrics.empirical_epsilon` makes a bound of it). Nothing of the second half has a part in the choice: its
releases are made afterwards, under keys of their own.

The inputs are the mechanism's own witnesses and rows made from the public set; no private row enters. Both have the
same labels, which are outside every claim. Releases come from `Key.release` alone, the mechanism is only asked what a
release says about its noise. Where a row's release depends on that row alone, one key releases many copies at once;
otherwise, or where copies share their noise, every release has one row and a key of its own, and there are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.audit.inputs import Pair, input_pairs
from bench.contract.mechanism import Mechanism
from bench.contract.seal import check
from bench.evidence import AuditEvidence
from bench.progress import report, stage
from bench.randomness import Secret
from bench.statistics.epsilon_bounds import lower_bound
from bench.types import Dataset, NotApplicable, PrivacyClaim, Release, Scheme

CONFIDENCE = 0.95
NUMBERS = 2**20  # raw numbers a call of Key.release
LEARNED, MOST_LEARNED = 2**22, 512  # released numbers and rows of each input that a discriminant is learned from
ONE_BY_ONE = 1000  # most releases of each input where every one is a call of its own
COPIES = 16
TINY = 1e-6
HUGE = 1e300


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number a released row, (m,) float64: higher speaks for the first input of the pair it was made for."""

    name: str
    of: Callable[[Release], Tensor]


@dataclass(frozen=True, eq=False)
class Rule:
    """A test: a release is called the first input's where sign x statistic lies above the threshold."""

    pair: Pair
    statistic: Statistic
    sign: int
    threshold: float

    def calls(self, release: Release) -> int:
        """How many rows of a release it calls the first input's."""
        return int((self.sign * _numbers(self.statistic, release) > self.threshold).sum())


@dataclass(frozen=True, eq=False)
class Game:
    """Where releases come from. `copies`: rows a call; 1 stands for one release a key."""

    scheme: Scheme
    secret: Secret
    copies: int

    def releases(self, row: Dataset, count: int, purpose: str) -> Iterator[Release]:
        """`count` released rows of one input, in several releases, each under a fresh key drawn for that purpose."""
        for done in range(0, count, self.copies):
            report(purpose, done, count)
            rows = row.take(torch.zeros(min(self.copies, count - done), dtype=torch.int64, device=row.samples.device))
            release = self.scheme.sample_key(self.secret.derive(purpose, done)).release(rows)
            check(release, rows)
            if len(release) != len(rows):
                raise NotApplicable(
                    f"an audit needs a released row for every raw one: {len(rows)} rows gave {len(release)}"
                )
            yield release


def audit(
    scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, trials: int, secret: Secret
) -> tuple[Rule, AuditEvidence, Game]:
    """The test that was chosen, what it came to, and how releases were made.

    Args:
        scheme, claim: What is audited.
        public: Rows of the kind the scheme reads, to make inputs from.
        trials: Releases of each of two inputs, half of them to choose the test by; at most `ONE_BY_ONE` are made where
            every release needs a key of its own.
        secret: Decides the keys.
    """
    mechanism = scheme.mechanism()
    pairs = input_pairs(mechanism, claim, public)
    game = Game(scheme, secret, _copies(scheme, mechanism, pairs[0].first, secret))
    if game.copies == 1:
        trials = min(trials, ONE_BY_ONE)
    stage("choose a test")
    rule = choose(game, mechanism, pairs, trials=trials // 2, delta=claim.delta)
    stage("count its calls")
    counted = trials - trials // 2
    hits, false_alarms = (
        sum(rule.calls(release) for release in game.releases(row, counted, f"count {which}"))
        for which, row in (("first", rule.pair.first), ("second", rule.pair.second))
    )
    return rule, AuditEvidence(claim, counted, hits, false_alarms, CONFIDENCE), game


def _copies(scheme: Scheme, mechanism: Mechanism | None, row: Dataset, secret: Secret) -> int:
    """How many copies of a row one key may release: one where copies might share noise or see each other."""
    if mechanism is None or not mechanism.rowwise:
        return 1
    (probe,) = Game(scheme, secret, COPIES).releases(row, COPIES, "probe")
    if len(torch.unique(probe.samples.flatten(1), dim=0)) < COPIES:
        return 1
    return max(1, NUMBERS // row.samples[0].numel())


def choose(game: Game, mechanism: Mechanism | None, pairs: Sequence[Pair], *, trials: int, delta: float) -> Rule:
    """The test with the largest lower bound on `trials` releases of each input in all, shared out among the pairs.

    A quarter of a pair's share (as far as memory allows) goes into learning its discriminant, the rest into thresholds.
    """
    best: tuple[float, Rule] | None = None
    for number, pair in enumerate(pairs):
        share = max(8, trials // len(pairs))
        learned = min(share // 4, MOST_LEARNED, max(2, LEARNED // pair.first.samples.numel()))
        statistics = [linear_discriminant(game, pair, learned, f"learn {number}")]
        if mechanism is not None:
            statistics.insert(0, likelihood_ratio(mechanism, pair))
        values = [
            np.concatenate([
                np.stack([_numbers(statistic, release) for statistic in statistics])
                for release in game.releases(row, share - learned, f"choose {number} {which}")
            ], axis=1)
            for which, row in (("first", pair.first), ("second", pair.second))
        ]  # fmt: skip
        for statistic, first, second in zip(statistics, *values, strict=True):
            for sign, turned, above, below in ((1, pair, first, second), (-1, pair.swapped(), -second, -first)):
                bound, threshold = _cut(above, below, delta)
                if best is None or bound > best[0]:
                    best = bound, Rule(turned, statistic, sign, threshold)
    if best is None:
        raise ValueError("an audit needs at least one pair of inputs, got none")
    return best[1]


def _cut(above: NDArray[np.float64], below: NDArray[np.float64], delta: float) -> tuple[float, float]:
    """The largest lower bound that a threshold between two values reaches, and that threshold."""
    values = np.unique(np.concatenate((above, below)))
    # Halfway between neighbours, so that a test that separates all is not undone by the next value.
    thresholds = values[:-1] / 2 + values[1:] / 2 if len(values) > 1 else values
    hits, false_alarms = (
        len(part) - np.searchsorted(np.sort(part), thresholds, side="right") for part in (above, below)
    )
    bounds = lower_bound(hits, false_alarms, len(above), delta=delta, confidence=CONFIDENCE)
    place = int(bounds.argmax())
    return float(bounds[place]), float(thresholds[place])


def likelihood_ratio(mechanism: Mechanism, pair: Pair) -> Statistic:
    """Log density under the first input minus that under the second: no test is stronger (Neyman and Pearson)."""
    located = torch.cat([mechanism.locate(row) for row in (pair.first, pair.second)])

    def of(release: Release) -> Tensor:
        densities = mechanism.log_density(located, mechanism.observe(release))
        return densities[0].sub(densities[1])

    return Statistic("likelihood ratio", of)


def linear_discriminant(game: Game, pair: Pair, count: int, purpose: str) -> Statistic:
    """Fisher's discriminant in released pixels, learned from `count` releases of each input, for any method.

    Pixels are divided by their spread within an input; the covariance is that spread plus the average one (shrunk
    halfway), inverted through the (2 count, 2 count) products of the rows.
    """
    first, second = (
        torch.cat([release.samples.flatten(1).double() for release in game.releases(row, count, f"{purpose} {which}")])
        for which, row in (("first", pair.first), ("second", pair.second))
    )
    gap = first.mean(dim=0) - second.mean(dim=0)
    rows = torch.cat((first - first.mean(dim=0), second - second.mean(dim=0)))
    spread = rows.square().mean(dim=0).sqrt()
    scale = torch.maximum(spread, TINY * gap.abs())
    scale = torch.where(scale > 0, scale, 1.0)  # a pixel that never varies weighs nothing whatever its scale
    rows, gap = rows / scale, gap / scale
    products = rows @ rows.T
    products.diagonal().add_(len(rows))
    weights = (gap - rows.T @ torch.linalg.solve(products, rows @ gap)) / scale

    def of(release: Release) -> Tensor:
        return torch.mv(release.samples.flatten(1).double(), weights)

    return Statistic("linear discriminant", of)


def _numbers(statistic: Statistic, release: Release) -> NDArray[np.float64]:
    """The statistic's values; one that cannot be computed says nothing, which is 0."""
    found: NDArray[np.float64] = statistic.of(release).nan_to_num(nan=0.0, posinf=HUGE, neginf=-HUGE).cpu().numpy()
    return found
