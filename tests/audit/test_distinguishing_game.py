"""The choice and the count of a test, on plays whose outcome is known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from bench.audit.distinguishing_game import LEAST, choose, count
from bench.audit.game_plays import Play, Statistic, Tosses
from bench.audit.threshold_rules import Entry, Rule, Tried, _cut, _cuts, independent_share, numbers
from bench.evidence import Calls
from bench.statistics.epsilon_bounds import lower_bound
from bench.types import PrivacyClaim, Release

CLAIM = PrivacyClaim("record", 0.5, 0.0, "none", "a test")


@dataclass(frozen=True, eq=False)
class Shown(Play):
    """Releases the coin, inverted for a share of `errors`; one statistic reads it and one reads nothing."""

    name: str
    errors: float = 0.0
    purposes: list[str] = field(default_factory=list)

    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        self.purposes.append(purpose)
        first = torch.arange(count) % 2 == 0
        wrong = torch.arange(count) < self.errors * count
        yield Tosses(first, Release((first ^ wrong).float()[:, None], None, None))

    def learn(self, seen: Tosses, spare: Tosses) -> list[Statistic]:
        return [
            Statistic("nothing", lambda tosses: torch.zeros(len(tosses.first))),
            Statistic("coin", lambda tosses: tosses.release.samples[:, 0].double()),
        ]


def test_the_cut_is_the_best_of_all_pairs_of_thresholds() -> None:
    random = np.random.default_rng(0)
    first, values = random.random(30) < 0.5, random.integers(0, 6, 30).astype(np.float64)
    bound, low, high = _cut(first, values, delta=0.0, confidence=0.9)
    bounds = {}
    for pair in itertools.combinations_with_replacement(_cuts(np.unique(values)), 2):
        above, below = values > pair[1], values < pair[0]
        correct = int((above & first).sum() + (below & ~first).sum())
        guesses = int(above.sum() + below.sum())
        bounds[pair] = float(lower_bound(correct, guesses, 30, delta=0.0, confidence=0.9))
    assert bound == max(bounds.values()) == bounds[low, high]


def test_cuts_lie_halfway_and_are_thinned_but_for_the_ends_and_wide_gaps() -> None:
    assert _cuts(np.array([0.0, 1.0, 4.0])).tolist() == [-np.inf, 0.5, 2.5, np.inf]
    values = np.arange(1000.0)
    values[500:] += 100  # a gap at 549.5
    cuts = _cuts(values)
    assert len(cuts) < 60
    assert {0.5, 9.5, 549.5, 1098.5} <= set(cuts.tolist())


def test_decisions_are_counted_by_coin_and_threshold() -> None:
    first = np.array([True, True, True, False, False, False])
    values = np.array([3.0, 1.0, -3.0, 3.0, -3.0, 0.0])
    rule = Rule([], 1, -2.0, 2.0)
    assert rule.calls(first, values) == Calls(6, 3, hits=1, false_alarms=1, misses=1, rejections=1)
    assert Rule([], -1, -2.0, 2.0).calls(first, -values) == rule.calls(first, values)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_statistic_that_separates_all_coins_gives_the_largest_bound_in_either_direction(sign: int) -> None:
    first = np.arange(40) % 2 == 0
    bound, rule = Tried([], first, sign * first.astype(np.float64), np.arange(40)).best(delta=0.0, confidence=0.9)
    assert bound == float(lower_bound(40, 40, 40, delta=0.0, confidence=0.9))
    assert rule.sign == sign
    calls = rule.calls(first, sign * first.astype(np.float64))
    assert (calls.correct, calls.guesses) == (40, 40)


def test_rows_under_one_key_count_as_one_if_they_share_its_noise_and_in_full_if_they_do_not() -> None:
    random = np.random.default_rng(0)
    first, keys = np.arange(400) % 2 == 0, np.repeat(np.arange(4), 100)
    shared, own = random.standard_normal(4)[keys] + first, random.standard_normal(400)
    assert independent_share(first, shared, keys) == pytest.approx(8 / 400)  # of every key and coin one
    assert independent_share(first, own, keys) > 0.5
    assert independent_share(first, shared, np.arange(400)) == 1
    assert independent_share(first, own, np.zeros(400, dtype=np.int64)) == 2 / 400
    assert independent_share(first, first.astype(np.float64), keys) == 1  # equal under all keys


def test_a_bound_of_rows_that_share_noise_is_that_of_their_keys() -> None:
    first, keys = np.arange(400) % 2 == 0, np.repeat(np.arange(4), 100)
    values = np.array([1.0, 3.0, 5.0, 7.0])[keys] + 10 * first
    tried = Tried([], first, values, keys)
    bound, rule = tried.best(delta=0.0, confidence=0.9)
    assert bound == pytest.approx(float(lower_bound(8, 8, 8, delta=0.0, confidence=0.9)))
    assert tried.bound(rule, delta=0.0, confidence=0.9) == pytest.approx(bound)


@dataclass(frozen=True, eq=False)
class Clustered(Shown):
    """Two values under a key, one for each coin; which is higher is up to the key."""

    size = 64

    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        for number in range(-(-count // self.size)):
            first = torch.arange(self.size) % 2 == 0
            flipped = bool(np.random.default_rng([number, len(purpose), *map(ord, purpose)]).integers(2))
            rows = (first ^ flipped).float()[:, None]
            yield Tosses(first, Release(rows, None, None), key=torch.full((self.size,), number))


def test_a_game_whose_keys_hold_many_rows_does_not_crowd_out_a_weak_one() -> None:
    weak = Shown("weak", errors=0.2)
    rule = choose([Clustered(str(number)) for number in range(6)] + [weak], CLAIM, trials=400)
    assert {entry.play for entry in rule.entries} == {weak}


def test_values_that_cannot_be_computed_say_nothing() -> None:
    statistic = Statistic("odd", lambda tosses: torch.tensor([torch.nan, torch.inf, -torch.inf, 2.0]))
    values = numbers(statistic, Tosses(torch.ones(4, dtype=torch.bool), Release(torch.zeros(4, 1), None, None)))
    assert values.tolist() == [0.0, 1e300, -1e300, 2.0]


def test_the_play_that_shows_its_coins_is_chosen_and_counted_on_fresh_releases() -> None:
    blind, clear = Shown("blind", errors=0.5), Shown("clear")
    rule = choose([blind, clear], CLAIM, trials=400)
    assert {entry.play for entry in rule.entries} == {clear}
    assert rule.entries[0].statistic.name == "coin"
    chosen_on = set(clear.purposes)
    calls = count(rule, 100)
    assert calls == Calls(100, 50, 50, 0, 0, 50)
    counted_on = set(clear.purposes) - chosen_on
    assert counted_on == {"count 0"}
    assert len(clear.purposes) == len(set(clear.purposes))  # no purpose twice, so no key twice


def test_the_count_is_shared_among_the_entries_of_a_rule() -> None:
    plays = [Shown(str(number)) for number in range(3)]
    entries = [Entry(play, play.learn(*[next(play.toss(1, "")) for _ in range(2)])[1]) for play in plays]
    assert count(Rule(entries, 1, 0.5, 0.5), 90) == Calls(90, 45, 45, 0, 0, 45)
    assert count(Rule(entries, 1, 0.5, 0.5), 3).trials == 3 * LEAST
