"""Canaries: audits of published classifiers and generators by few trainings.

Source: Steinke, Nasr and Jagielski 2023, Privacy auditing with one (1) training run (algorithm 1, theorem 5.2). Every
canary is one of two rows by a coin of its own, and one training learns from all: privacy of each row is privacy of each
coin. The canaries with the highest statistic are guessed to be the first rows, those with the lowest the second; their
number is fixed on separate trainings.

Differences: a coin replaces a row where the paper leaves it out, because the number of rows is public. A training sees
canaries alone, few enough to be remembered, several times over. Coins of several trainings count together: the set of
all publications is as private in each coin as one is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bench.contract.seal import check
from bench.evidence import Calls
from bench.pair_distances import pair_distances
from bench.progress import report
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.statistics.epsilon_bounds import one_run_bound
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, Scheme

EACH = 64  # canaries per training
CHOICE, COUNTED = 4, 8  # trainings
SIDES = 1, 2, 4, 8, 16, 24, 32  # candidate guesses of either kind per training


@dataclass(frozen=True, eq=False)
class Canaries(ABC):
    """The game on one kind of publication.

    Args:
        scheme, claim: The scheme and its claim.
        public: Rows that canaries are made of.
    """

    scheme: Scheme
    claim: PrivacyClaim
    public: Dataset

    name: str = "canaries"
    statistic: str = ""

    def choose(self, secret: Secret, *, delta: float, confidence: float) -> int:
        """The number of guesses of either kind with the largest bound."""
        runs = [self._run(secret, number) for number in range(CHOICE)]

        def bound(side: int) -> float:
            calls = _calls(runs, side)
            return one_run_bound(
                calls.correct, calls.guesses, calls.trials, delta=delta, confidence=confidence,
                steps=1 if self.claim.neighbours == "replaced" else 2,
            )  # fmt: skip

        sides = [side for side in SIDES if 2 * side <= len(runs[0][0])]
        return max(sides, key=lambda side: (bound(side), side))

    def count(self, secret: Secret, side: int) -> Calls:
        """Decisions on fresh trainings."""
        return _calls([self._run(secret, number) for number in range(COUNTED)], side)

    def _run(self, secret: Secret, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(k,) coins and statistics of a training."""
        report("canaries", number, COUNTED)
        first, second = self.rows(number)
        coins = secret.stream("coins", number).integers(2, len(first)).bool()
        places = torch.arange(len(first)) + len(first) * (~coins).long()
        both = replace(
            first,
            samples=torch.cat((first.samples, second.samples)),
            labels=None if first.labels is None or second.labels is None else torch.cat((first.labels, second.labels)),
            subjects=None,
        )
        key = self.scheme.sample_key(secret.derive("key", number))
        return coins, self.read(key, both.take(places.to(both.samples.device)), first, second).cpu()

    @abstractmethod
    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """The two rows of every canary of a training."""

    @abstractmethod
    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> torch.Tensor:
        """(k,) float64, higher for the first row, from the publication of `rows`."""


@dataclass(frozen=True, eq=False)
class ClassifierCanaries(Canaries):
    """Random corners of the rows' range, labelled by a coin."""

    name: str = "canaries with labels by a coin"
    statistic: str = "the classifier's score for the first label"

    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """The same samples with the first label and with the second."""
        public = self.public
        if public.labels is None:
            raise NotApplicable(f"a published classifier is audited by labels, and {public.name} has none")
        samples = _corners(public, derive(0, "canaries", number))
        first, second = (torch.zeros(EACH, public.labels.shape[1], device=samples.device) for _ in range(2))
        first[:, 0] = 1
        if public.exclusive:
            second[:, 1] = 1
        dataset = replace(public, samples=samples, labels=first, subjects=None)
        return dataset, replace(dataset, labels=second)

    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> torch.Tensor:
        """The classifier's score of each canary minus the median."""
        classify = key.classifier(rows)
        if classify is None:
            raise NotApplicable("neither rows nor a classifier is published: there is nothing to audit")
        scores = classify(first.samples).double()
        margins = scores[:, 0] - scores[:, 1] if self.public.exclusive else scores[:, 0]
        return margins - margins.median()


@dataclass(frozen=True, eq=False)
class RowCanaries(Canaries):
    """One of two public rows by a coin, for unlinked releases."""

    name: str = "canaries that are one of two rows"
    statistic: str = "distance of the nearest released row"

    def rows(self, number: int) -> tuple[Dataset, Dataset]:
        """Two random halves of some public rows, with the first's labels."""
        count = min(EACH, len(self.public) // 2)
        if count < 2:
            raise NotApplicable(f"canaries are made of 4 public rows at least, got {len(self.public)}")
        order = torch.randperm(len(self.public), generator=generator(derive(0, "canaries", number)))
        parts = order[:count], order[count : 2 * count]
        first, second = (self.public.take(part.to(self.public.samples.device)) for part in parts)
        return replace(first, subjects=None), replace(second, labels=first.labels, subjects=None)

    def read(self, key: Key, rows: Dataset, first: Dataset, second: Dataset) -> torch.Tensor:
        """Distance of the nearest released row to the second minus first."""
        release = key.release(rows)
        check(release, rows)
        if release.samples.shape[1:] != rows.samples.shape[1:]:
            raise NotApplicable("unlinked released rows are audited if they have the shape of raw rows")
        released = release.samples.flatten(1).double()
        distances = [
            pair_distances(side.samples.flatten(1).double(), released, 2).amin(dim=1) for side in (first, second)
        ]
        return distances[1] - distances[0]


def published(scheme: Scheme, claim: PrivacyClaim, public: Dataset, secret: Secret) -> Canaries | None:
    """The game for the scheme's publication; None if rows are linked."""
    rows = public.take(torch.arange(min(EACH, len(public)), device=public.samples.device))
    try:
        release = scheme.sample_key(secret).release(replace(rows, subjects=None))
    except NotApplicable:
        return ClassifierCanaries(scheme, claim, public)
    return RowCanaries(scheme, claim, public) if release.links is None else None


def _corners(public: Dataset, seed: int) -> torch.Tensor:
    """(EACH, ...): every number at a random end of its public range."""
    samples = public.samples
    low, high = samples.amin(dim=0, keepdim=True), samples.amax(dim=0, keepdim=True)
    if samples.ndim == 4:
        low, high = torch.zeros_like(low), torch.ones_like(high)
    coins = torch.randint(2, (EACH, *samples.shape[1:]), generator=generator(seed)).bool().to(samples.device)
    return torch.where(coins, high, low)


def _calls(runs: Sequence[tuple[torch.Tensor, torch.Tensor]], side: int) -> Calls:
    """Decisions: the `side` highest of a training first, the lowest second."""
    trials = firsts = hits = false_alarms = misses = rejections = 0
    for coins, values in runs:
        order = values.argsort(stable=True)
        bottom, top = coins[order[:side]], coins[order[-side:]]
        trials, firsts = trials + len(coins), firsts + int(coins.sum())
        hits, false_alarms = hits + int(top.sum()), false_alarms + int((~top).sum())
        misses, rejections = misses + int(bottom.sum()), rejections + int((~bottom).sum())
    return Calls(trials, firsts, hits, false_alarms, misses, rejections)
