"""One-run games with canaries: coins, the choice of guesses, and their count.

Sources: Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run (algorithm 1); Mahloujifar, Melis
and Chaudhuri 2024, Auditing f-differential privacy in one run. A coin decides if a canary is among the rows, or, if
neighbours replace each other, which of two rows it is. One training learns from all canaries: privacy of each row is
privacy of each coin. The canaries with the highest statistic are guessed to be the first rows, those with the lowest
the others; statistic and number of guesses are fixed on separate trainings.

Coins of several trainings count together, for the set of all publications is as private in each coin as one is; or the
same number of guesses of each training, for trainings are independent. The number of rows is public by the claims
audited here, and varies with the coins; guesses rest on ranks, and read nothing from that number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import torch

from bench.audit.game_plays import clearest
from bench.audit.private_step_statistics import Reading, rates
from bench.evidence import Calls
from bench.randomness import Secret
from bench.statistics.confidence_intervals import lower_proportion
from bench.statistics.epsilon_bounds import family_of, one_run_bound
from bench.statistics.epsilon_reach import coins_needed
from bench.types import Dataset, PrivacyClaim, Scheme

Statistic: TypeAlias = "tuple[str, Callable[[Reading], torch.Tensor]]"  # its name, and (k,) numbers of a reading
EACH = 64  # canaries per training
CHOICE, LEAST_CHOICE = 1 / 4, 256  # coins of the choice: a share of those counted, and the fewest
QUICK_DOUBT = 0.01  # error probability of the share of right guesses that a quick choice expects
SHARES = tuple(0.5**power for power in range(1, 9))  # candidate guesses of either kind, as shares of all coins
MOST_APART = 32  # guesses of a training that counts by itself


@dataclass(frozen=True, eq=False)
class Guess:
    """A statistic, and the shares of coins guessed first and second.

    Shares are of all coins, or of every training's, if these count `apart`.
    """

    name: str
    of: Callable[[Reading], torch.Tensor]
    top: float
    bottom: float
    apart: bool = False

    def sides(self, coins: int) -> tuple[int, int]:
        """Numbers of guesses of either kind, one at least."""
        top, bottom = (min(round(share * coins), coins // 2) for share in (self.top, self.bottom))
        return (top, bottom) if top or bottom else (1, 0)


@dataclass(frozen=True, eq=False)
class Run:
    """Coins (k,), True for the first row, and a training's reading."""

    coins: torch.Tensor
    reading: Reading


@dataclass(frozen=True, eq=False)
class CanaryGame(ABC):
    """The game on one kind of publication.

    Args:
        scheme, claim: The scheme and its claim.
        public: Rows that canaries are made of.
        most: Coins to count at most.
    """

    scheme: Scheme
    claim: PrivacyClaim
    public: Dataset
    most: int

    name: ClassVar[str] = "canaries"

    @property
    def included(self) -> bool:
        """True if coins decide which canaries are among the rows."""
        return self.claim.neighbours == "added"

    @property
    def each(self) -> int:
        """Coins per training."""
        return EACH

    def coins(self, confidence: float) -> int:
        """Coins to count: as many as a claim needs, in whole trainings."""
        claim = self.claim
        needed = coins_needed(
            claim.epsilon, delta=claim.delta, confidence=confidence, family=family_of(claim), each=self.each
        )
        return self.each * max(1, min(-(-needed // self.each), self.most // self.each))

    def choose(self, secret: Secret, coins: int, *, confidence: float, quick: bool = False) -> tuple[float, Guess]:
        """The largest bound expected of `coins`; its statistic and number of guesses.

        `CHOICE` of them are tossed for the choice, or `LEAST_CHOICE` if it is to be `quick`. Few coins often look
        better than they are, so that a quick choice expects little.
        """
        tossed = max(LEAST_CHOICE, 0 if quick else round(CHOICE * coins))
        runs = self._runs(secret, -(-tossed // self.each))
        statistics = self.statistics(runs)
        tried = []
        for top, bottom, apart in self._shapes(coins):
            guesses = [Guess(name, of, top, bottom, apart) for name, of in statistics]
            counted = [_calls(runs, guess) for guess in guesses]
            best = max(range(len(guesses)), key=lambda number: counted[number].correct)
            calls, guess = counted[best], guesses[best]
            sure = lower_proportion(calls.correct, calls.guesses, QUICK_DOUBT) if quick else None
            right = self.expected(calls.correct, calls.guesses) if sure is None else float(sure)
            parts = coins // self.each if apart else 1
            whole = parts * sum(guess.sides(coins // parts))
            bound = one_run_bound(
                int(right * whole), whole, coins, delta=self.claim.delta, confidence=confidence,
                family=family_of(self.claim), sides=calls.sides, runs=parts,
            )  # fmt: skip
            # If nothing is shown at all, the surest sign of anything counts.
            tried.append((bound, (calls.correct / calls.guesses - 0.5) * calls.guesses**0.5, guess))
        bound, _, guess = max(tried, key=lambda one: one[:2])
        return bound, guess

    def expected(self, correct: int, guesses: int) -> float:
        """Share of right guesses expected of other coins, given a choice's.

        One standard deviation is taken off, for it is the best of many.
        """
        right = correct / guesses
        return max(0.0, right - math.sqrt((right * (1 - right) + 0.25 / guesses) / guesses))

    def _shapes(self, coins: int) -> Iterator[tuple[float, float, bool]]:
        """Shares of first and second guesses; of every training, if True."""
        for share in SHARES:
            shapes = (share, share), (share, 0.0), (0.0, share)
            yield from ((*shape, False) for shape in shapes)
            most = round(share * self.each)
            if family_of(self.claim) != "any" and coins > self.each and 1 <= most <= MOST_APART // 2:
                yield from ((*shape, True) for shape in shapes)

    def count(self, secret: Secret, guess: Guess, coins: int) -> Calls:
        """Decisions on fresh trainings."""
        return _calls(self._runs(secret, coins // self.each), guess)

    def _runs(self, secret: Secret, count: int) -> list[Run]:
        return [self._run(secret, number, count) for number in range(count)]

    @abstractmethod
    def _run(self, secret: Secret, number: int, count: int) -> Run:
        """Coins of one training, of `count`, and its reading."""

    def statistics(self, runs: Sequence[Run]) -> list[Statistic]:
        """Statistics (k,) of a reading, higher for the first row."""
        return [(self.statistic, lambda reading: reading[0])]

    statistic: ClassVar[str] = ""


def by_rate(name: str, claimed: float | None) -> list[Statistic]:
    """A statistic that a reading holds for each sampling rate tried."""

    def of(place: int) -> Callable[[Reading], torch.Tensor]:
        return lambda reading: reading[place]

    return [(f"{name}, sampling rate {rate:g}", of(place)) for place, rate in enumerate(rates(claimed))]


def _calls(runs: Sequence[Run], guess: Guess) -> Calls:
    """Decisions: coins with the highest values first, with the lowest second."""
    coins = [run.coins.numpy() for run in runs]
    values = [guess.of(run.reading).numpy() for run in runs]
    if guess.apart:
        parts = [clearest(*part, *guess.sides(len(part[0]))) for part in zip(coins, values, strict=True)]
        return Calls(*(sum(getattr(part, name) for part in parts) for name in Calls.__dataclass_fields__))
    whole = np.concatenate(coins), np.concatenate(values)
    return clearest(*whole, *guess.sides(len(whole[0])))
