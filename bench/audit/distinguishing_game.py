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

from bench.audit import canaries
from bench.audit.canary_game import CanaryGame, Guess
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
    input_pairs,
    joined,
    pairs_of_row,
    usual,
)
from bench.audit.leak_statistics import learn
from bench.audit.threshold_rules import Entry, Keys, Rule, Tried, numbers
from bench.audit.trigger_search import search
from bench.contract.mechanism import Mechanism
from bench.evidence import Calls, CoinUse
from bench.progress import stage
from bench.randomness import Secret
from bench.statistics.epsilon_bounds import Family, family_of
from bench.statistics.epsilon_reach import ideal_bound, ideal_guesses
from bench.types import Dataset, PrivacyClaim, Scheme

CONFIDENCE = 0.95
BOLD, SUSPICION, CAUTIOUS = 0.995, 0.99, 0.9999  # confidences of the bounds that choose a test
LEARNED = 512, 4 * NUMBERS  # most releases and numbers to learn a statistic from
MOST_KNOWN = 8192  # releases whose noise is compared with that of others
LEAST = 8  # rows per play
LEAST_LEARNED = 24  # releases to learn from: half of them show both inputs but for one case in hundreds
SURE_EVENTS = 3  # rare events of one direction that decide the choice
FINALISTS, RARE = 4, 2  # games that are tried again by their bounds, and candidates by rare events
STATISTICS = 6  # of a game, tried again
FIRST_KEYS, FINAL_KEYS = 2, 4  # keys of a game at least, when it is tried first and again
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
    coins replace rows or include them; `runs` are the releases whose guesses count by themselves, 1 if all count
    together; `black_box` are the calls of a weaker game on the publication alone; `reach` is
    the bound that the best test is expected to show of a mechanism that has just the claimed epsilon; `searched` says
    which inputs were tried beside those of the games.
    """

    calls: Calls
    inputs: str
    statistic: str
    thresholds: tuple[float | None, float | None]
    games: tuple[str, ...]
    one_run: bool = False
    coins: CoinUse = "replace"
    runs: int = 1
    black_box: Calls | None = None
    reach: float | None = None
    searched: str = "nothing"


def audit(
    scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, trials: int, secret: Secret, size: int = SET
) -> Played:
    """The chosen test and its counted decisions.

    `trials` releases are made for each half; fewer if each needs a key of its own. Inputs are made of `public`
    rows; a release holds `size` of them if they do not interact.
    """
    published = canaries.published(scheme, claim, public, most=2 * trials, secret=secret.derive("what it publishes"))
    if published.outside is not None:
        return _one_run(published, claim, secret)
    # The bounds of Gaussian mechanisms hold for coins that share a release, others with a delta do not.
    owner = Owner(scheme, secret, single=claim.delta > 0 and claim.family == "any", size=size)
    plays = _plays(owner, claim, public, trials)
    searched, more = _searched(owner, claim, public, trials)
    plays += more
    if all(play.single for play in plays[:1]):
        trials = min(trials, ONE_BY_ONE)
    stage("choose a test")
    rule = choose(plays, claim, trials=trials)
    stage("count its calls")
    if claim.family == "Gaussian":
        guesses = _guesses(claim, trials)
        calls = count_clearest(rule, trials, guesses)
        return Played(
            calls, rule.inputs, rule.entries[0].statistic.name, (None, None), tuple(play.name for play in plays),
            one_run=True, reach=_reach(claim, calls.trials, claim.family), searched=searched,
        )  # fmt: skip
    calls = count(rule, trials)
    edges = [None if abs(edge) == np.inf else rule.sign * edge for edge in (rule.low, rule.high)]
    low, high = edges if rule.sign > 0 else edges[::-1]
    return Played(
        calls, rule.inputs, rule.entries[0].statistic.name, (low, high), tuple(play.name for play in plays),
        searched=searched,
    )  # fmt: skip


def _one_run(games: canaries.Games, claim: PrivacyClaim, secret: Secret) -> Played:
    """Calls of the best white-box game and of the black-box one.

    The strongest white-box game has a full choice; another is counted if fewer tosses show more of it than is claimed.
    """
    outside = games.outside
    strong = games.inside or (() if outside is None else (outside,))
    chosen: tuple[float, CanaryGame, Guess, int, Secret] | None = None
    for number, game in enumerate(strong):
        stage(f"choose guesses: {game.name}")
        coins, here = game.coins(CONFIDENCE), secret if game is strong[-1] else secret.derive(game.name)
        bound, guess = game.choose(here.derive("choice"), coins, confidence=CONFIDENCE, quick=number > 0)
        if chosen is None or bound > max(claim.epsilon, chosen[0]):
            chosen = bound, game, guess, coins, here
    assert chosen is not None, "a publication has a game"
    _, first, guess, coins, here = chosen
    stage(f"count its calls: {first.name}")
    calls = first.count(here.derive("count"), guess, coins)
    beside = None
    if games.inside and outside is not None:
        stage(f"count its calls: {outside.name}")
        aside, number = secret.derive("black-box"), outside.coins(CONFIDENCE)
        _, weak = outside.choose(aside.derive("choice"), number, confidence=CONFIDENCE)
        beside = outside.count(aside.derive("count"), weak, number)
    return Played(
        calls, first.name, guess.name, (None, None),
        tuple(game.name for game in (*games.inside, *(() if outside is None else (outside,)))), one_run=True,
        coins="include" if first.included else "replace", runs=coins // first.each if guess.apart else 1,
        black_box=beside, reach=_reach(claim, calls.trials, family_of(claim), each=first.each),
    )  # fmt: skip


def _reach(claim: PrivacyClaim, coins: int, family: Family, *, each: int | None = None) -> float | None:
    """The bound expected of the best test; None for an infinite claim."""
    if math.isinf(claim.epsilon):
        return None
    return ideal_bound(claim.epsilon, coins, delta=claim.delta, confidence=CONFIDENCE, family=family, each=each)


def _searched(owner: Owner, claim: PrivacyClaim, public: Dataset, trials: int) -> tuple[str, list[Play]]:
    """Budget of a search for triggers, and games on its findings."""
    mechanism = owner.scheme.mechanism()
    rows = not owner.single and (mechanism is None or mechanism.rowwise)
    found = search(owner, usual(public), public, trials=trials, rows=rows, sizes=rows and owner.size == SET)

    def learners(play: RowPlay, seen: Tosses, spare: Tosses) -> list[Statistic]:
        return learn(play, seen, spare, mechanism)

    plays: list[Play] = []
    for number, row in enumerate(found.rows, 1):
        for pair in pairs_of_row(mechanism, claim, public, row[None], f"searched input {number}"):
            plays += [RowPlay(owner, pair, layout, learners) for layout in ("in sets", "in crowds")]
    pair = input_pairs(mechanism, claim, public)[0]
    plays += [RowPlay(owner, pair, "in sets", learners, rows=size) for size in found.sizes]
    return f"{found.budget}; {len(found.rows)} inputs and {len(found.sizes)} numbers of rows stood out", plays


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
    tried: list[Tried] = []
    share = max(LEAST, trials // 2 // len(plays))
    for number, play in enumerate(plays):
        statistics = _statistics(play, share // 3, f"learn {number}")
        if statistics:
            rows = max(LEAST, share - share // 3, FIRST_KEYS * play.size)
            first, keys, values = _values(play, statistics, rows, f"try {number}")
            tried += [
                Tried([Entry(play, item)], first, row, keys) for item, row in zip(statistics, values, strict=True)
            ]
    for name in POOLED:
        parts = [
            item for item in tried
            if item.entries[0].statistic.name == name and item.entries[0].play.size <= max(SET, plays[0].size)
        ]  # fmt: skip
        if len(parts) > 1:
            pooled = Tried([part.entries[0] for part in parts], *(np.empty(0, kind) for kind in (bool, float, int)))
            for part in parts:
                pooled = pooled.with_more(part.first, part.values, part.keys)
            tried.append(pooled)
    final: list[tuple[float, Tried]] = []
    for number, game in enumerate(_finalists(tried, delta=claim.delta, trials=trials)):
        wholes = _more(game, max(LEAST, trials // 2 // FINALISTS), f"try again {number}")
        if (events := next(filter(None, map(_events, wholes)), None)) is not None:
            return events
        for item, whole in zip(game, wholes, strict=True):
            rule = item.best(delta=claim.delta, confidence=BOLD)[1]
            final.append((whole.bound(rule, delta=claim.delta, confidence=SUSPICION), whole))
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


def _expected(tried: Tried, trials: int) -> float:
    """Rare events expected when the game is counted."""
    counted = min(trials, ONE_BY_ONE) if tried.entries[0].play.single else trials
    return float(counted * np.count_nonzero(tried.values) / len(tried.values))


def _finalists(tried: Sequence[Tried], *, delta: float, trials: int) -> list[list[Tried]]:
    """The best games, each with its best statistics."""
    rare = [item for item in tried if _events(item, least=1) is not None]
    rare = sorted(rare, key=lambda item: -_expected(item, trials))[:RARE]
    bold, cautious = (
        {id(item): item.best(delta=delta, confidence=confidence)[0] for item in tried}
        for confidence in (BOLD, CAUTIOUS)
    )
    chosen: dict[tuple[Play, ...], list[Tried]] = {}
    for bounds, most in ((bold, FINALISTS - 1), (cautious, FINALISTS)):
        order = sorted(tried, key=lambda item: -bounds[id(item)])
        for item in order:
            game = tuple(entry.play for entry in item.entries)
            if game not in chosen and len(chosen) < most:
                same = [other for other in order if tuple(entry.play for entry in other.entries) == game]
                chosen[game] = same[:STATISTICS]
    return [[item] for item in rare] + list(chosen.values())


def _more(game: Sequence[Tried], rows: int, purpose: str) -> list[Tried]:
    """Statistics of one game on the same additional releases."""
    entries = [item.entries for item in game]
    for number, same in enumerate(zip(*entries, strict=True)):
        play = same[0].play
        least = FINAL_KEYS * play.size if len(entries[0]) == 1 else LEAST
        first, keys, values = _values(
            play, [entry.statistic for entry in same], max(least, rows // len(entries[0])), f"{purpose} {number}"
        )
        game = [item.with_more(first, row, keys) for item, row in zip(game, values, strict=True)]
    return list(game)


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
        first, _, values = _values(
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


def _values(play: Play, statistics: Sequence[Statistic], rows: int, purpose: str) -> tuple[Coins, Keys, Values]:
    """Coins (k,), keys (k,) and values (s, k) of fresh releases."""
    parts = [
        (
            tosses.first.cpu().numpy(),
            tosses.keys.numpy(),
            np.stack([numbers(statistic, tosses) for statistic in statistics]),
        )
        for tosses in play.toss(rows, purpose)
    ]
    coins, keys, values = zip(*parts, strict=True)
    return np.concatenate(coins), np.concatenate(keys), np.concatenate(values, axis=1)
