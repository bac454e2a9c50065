"""Canaries: audits of published classifiers and generators by few trainings.

Sources: Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run (algorithm 1); Mahloujifar, Melis
and Chaudhuri 2024, Auditing f-differential privacy in one run; Nasr et al. 2023, Tight auditing of differentially
private machine learning. A coin decides if a canary is among the rows, or, if neighbours replace each other, which of
two rows it is. One training learns from all canaries: privacy of each row is privacy of each coin. The canaries with
the highest statistic are guessed to be the first rows, those with the lowest the others; statistic and number of
guesses are fixed on separate trainings.

White-box games read the noisy sum of every step (`Key.private_steps`), black-box games the publication alone.

Differences: a training sees canaries alone; if coins decide which, one more is always among them, so that none is
empty. Coins of several trainings count together, for the set of all publications is as private in each coin as one is;
or the same number of guesses of each training, for trainings are independent. The number of rows is public by the
claims audited here, and varies with the coins; guesses rest on ranks, and read nothing from that number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from bench.audit.game_plays import clearest
from bench.audit.private_step_statistics import Reading, rates, statistics_of_steps
from bench.contract.seal import check
from bench.evidence import Calls
from bench.pair_distances import pair_distances
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.seeds import derive, generator
from bench.statistics.epsilon_bounds import family_of, one_run_bound
from bench.statistics.epsilon_reach import coins_needed
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, PrivateStep, Scheme

EACH, MOST_EACH = 64, 512  # canaries per training: of black-box games; of white-box games at most
NUMBERS_EACH = 32  # gradient numbers per canary, at least
LEAST_EACH = 4
BLACK_BOX = 512  # coins of a black-box game beside a white-box one
CHOICE, LEAST_CHOICE = 1 / 4, 256  # coins of the choice: a share of those counted, and the fewest
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
class Canaries(ABC):
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

    def choose(self, secret: Secret, coins: int, *, confidence: float) -> Guess:
        """Statistic and number of guesses with the largest bound expected of `coins`."""
        runs = self._runs(secret, -(-max(LEAST_CHOICE, round(CHOICE * coins)) // self.each))
        statistics = self.statistics(runs)
        tried = []
        for top, bottom, apart in self._shapes(coins):
            guesses = [Guess(name, of, top, bottom, apart) for name, of in statistics]
            counted = [_calls(runs, guess) for guess in guesses]
            best = max(range(len(guesses)), key=lambda number: counted[number].correct)
            calls, guess = counted[best], guesses[best]
            # One standard deviation is taken off, for it is the best of many.
            right = calls.correct / calls.guesses
            right -= ((right * (1 - right) + 0.25 / calls.guesses) / calls.guesses) ** 0.5
            parts = coins // self.each if apart else 1
            whole = parts * sum(guess.sides(coins // parts))
            bound = one_run_bound(
                int(max(right, 0) * whole), whole, coins, delta=self.claim.delta, confidence=confidence,
                family=family_of(self.claim), sides=calls.sides, runs=parts,
            )  # fmt: skip
            # If nothing is shown at all, the surest sign of anything counts.
            tried.append((bound, (calls.correct / calls.guesses - 0.5) * calls.guesses**0.5, guess))
        return max(tried, key=lambda one: one[:2])[2]

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

    def _run(self, secret: Secret, number: int, count: int) -> Run:
        report("canaries", number, count)
        first, second = self.rows(number)
        coins = secret.stream("coins", number).integers(2, len(first)).bool()
        coins[-1] |= self.included
        both = joined(first, second)
        of_two = torch.arange(len(first)) + len(first) * (~coins).long()
        places = coins.nonzero()[:, 0] if self.included else of_two
        key = self.scheme.sample_key(secret.derive("key", number))
        reading = self.read(key, both.take(places.to(both.samples.device)), first, second)
        tossed = slice(len(coins) - self.included)
        return Run(coins[tossed], reading[:, tossed])

    @abstractmethod
    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """Every canary's two rows; the second is unused if canaries are omitted.

        If coins decide which are included, the last is always.
        """

    @abstractmethod
    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> Reading:
        """(s, k) float64 numbers of each canary, from the publication of `rows`."""

    def statistics(self, runs: Sequence[Run]) -> list[tuple[str, Callable[[Reading], torch.Tensor]]]:
        """Statistics (k,) of a reading, higher for the first row."""
        return [(self.statistic, lambda reading: reading[0])]

    statistic: ClassVar[str] = ""


@dataclass(frozen=True, eq=False)
class ClassifierCanaries(Canaries):
    """Random corners of the rows' range, with labels by turns."""

    name: ClassVar[str] = "canaries of a published classifier (black-box)"
    statistic: ClassVar[str] = "the classifier's score for the first label"

    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """The same samples with one label and with another."""
        public = self.public
        if public.labels is None:
            raise NotApplicable(f"a published classifier is audited by labels, and {public.name} has none")
        count = self.each + self.included
        samples = _corners(public, count, derive(0, "canaries", number))
        k = public.labels.shape[1]
        first, second = (torch.zeros(count, k, device=samples.device) for _ in range(2))
        order = torch.arange(count, device=samples.device)
        if public.exclusive:
            first[order, order % k] = 1
            second[order, (order + 1) % k] = 1
        else:
            first[::2, 0], second[1::2, 0] = 1, 1
        dataset = replace(public, samples=samples, labels=first, subjects=None)
        return dataset, replace(dataset, labels=second)

    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> Reading:
        """The classifier's score for each canary's label, minus the median."""
        classify = key.classifier(rows)
        if classify is None:
            raise NotApplicable("neither rows nor a classifier is published: there is nothing to audit")
        scores = classify(first.samples).double().cpu()
        labels, others = (side.labels.double().cpu() for side in (first, second) if side.labels is not None)
        margins = (scores * (labels - others)).sum(dim=1)
        if self.included:  # rows of one label are compared with each other
            for label in torch.unique(labels, dim=0):
                same = (labels == label).all(dim=1)
                margins[same] = margins[same] - margins[same].median()
            return margins[None]
        return (margins - margins.median())[None]


@dataclass(frozen=True, eq=False)
class StepCanaries(ClassifierCanaries):
    """The same canaries, read off the noisy sums of a private training."""

    width: int = field(default=0)
    """Numbers of a gradient."""

    name: ClassVar[str] = "canaries in the steps of a private training (white-box)"

    @property
    def each(self) -> int:
        """As many canaries as have nearly independent gradients."""
        return max(LEAST_EACH, min(MOST_EACH, self.width // NUMBERS_EACH, self.most))

    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> Reading:
        """(s, k): log odds of every coin, by each sampling rate tried."""
        theirs = None if self.included else second
        return statistics_of_steps(key, rows, first, theirs, claimed=self.claim.sampling_rate)

    def statistics(self, runs: Sequence[Run]) -> list[tuple[str, Callable[[Reading], torch.Tensor]]]:
        """Likelihood ratio of all steps, by each sampling rate."""
        return [
            (f"likelihood ratio of steps, sampling rate {rate:g}", lambda reading, place=place: reading[place])  # type: ignore[misc]
            for place, rate in enumerate(rates(self.claim.sampling_rate))
        ]


@dataclass(frozen=True, eq=False)
class RowCanaries(Canaries):
    """Public rows that a coin includes or replaces, for unlinked releases."""

    name: ClassVar[str] = "canaries of unlinked releases"
    statistic: ClassVar[str] = "distance of the nearest released row"

    @property
    def each(self) -> int:
        """As many as the public rows allow."""
        return max(2, min(EACH, len(self.public) // 2)) - self.included

    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """Two random halves of some public rows, with the first's labels."""
        count = min(EACH, len(self.public) // 2)
        if count < 2:
            raise NotApplicable(f"canaries are made of 4 public rows at least, got {len(self.public)}")
        order = torch.randperm(len(self.public), generator=generator(derive(0, "canaries", number)))
        parts = order[:count], order[count : 2 * count]
        first, second = (self.public.take(part.to(self.public.samples.device)) for part in parts)
        return replace(first, subjects=None), replace(second, labels=first.labels, subjects=None)

    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> Reading:
        """Distance of the nearest released row to the second minus first."""
        release = key.release(rows)
        check(release, rows)
        if release.samples.shape[1:] != rows.samples.shape[1:]:
            raise NotApplicable("unlinked released rows are audited if they have the shape of raw rows")
        released = release.samples.flatten(1).double()
        distances = [
            pair_distances(side.samples.flatten(1).double(), released, 2).amin(dim=1) for side in (first, second)
        ]
        return (-distances[0] if self.included else distances[1] - distances[0]).cpu()[None]


def published(scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, most: int, secret: Secret) -> list[Canaries]:
    """Games for the scheme's publication, strongest first; none for linked rows."""
    rows = public.take(torch.arange(min(EACH, len(public)), device=public.samples.device))
    try:
        release = scheme.sample_key(secret).release(replace(rows, subjects=None))
    except NotApplicable:
        outside = ClassifierCanaries(scheme, claim, public, most)
        width = _width(outside, scheme.sample_key(secret.derive("steps")))
        if width is None:
            return [outside]
        return [StepCanaries(scheme, claim, public, most, width), replace(outside, most=min(most, BLACK_BOX))]
    return [RowCanaries(scheme, claim, public, most)] if release.links is None else []


class _EnoughError(Exception):
    """A step was seen."""


def _width(game: ClassifierCanaries, key: Key) -> int | None:
    """Numbers of a gradient; None if the key shows no steps."""
    first, _ = game.rows(0)
    rows = first.take(torch.arange(min(2, len(first)), device=first.samples.device))
    widths: list[int] = []

    def see(step: PrivateStep) -> None:
        widths.append(step.total.numel())
        raise _EnoughError

    try:
        key.private_steps(rows, rows, see)
    except _EnoughError:
        pass
    except NotApplicable:
        return None
    return widths[0] if widths else None


def _corners(public: Dataset, count: int, seed: int) -> torch.Tensor:
    """(count, ...): every number at a random end of its public range."""
    samples = public.samples
    low, high = samples.amin(dim=0, keepdim=True), samples.amax(dim=0, keepdim=True)
    if samples.ndim == 4:
        low, high = torch.zeros_like(low), torch.ones_like(high)
    coins = torch.randint(2, (count, *samples.shape[1:]), generator=generator(seed)).bool().to(samples.device)
    return torch.where(coins, high, low)


def _calls(runs: Sequence[Run], guess: Guess) -> Calls:
    """Decisions: coins with the highest values first, with the lowest second."""
    coins = [run.coins.numpy() for run in runs]
    values = [guess.of(run.reading).numpy() for run in runs]
    if guess.apart:
        parts = [clearest(*part, *guess.sides(len(part[0]))) for part in zip(coins, values, strict=True)]
        return Calls(*(sum(getattr(part, name) for part in parts) for name in Calls.__dataclass_fields__))
    whole = np.concatenate(coins), np.concatenate(values)
    return clearest(*whole, *guess.sides(len(whole[0])))
