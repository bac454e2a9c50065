"""Distinguishing games that try to refute a differential-privacy claim.

Sources: Jagielski, Ullman and Oprea 2020, Auditing differentially private machine learning; Nasr et al. 2021, Adversary
instantiation; Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run. Two inputs are known to
all; a coin decides which of them is released; the test guesses the coin. On one half of the releases the game, the
statistic, its direction and its thresholds are chosen; on the other half that one test is counted
(`metrics.empirical_epsilon` turns the counts into a bound). The second half has no part in the choice: its releases are
made afterwards, under keys of their own. So the bound is that of one test, for any number of games and statistics
tried.

The inputs are the mechanism's own witnesses and rows made from the public set; no private row enters. Both have the
same labels, which are outside every claim. Releases come from the key alone; the mechanism only reads the noise off a
release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bench.audit import canaries
from bench.audit.game_plays import (
    NUMBERS,
    ONE_BY_ONE,
    SET,
    SIZES,
    Coins,
    Layout,
    Owner,
    Pair,
    PixelPlay,
    Play,
    RowPlay,
    Statistic,
    Tosses,
    Values,
    clearest,
    decisions,
    input_pairs,
    joined,
    usual,
)
from bench.audit.leak_statistics import learn
from bench.contract.mechanism import Mechanism
from bench.evidence import Calls, CoinUse
from bench.progress import stage
from bench.randomness import Secret
from bench.statistics.epsilon_bounds import ideal_bound, ideal_guesses, lower_bound
from bench.types import Dataset, PrivacyClaim, Scheme

HUGE = 1e300
ENDS, BETWEEN, GAPS = 10, 24, 12  # candidate thresholds: at the ends, in between, in wide gaps


@dataclass(frozen=True, eq=False)
class Entry:
    """A play and the statistic read there."""

    play: Play
    statistic: Statistic


@dataclass(frozen=True, eq=False)
class Rule:
    """A test of coins by two thresholds on sign x statistic.

    A coin is called first above `high`, second below `low`; between, the test abstains. Its entries are played in turn.
    """

    entries: Sequence[Entry]
    sign: int
    low: float
    high: float

    @property
    def inputs(self) -> str:
        """Name of the game."""
        return self.entries[0].play.name if len(self.entries) == 1 else f"{len(self.entries)} games by turns"

    def calls(self, first: Coins, values: Values) -> Calls:
        """Decisions on coins by their statistic."""
        return decisions(first, self.sign * values > self.high, self.sign * values < self.low)


@dataclass(frozen=True, eq=False)
class Tried:
    """A statistic on releases of the choice: (k,) coins and values."""

    entries: Sequence[Entry]
    first: Coins
    values: Values

    def best(self, *, delta: float, confidence: float) -> tuple[float, Rule]:
        """The largest lower bound of two thresholds, and its rule."""
        cuts = [(*_cut(self.first, sign * self.values, delta=delta, confidence=confidence), sign) for sign in (1, -1)]
        bound, low, high, sign = max(cuts, key=lambda cut: cut[0])
        return bound, Rule(self.entries, sign, low, high)


def numbers(statistic: Statistic, tosses: Tosses) -> Values:
    """The statistic's values; NaN becomes 0."""
    values: Values = statistic.of(tosses).to(torch.float64).nan_to_num(nan=0.0, posinf=HUGE, neginf=-HUGE).cpu().numpy()
    return values


def _cut(first: Coins, values: Values, *, delta: float, confidence: float) -> tuple[float, float, float]:
    """(bound, low, high): the thresholds with the largest lower bound."""
    cuts = _cuts(np.unique(values))
    heads, tails = (np.sort(values[side]) for side in (first, ~first))
    # Numbers of coins of either kind above and below every cut.
    above = [len(side) - np.searchsorted(side, cuts, side="right") for side in (heads, tails)]
    below = [np.searchsorted(side, cuts, side="left") for side in (heads, tails)]
    correct = below[1][:, None] + above[0][None, :]
    guesses = correct + below[0][:, None] + above[1][None, :]
    bounds = lower_bound(correct, guesses, len(first), delta=delta, confidence=confidence)
    bounds[cuts[:, None] > cuts[None, :]] = -np.inf
    low, high = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return float(bounds[low, high]), float(cuts[low]), float(cuts[high])


def _cuts(values: Values) -> Values:
    """Candidate thresholds: halfway between values (unique, ascending), thinned out, and both ends."""
    halves = values[:-1] / 2 + values[1:] / 2
    if len(halves) > 2 * ENDS + GAPS + BETWEEN:
        places = np.arange(len(halves))
        inner = np.linspace(ENDS, len(halves) - ENDS - 1, BETWEEN).round().astype(np.int64)
        wide = np.argsort(values[1:] / 2 - values[:-1] / 2)[-GAPS:]  # equal values are far from near ones
        halves = halves[np.unique(np.concatenate((places[:ENDS], inner, wide, places[-ENDS:])))]
    return np.concatenate(([-np.inf], halves, [np.inf]))


CONFIDENCE = 0.95
BOLD, SUSPICION, CAUTIOUS = 0.995, 0.99, 0.9999  # confidences of the bounds that choose a test
LEARNED = 512, 4 * NUMBERS  # most releases and numbers to learn a statistic from
MOST_KNOWN = 8192  # releases whose noise is compared with that of others
LEAST = 8  # rows per play
LEAST_LEARNED = 24  # releases to learn from: half of them show both inputs but for one case in hundreds
SURE_EVENTS = 3  # rare events of one direction that decide the choice
FINALISTS, RARE = 4, 2  # candidates that are tried again: by their bounds, and by rare events
POOLED = (
    "nearest number",
    "nearest code",
    "distance of numbers",
    "distance of codes",
    "exact values",
)  # statistics whose values compare between plays
ALONE = 3  # pairs also played alone if rows of a release may interact


@dataclass(frozen=True)
class Played:
    """The result of an audit: counted decisions, and the games behind them.

    Below the first threshold a coin is called second, above the other first; None for no such call. `coins` says if
    coins replace rows or include them; `black_box` are the calls of a weaker game on the publication alone; `reach` is
    the bound that the best test is expected to show of a mechanism that has just the claimed epsilon.
    """

    calls: Calls
    inputs: str
    statistic: str
    thresholds: tuple[float | None, float | None]
    games: tuple[str, ...]
    one_run: bool = False
    coins: CoinUse = "replace"
    black_box: Calls | None = None
    reach: float | None = None


def audit(
    scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, trials: int, secret: Secret, size: int = SET
) -> Played:
    """The chosen test and its counted decisions.

    `trials` releases are made for each half; fewer if each needs a key of its own. Inputs are made of `public`
    rows; a release holds `size` of them if they do not interact.
    """
    published = canaries.published(scheme, claim, public, most=2 * trials, secret=secret.derive("what it publishes"))
    if published:
        return _one_run(published, claim, secret)
    # The bounds of Gaussian mechanisms hold for coins that share a release, others with a delta do not.
    owner = Owner(scheme, secret, single=claim.delta > 0 and claim.family == "any", size=size)
    plays = _plays(owner, claim, public, trials)
    if all(isinstance(play, RowPlay) and play.alone for play in plays[:1]):
        trials = min(trials, ONE_BY_ONE)
    stage("choose a test")
    rule = choose(plays, claim, trials=trials)
    stage("count its calls")
    if claim.family == "Gaussian":
        guesses = _guesses(claim, trials)
        calls = count_clearest(rule, trials, guesses)
        return Played(
            calls, rule.inputs, rule.entries[0].statistic.name, (None, None), tuple(play.name for play in plays),
            one_run=True, reach=_reach(claim, calls.trials),
        )  # fmt: skip
    calls = count(rule, trials)
    edges = [None if abs(edge) == np.inf else rule.sign * edge for edge in (rule.low, rule.high)]
    low, high = edges if rule.sign > 0 else edges[::-1]
    return Played(
        calls, rule.inputs, rule.entries[0].statistic.name, (low, high), tuple(play.name for play in plays)
    )  # fmt: skip


def _one_run(games: Sequence[canaries.Canaries], claim: PrivacyClaim, secret: Secret) -> Played:
    """The first game's calls, a second's being those of the black-box game."""
    calls, names = [], []
    for number, game in enumerate(games):
        here = secret if number == 0 else secret.derive("black-box")
        stage(f"choose guesses: {game.name}")
        coins = game.coins(CONFIDENCE)
        guess = game.choose(here.derive("choice"), coins, confidence=CONFIDENCE)
        stage(f"count its calls: {game.name}")
        calls.append(game.count(here.derive("count"), guess, coins))
        names.append(guess.name)
    first = games[0]
    return Played(
        calls[0], first.name, names[0], (None, None), tuple(game.name for game in games), one_run=True,
        coins="include" if first.included else "replace", black_box=calls[1] if len(calls) > 1 else None,
        reach=_reach(claim, calls[0].trials),
    )  # fmt: skip


def _reach(claim: PrivacyClaim, coins: int) -> float | None:
    """The bound expected of the best test; None for an infinite claim."""
    if math.isinf(claim.epsilon):
        return None
    return ideal_bound(claim.epsilon, coins, delta=claim.delta, confidence=CONFIDENCE, family=claim.family)


def _plays(owner: Owner, claim: PrivacyClaim, public: Dataset, trials: int) -> list[Play]:
    mechanism = owner.scheme.mechanism()
    pairs = input_pairs(mechanism, claim, public)

    def learners(play: RowPlay, seen: Tosses, spare: Tosses) -> list[Statistic]:
        return learn(play, seen, spare, mechanism)

    plays: list[Play] = [RowPlay(owner, pair, layout, learners) for pair, layout in _layouts(mechanism, owner, pairs)]
    if not owner.single and (mechanism is None or mechanism.rowwise):
        # Noise of few seeds repeats between rows of a release, or between keys.
        known = min(trials, MOST_KNOWN)
        plays.append(RowPlay(owner, pairs[0], "in large crowds", learners, known=known))
        plays.append(RowPlay(owner, pairs[0], "in sets", learners, known=known))
    if claim.unit == "pixel" and not owner.single:
        plays.append(PixelPlay(owner, usual(public)))
    return plays


def _layouts(mechanism: Mechanism | None, owner: Owner, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Layout]]:
    interacting = mechanism is not None and not mechanism.rowwise
    if not (interacting or owner.single):
        yield from ((pair, "in sets") for pair in pairs)
    if interacting or owner.single or mechanism is None:
        yield from ((pair, "alone") for pair in (pairs if interacting or owner.single else pairs[:ALONE]))
    # Shared noise shows in any pair, and so does a fault of releases of so many rows.
    yield pairs[0], "beside its twin"
    yield pairs[0], "before a second release"
    if not interacting and not owner.single and owner.size == SET:
        for layout in SIZES:
            yield pairs[0], layout


def choose(plays: Sequence[Play], claim: PrivacyClaim, *, trials: int) -> Rule:
    """The best test on `trials` releases, half for the best games.

    A third of a game's share trains its statistics. The best test refutes the claim, and still does on more
    releases than it was found on; otherwise it has the largest bound at a confidence that a few lucky guesses
    cannot reach.
    """
    candidates: list[Tried] = []
    share = max(LEAST, trials // 2 // len(plays))
    for number, play in enumerate(plays):
        statistics = _statistics(play, share // 3, f"learn {number}")
        if not statistics:
            continue
        first, values = _values(play, statistics, max(LEAST, share - share // 3), f"try {number}")
        candidates += [Tried([Entry(play, item)], first, row) for item, row in zip(statistics, values, strict=True)]
    for name in POOLED:
        parts = [item for item in candidates if item.entries[0].statistic.name == name]
        if len(parts) > 1:
            entries = [part.entries[0] for part in parts]
            pooled = (np.concatenate([getattr(part, column) for part in parts]) for column in ("first", "values"))
            candidates.append(Tried(entries, *pooled))
    final = []
    for number, item in enumerate(_finalists(candidates, delta=claim.delta)):
        rule = item.best(delta=claim.delta, confidence=BOLD)[1]
        whole = _more(item, max(LEAST, trials // 2 // FINALISTS), f"try again {number}")
        if (events := _events(whole)) is not None:
            return events
        final.append((_bound(rule, whole, delta=claim.delta), whole))
    bound, best = max(final, key=lambda item: item[0])
    if bound > claim.epsilon:
        return best.best(delta=claim.delta, confidence=BOLD)[1]
    return max((item.best(delta=claim.delta, confidence=CAUTIOUS) for _, item in final), key=lambda item: item[0])[1]


def _events(tried: Tried, least: int = SURE_EVENTS) -> Rule | None:
    """Rule that calls rare events, if enough, all pointing to the coin."""
    if not tried.entries[0].statistic.rare:
        return None
    rule = Rule(tried.entries, 1, 0.0, 0.0)
    calls = rule.calls(tried.first, tried.values)
    return rule if calls.guesses >= least and calls.correct == calls.guesses else None


def _finalists(candidates: Sequence[Tried], *, delta: float) -> list[Tried]:
    """Candidates with rare events, and the best by bold and cautious bounds."""
    rare = [item for item in candidates if _events(item, least=1) is not None]
    rare = sorted(rare, key=lambda item: -np.count_nonzero(item.values) / len(item.values))[:RARE]
    chosen: list[Tried] = []
    for confidence, most in ((BOLD, FINALISTS - 1), (CAUTIOUS, FINALISTS)):
        order = sorted(candidates, key=lambda candidate: -candidate.best(delta=delta, confidence=confidence)[0])
        chosen += [candidate for candidate in order if not any(candidate is other for other in (*rare, *chosen))][
            : max(0, most - len(chosen))
        ]
    return rare + chosen


def _more(candidate: Tried, rows: int, purpose: str) -> Tried:
    """The candidate on additional releases."""
    coins, values = [candidate.first], [candidate.values]
    for number, entry in enumerate(candidate.entries):
        fresh = _values(
            entry.play, [entry.statistic], max(LEAST, rows // len(candidate.entries)), f"{purpose} {number}"
        )
        coins.append(fresh[0])
        values.append(fresh[1][0])
    return Tried(candidate.entries, np.concatenate(coins), np.concatenate(values))


def _bound(rule: Rule, releases: Tried, *, delta: float) -> float:
    """Lower bound of a rule on releases that include its own."""
    calls = rule.calls(releases.first, releases.values)
    return float(lower_bound(calls.correct, calls.guesses, calls.trials, delta=delta, confidence=SUSPICION))


def _guesses(claim: PrivacyClaim, trials: int) -> int:
    """Clearest coins to guess, fixed before tosses; infinite claims count as 10."""
    epsilon = min(claim.epsilon, 10.0)
    return ideal_guesses(epsilon, trials, delta=claim.delta, confidence=CONFIDENCE, family=claim.family)[1]


def count_clearest(rule: Rule, trials: int, guesses: int) -> Calls:
    """Decisions on the `guesses` most extreme fresh coins, half on either side."""
    first, values = (np.concatenate(parts) for parts in zip(*_fresh(rule, trials), strict=True))
    side = max(1, guesses // 2)
    return clearest(first, rule.sign * values, side, side)


def count(rule: Rule, trials: int) -> Calls:
    """Decisions on fresh releases, shared among the rule's entries."""
    parts = [rule.calls(first, values) for first, values in _fresh(rule, trials)]
    return Calls(*(sum(getattr(part, name) for part in parts) for name in Calls.__dataclass_fields__))


def _fresh(rule: Rule, trials: int) -> Iterator[tuple[Coins, Values]]:
    """Coins and values of fresh releases, by the rule's entries."""
    for number, entry in enumerate(rule.entries):
        first, values = _values(
            entry.play, [entry.statistic], max(LEAST, trials // len(rule.entries)), f"count {number}"
        )
        yield first, values[0]


def _statistics(play: Play, most: int, purpose: str) -> list[Statistic]:
    if play.known:
        known = joined(list(play.toss(play.known, f"{purpose} known")))
        return play.learn(known, known)
    (probe,) = play.toss(1, f"{purpose} probe")
    count = max(LEAST_LEARNED, min(most, LEARNED[0], LEARNED[1] // probe.release.samples[0].numel()))
    training, spare = (
        joined(list(play.toss(part, f"{purpose} {half}")))
        for half, part in (("first", count - count // 2), ("then", count // 2))
    )
    return play.learn(training, spare)


def _values(
    play: Play, statistics: Sequence[Statistic], rows: int, purpose: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """(k,) coins and (s, k) values of `rows` fresh releases."""
    parts = [
        (tosses.first.cpu().numpy(), np.stack([numbers(statistic, tosses) for statistic in statistics]))
        for tosses in play.toss(rows, purpose)
    ]
    return np.concatenate([coins for coins, _ in parts]), np.concatenate([values for _, values in parts], axis=1)
