"""The test that is counted: chosen on releases of its own, fixed before the others are made.

The audit: distinguishing games that try to refute a method's differential-privacy claim.

Sources: Jagielski, Ullman and Oprea 2020, Auditing differentially private machine learning; Nasr et al. 2021, Adversary
instantiation; Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run. Two inputs are known to
all, a coin decides which of them is released; how did it fall? On one half of the releases the game, the statistic, its
direction and its thresholds are chosen; on the other half that one test is counted (`metrics.empirical_epsilon` makes a
bound of it). Nothing of the second half has a part in the choice: its releases are made afterwards, under keys of their
own, so that however many games and statistics were tried, the bound is that of one test.

The inputs are the mechanism's own witnesses and rows made from the public set; no private row enters. Both have the
same labels, which are outside every claim. Releases come from the key alone, the mechanism is only asked what a release
says about its noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bench.audit import canaries
from bench.audit.audit_inputs import Pair, input_pairs, usual
from bench.audit.game_plays import (
    NUMBERS,
    ONE_BY_ONE,
    Layout,
    Owner,
    PixelPlay,
    Play,
    RowPlay,
    Statistic,
    Tosses,
    joined,
)
from bench.audit.leak_statistics import learn
from bench.contract.mechanism import Mechanism
from bench.evidence import Calls
from bench.progress import stage
from bench.randomness import Secret
from bench.statistics.epsilon_bounds import lower_bound
from bench.types import Dataset, PrivacyClaim, Scheme

HUGE = 1e300
ENDS, BETWEEN, GAPS = 10, 24, 12  # places at which a test may begin to guess: at the ends, in between, in wide gaps
Values = NDArray[np.float64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Entry:
    """A play and the statistic that a rule reads there."""

    play: Play
    statistic: Statistic


@dataclass(frozen=True, eq=False)
class Rule:
    """A test: a coin is called first above `high`, second below `low`, of sign x statistic; between, it abstains.

    Its entries are played by turns.
    """

    entries: Sequence[Entry]
    sign: int
    low: float
    high: float

    @property
    def inputs(self) -> str:
        """What is played."""
        return self.entries[0].play.name if len(self.entries) == 1 else f"{len(self.entries)} games by turns"

    def calls(self, first: Coins, values: Values) -> Calls:
        """What it calls coins by their statistic."""
        above, below = self.sign * values > self.high, self.sign * values < self.low
        hits, misses = int((above & first).sum()), int((below & first).sum())
        return Calls(len(first), int(first.sum()), hits, int(above.sum()) - hits, misses, int(below.sum()) - misses)


@dataclass(frozen=True, eq=False)
class Tried:
    """A statistic on releases of the choice: (k,) coins and values."""

    entries: Sequence[Entry]
    first: Coins
    values: Values

    def best(self, *, delta: float, confidence: float) -> tuple[float, Rule]:
        """The largest lower bound that two thresholds reach, and the rule that has them."""
        found = [(*_cut(self.first, sign * self.values, delta=delta, confidence=confidence), sign) for sign in (1, -1)]
        bound, low, high, sign = max(found, key=lambda one: one[0])
        return bound, Rule(self.entries, sign, low, high)


def numbers(statistic: Statistic, tosses: Tosses) -> Values:
    """The statistic's values; one that cannot be computed says nothing, which is 0."""
    found: Values = statistic.of(tosses).to(torch.float64).nan_to_num(nan=0.0, posinf=HUGE, neginf=-HUGE).cpu().numpy()
    return found


def _cut(first: Coins, values: Values, *, delta: float, confidence: float) -> tuple[float, float, float]:
    """(bound, low, high): the two thresholds with the largest lower bound."""
    cuts = _cuts(np.unique(values))
    heads, tails = (np.sort(values[side]) for side in (first, ~first))
    # Above every cut, and below it: how many coins of either kind.
    above = [len(side) - np.searchsorted(side, cuts, side="right") for side in (heads, tails)]
    below = [np.searchsorted(side, cuts, side="left") for side in (heads, tails)]
    correct = below[1][:, None] + above[0][None, :]
    guesses = correct + below[0][:, None] + above[1][None, :]
    bounds = lower_bound(correct, guesses, len(first), delta=delta, confidence=confidence)
    bounds[cuts[:, None] > cuts[None, :]] = -np.inf
    low, high = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return float(bounds[low, high]), float(cuts[low]), float(cuts[high])


def _cuts(values: Values) -> Values:
    """Where to cut between values (unique, rising): halfway between neighbours, beyond both ends, and not too many.

    Halfway, so that a test that separates all is not undone by the next value.
    """
    halves = values[:-1] / 2 + values[1:] / 2
    if len(halves) > 2 * ENDS + GAPS + BETWEEN:
        places = np.arange(len(halves))
        inner = np.linspace(ENDS, len(halves) - ENDS - 1, BETWEEN).round().astype(np.int64)
        wide = np.argsort(values[1:] / 2 - values[:-1] / 2)[-GAPS:]  # what is equal lies apart from what is near
        halves = halves[np.unique(np.concatenate((places[:ENDS], inner, wide, places[-ENDS:])))]
    return np.concatenate(([-np.inf], halves, [np.inf]))


CONFIDENCE = 0.95
BOLD, SUSPICION, CAUTIOUS = 0.995, 0.99, 0.9999  # of the bounds that tests are chosen by
LEARNED = 512, 4 * NUMBERS  # most releases, and most released numbers, that statistics are learned from
LEAST = 8  # rows a play
FINALISTS = 4
POOLED = (
    "nearest number",
    "nearest code",
    "distance of numbers",
    "distance of codes",
)  # statistics whose values compare between plays
ALONE = 3  # pairs that are also played alone where nothing says whether rows of a release see each other


@dataclass(frozen=True)
class Played:
    """What an audit came to.

    Args:
        calls: Of the counted releases.
        inputs, statistic: The game that was counted, and what was read.
        thresholds: Below the first a coin is called second, above the other one first; None for no such call.
        games: All games that were played for the choice, by name.
        one_run: As in `bench.evidence.AuditEvidence`.
    """

    calls: Calls
    inputs: str
    statistic: str
    thresholds: tuple[float | None, float | None]
    games: tuple[str, ...]
    one_run: bool = False


def audit(scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, trials: int, secret: Secret) -> Played:
    """The test that was chosen, and what it came to.

    Args:
        scheme, claim: What is audited.
        public: Rows of the kind the scheme reads, to make inputs from.
        trials: Releases of each half; fewer where each needs a key of its own.
        secret: Decides keys and coins.
    """
    published = canaries.published(scheme, claim, public, secret.derive("what it publishes"))
    if published is not None:
        return _one_run(published, claim, public, secret)
    plays = _plays(scheme, claim, public, secret)
    if all(isinstance(play, RowPlay) and play.alone for play in plays[:1]):
        trials = min(trials, ONE_BY_ONE)
    stage("choose a test")
    rule = choose(plays, claim, trials=trials)
    stage("count its calls")
    calls = count(rule, trials)
    edges = [None if abs(edge) == np.inf else rule.sign * edge for edge in (rule.low, rule.high)]
    low, high = edges if rule.sign > 0 else edges[::-1]
    return Played(
        calls, rule.inputs, rule.entries[0].statistic.name, (low, high), tuple(play.name for play in plays)
    )  # fmt: skip


def _one_run(game: canaries.Canaries, claim: PrivacyClaim, public: Dataset, secret: Secret) -> Played:
    stage("choose a number of guesses")
    guesses = game.choose(secret.derive("choice"), delta=claim.delta, confidence=CONFIDENCE)
    stage("count its calls")
    calls = game.count(secret.derive("count"), guesses)
    return Played(calls, game.name, game.statistic, (None, None), (game.name,), one_run=True)


def _plays(scheme: Scheme, claim: PrivacyClaim, public: Dataset, secret: Secret) -> list[Play]:
    mechanism = scheme.mechanism()
    owner = Owner(scheme, secret, single=claim.delta > 0)
    pairs = input_pairs(mechanism, claim, public)

    def learners(play: RowPlay, seen: Tosses, spare: Tosses) -> list[Statistic]:
        return learn(play, seen, spare, mechanism)

    plays: list[Play] = [RowPlay(owner, pair, layout, learners) for pair, layout in _layouts(mechanism, owner, pairs)]
    if claim.unit == "pixel" and not owner.single:
        plays.append(PixelPlay(owner, usual(public)))
    return plays


def _layouts(mechanism: Mechanism | None, owner: Owner, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Layout]]:
    apart = mechanism is not None and not mechanism.rowwise
    if not (apart or owner.single):
        yield from ((pair, "in sets") for pair in pairs)
    if apart or owner.single or mechanism is None:
        yield from ((pair, "alone") for pair in (pairs if apart or owner.single else pairs[:ALONE]))
    # Whether noise is shared shows in any pair.
    yield pairs[0], "beside its twin"
    yield pairs[0], "before a second release"


def choose(plays: Sequence[Play], claim: PrivacyClaim, *, trials: int) -> Rule:
    """The best test on `trials` releases, half of them shared among all games, half among the best.

    Of a game's share a third goes into learning its statistics, half of that into learning a classifier of them. A test
    that refutes the claim is the best, if it still does so on more releases than it was found on; otherwise the one
    with the largest bound at a confidence at which of many tests the luckiest few guesses do not win.
    """
    tried: list[Tried] = []
    share = max(LEAST, trials // 2 // len(plays))
    for number, play in enumerate(plays):
        found = _statistics(play, share // 3, f"learn {number}")
        first, values = _values(play, found, max(LEAST, share - share // 3), f"try {number}")
        tried += [Tried([Entry(play, one)], first, row) for one, row in zip(found, values, strict=True)]
    for name in POOLED:
        parts = [one for one in tried if one.entries[0].statistic.name == name]
        if len(parts) > 1:
            entries = [part.entries[0] for part in parts]
            pooled = (np.concatenate([getattr(part, what) for part in parts]) for what in ("first", "values"))
            tried.append(Tried(entries, *pooled))
    final = []
    for number, one in enumerate(_finalists(tried, delta=claim.delta)):
        rule = one.best(delta=claim.delta, confidence=BOLD)[1]
        whole = _more(one, max(LEAST, trials // 2 // FINALISTS), f"try again {number}")
        final.append((_bound(rule, whole, delta=claim.delta), whole))
    seen, suspect = max(final, key=lambda one: one[0])
    if seen > claim.epsilon:
        return suspect.best(delta=claim.delta, confidence=BOLD)[1]
    return max((one.best(delta=claim.delta, confidence=CAUTIOUS) for _, one in final), key=lambda one: one[0])[1]


def _finalists(tried: Sequence[Tried], *, delta: float) -> list[Tried]:
    """The best by a bold bound, which a few guesses that are all correct can reach, and the best by a cautious one."""
    found: list[Tried] = []
    for confidence, most in ((BOLD, FINALISTS - 1), (CAUTIOUS, FINALISTS)):
        order = sorted(tried, key=lambda one: -one.best(delta=delta, confidence=confidence)[0])
        found += [one for one in order if not any(one is other for other in found)][: most - len(found)]
    return found


def _more(one: Tried, rows: int, purpose: str) -> Tried:
    """The same on some more releases."""
    coins, values = [one.first], [one.values]
    for number, entry in enumerate(one.entries):
        fresh = _values(entry.play, [entry.statistic], max(LEAST, rows // len(one.entries)), f"{purpose} {number}")
        coins.append(fresh[0])
        values.append(fresh[1][0])
    return Tried(one.entries, np.concatenate(coins), np.concatenate(values))


def _bound(rule: Rule, seen: Tried, *, delta: float) -> float:
    """What a rule that was found on a part of some releases shows on all of them."""
    calls = rule.calls(seen.first, seen.values)
    return float(lower_bound(calls.correct, calls.guesses, calls.trials, delta=delta, confidence=SUSPICION))


def count(rule: Rule, trials: int) -> Calls:
    """What the rule calls fresh releases, shared out among its entries."""
    parts = []
    for number, entry in enumerate(rule.entries):
        first, values = _values(
            entry.play, [entry.statistic], max(LEAST, trials // len(rule.entries)), f"count {number}"
        )
        parts.append(rule.calls(first, values[0]))
    return Calls(*(sum(getattr(part, name) for part in parts) for name in Calls.__dataclass_fields__))


def _statistics(play: Play, most: int, purpose: str) -> list[Statistic]:
    (probe,) = play.toss(1, f"{purpose} probe")
    learned = max(LEAST, min(most, LEARNED[0], LEARNED[1] // probe.release.samples[0].numel()))
    seen, spare = (
        joined(list(play.toss(part, f"{purpose} {which}")))
        for which, part in (("first", learned - learned // 2), ("then", learned // 2))
    )
    return play.learn(seen, spare)


def _values(
    play: Play, statistics: Sequence[Statistic], rows: int, purpose: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """(k,) coins and (s, k) values of `rows` fresh releases."""
    parts = [
        (tosses.first.cpu().numpy(), np.stack([numbers(one, tosses) for one in statistics]))
        for tosses in play.toss(rows, purpose)
    ]
    return np.concatenate([coins for coins, _ in parts]), np.concatenate([values for _, values in parts], axis=1)
