"""Canaries: audits of published classifiers and generators by few trainings.

Source: Nasr et al. 2023, Tight auditing of differentially private machine learning; the game is that of
`bench.audit.canary_game`. White-box games read the noisy sum of every step (`Key.private_steps`), black-box games the
publication alone.

Difference: a training sees canaries alone; if coins decide which, one more is always among them, so that none is
empty.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from bench.audit.canary_game import EACH, CanaryGame, Run, Statistic, by_rate
from bench.audit.gradient_canaries import GradientCanaries
from bench.audit.private_step_statistics import Reading, statistics_of_steps
from bench.contract.seal import check
from bench.pair_distances import pair_distances
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.seeds import derive, generator
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, PrivateStep, Scheme

MOST_EACH = 512  # canaries per training of a white-box game at most
NUMBERS_EACH = 32  # gradient numbers per canary, at least
LEAST_EACH = 4
BLACK_BOX = 512  # coins of a black-box game beside a white-box one


@dataclass(frozen=True, eq=False)
class PublicRows(CanaryGame):
    """Canaries that are rows made of public ones."""

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


@dataclass(frozen=True, eq=False)
class ClassifierCanaries(PublicRows):
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

    def statistics(self, runs: Sequence[Run]) -> list[Statistic]:
        """Likelihood ratio of all steps, by each sampling rate."""
        return by_rate("likelihood ratio of steps", self.claim.sampling_rate)


@dataclass(frozen=True, eq=False)
class RowCanaries(PublicRows):
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


@dataclass(frozen=True, eq=False)
class Games:
    """White-box games, strongest first, and the black-box one, if any."""

    inside: Sequence[CanaryGame] = ()
    outside: CanaryGame | None = None


def published(scheme: Scheme, claim: PrivacyClaim, public: Dataset, *, most: int, secret: Secret) -> Games:
    """Games for the scheme's publication; none for linked rows."""
    rows = public.take(torch.arange(min(EACH, len(public)), device=public.samples.device))
    outside: PublicRows = RowCanaries(scheme, claim, public, most)
    try:
        if scheme.sample_key(secret).release(replace(rows, subjects=None)).links is not None:
            return Games()
    except NotApplicable:
        outside = ClassifierCanaries(scheme, claim, public, most)
    step = _first_step(outside, scheme.sample_key(secret.derive("steps")))
    if step is None:
        return Games((), outside)
    width = step.total.numel()
    games: list[CanaryGame] = []
    given = GradientCanaries(scheme, claim, public, most, width, step.clip)
    if given.possible(secret.derive("gradients")):
        games.append(given)
    if public.labels is not None:
        games.append(StepCanaries(scheme, claim, public, most, width))
    return Games(games, replace(outside, most=min(most, BLACK_BOX)))


class _EnoughError(Exception):
    """A step was seen."""


def _first_step(game: PublicRows, key: Key) -> PrivateStep | None:
    """A training's first step; None if the key shows none."""
    first, _ = game.rows(0)
    rows = first.take(torch.arange(min(2, len(first)), device=first.samples.device))
    steps: list[PrivateStep] = []

    def see(step: PrivateStep) -> None:
        steps.append(step)
        raise _EnoughError

    try:
        key.private_steps(rows, rows, see)
    except _EnoughError:
        pass
    except NotApplicable:
        return None
    return steps[0] if steps else None


def _corners(public: Dataset, count: int, seed: int) -> torch.Tensor:
    """(count, ...): every number at a random end of its public range."""
    samples = public.samples
    low, high = samples.amin(dim=0, keepdim=True), samples.amax(dim=0, keepdim=True)
    if samples.ndim == 4:
        low, high = torch.zeros_like(low), torch.ones_like(high)
    coins = torch.randint(2, (count, *samples.shape[1:]), generator=generator(seed)).bool().to(samples.device)
    return torch.where(coins, high, low)
