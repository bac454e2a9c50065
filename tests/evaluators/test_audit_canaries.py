from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from bench.audit.canaries import EACH, ClassifierCanaries
from bench.audit.distinguishing_game import CONFIDENCE, Played, audit
from bench.evidence import AuditEvidence
from bench.randomness import Secret
from bench.seeds import generator
from bench.statistics.epsilon_reach import MOST_COINS, ceiling
from bench.types import Classifier, Dataset, Key, NotApplicable, PrivacyClaim, Release, Scheme, State
from metrics.empirical_epsilon import EmpiricalEpsilon

ROWS = 160


def public(exclusive: bool = False) -> Dataset:
    random = generator(3)
    coins = torch.arange(ROWS) % 2
    labels = torch.stack((1 - coins, coins), dim=1).float()
    return Dataset("", torch.rand(ROWS, 12, generator=random), labels, None, ("a", "b"), exclusive, True)


@dataclass(frozen=True)
class Remembers(Scheme):
    """Publishes a classifier that answers a row that it has seen by its first label, flipped at the given rate."""

    flipped: float
    epsilon: float
    delta: float = 0.0

    def sample_key(self, secret: Secret) -> Key:
        return RemembersKey(self, secret)

    def load_key(self, state: State) -> Key:
        return RemembersKey(self, Secret.load(state["secret"]))

    def claim(self) -> PrivacyClaim:
        return PrivacyClaim("record", self.epsilon, self.delta, "none", "a test", neighbours="added")


@dataclass(frozen=True)
class RemembersKey(Key):
    scheme: Remembers
    secret: Secret

    def release(self, private: Dataset) -> Release:
        raise NotApplicable("a classifier is published")

    def classifier(self, private: Dataset) -> Classifier:
        assert private.labels is not None
        flipped = self.secret.stream().uniform(len(private)) < self.scheme.flipped
        answers = torch.where(flipped, 1 - private.labels[:, 0], private.labels[:, 0])

        def classify(rows: Tensor) -> Tensor:
            found = torch.cdist(rows, private.samples).argmin(dim=1)
            return torch.stack((answers[found], 1 - answers[found]), dim=1)

        return classify

    def state(self) -> State:
        return {"secret": self.secret.tensor()}


@dataclass(frozen=True)
class Counts(Remembers):
    """Remembers how many rows each classifier learned from."""

    rows: ClassVar[list[int]] = []

    def sample_key(self, secret: Secret) -> Key:
        @dataclass(frozen=True)
        class CountsKey(RemembersKey):
            def classifier(self, private: Dataset) -> Classifier:
                Counts.rows.append(len(private))
                return super().classifier(private)

        return CountsKey(self, secret)


@dataclass(frozen=True)
class Draws(Scheme):
    """Releases as many rows that come from no raw row: near copies, or random ones."""

    copies: bool

    def sample_key(self, secret: Secret) -> Key:
        return DrawsKey(self, secret)

    def load_key(self, state: State) -> Key:
        return DrawsKey(self, Secret.load(state["secret"]))

    def claim(self) -> PrivacyClaim:
        return PrivacyClaim("record", 1.0, 0.0, "none", "a test")


@dataclass(frozen=True)
class DrawsKey(Key):
    scheme: Draws
    secret: Secret

    def release(self, private: Dataset) -> Release:
        rows = self.secret.stream("rows").uniform(*private.samples.shape).float()
        return Release(private.samples + 0.01 * rows if self.scheme.copies else rows, private.labels, None)

    def state(self) -> State:
        return {"secret": self.secret.tensor()}


def played(scheme: Scheme, *, exclusive: bool = False, seed: int = 0) -> Played:
    stated = scheme.claim()
    assert stated is not None
    return audit(scheme, stated, public(exclusive), trials=300, secret=Secret.of_seed(seed))


def shown(scheme: Scheme, found: Played) -> float:
    stated = scheme.claim()
    assert stated is not None
    return EmpiricalEpsilon()(
        AuditEvidence(stated, found.calls, CONFIDENCE, one_run=found.one_run, coins=found.coins)
    ).value


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_classifier_that_remembers_labels_is_refuted(exclusive: bool) -> None:
    scheme = Remembers(0.0, 1.0, 1e-6)
    found = played(scheme, exclusive=exclusive)
    assert found.one_run
    assert found.calls.trials == 8 * EACH
    assert shown(scheme, found) > 1.0


@pytest.mark.parametrize("neighbours", ["replaced", "added"])
def test_coins_include_rows_if_neighbours_do_and_replace_them_otherwise(
    neighbours: Literal["replaced", "added"],
) -> None:
    scheme = Counts(0.1, 1.0, 1e-3)
    game = ClassifierCanaries(scheme, replace(scheme.claim(), neighbours=neighbours), public(), 128)
    run = game._run(Secret.of_seed(0), 0, 1)
    assert game.included == (neighbours == "added")
    assert Counts.rows[-1] == (int(run.coins.sum()) + 1 if game.included else EACH)  # and one that is always in


def test_the_clearest_side_alone_is_guessed_if_the_other_says_little() -> None:
    # A row that was left out gets the label of its neighbour: half of those are told, and no row that was there.
    scheme = Remembers(0.0, 1.0, 1e-6)
    game = ClassifierCanaries(scheme, scheme.claim(), public(), 512)
    _, guess = game.choose(Secret.of_seed(0), 512, confidence=CONFIDENCE)
    assert guess.bottom > guess.top


def test_the_number_of_coins_follows_the_claim() -> None:
    def coins(epsilon: float, most: int = 10**6) -> int:
        scheme = Remembers(0.0, epsilon, 1e-5)
        stated = replace(scheme.claim(), family="Gaussian")
        return ClassifierCanaries(scheme, stated, public(), most).coins(CONFIDENCE)

    assert coins(0.5) == MOST_COINS > coins(10.0) > coins(6.0)
    assert coins(6.0, most=200) == 192  # whole trainings
    assert ceiling(coins(10.0), delta=1e-5, confidence=0.999, family="Gaussian") > 10.0


def test_a_classifier_of_randomised_labels_keeps_its_claim() -> None:
    # A label is flipped at the rate 1 / (1 + e^2), so that one label or the other is private at 2.
    repeats, scheme = 40, Remembers(0.1192029, 2.0)
    found = [shown(scheme, played(scheme, seed=seed)) for seed in range(repeats)]
    assert sum(one > 2.0 for one in found) <= binom.ppf(0.999, repeats, 0.05)
    assert max(found) > 0.5


def test_rows_without_a_raw_row_are_audited_by_what_lies_near() -> None:
    assert shown(Draws(True), played(Draws(True))) > 1.0
    assert shown(Draws(False), played(Draws(False))) <= 1.0


def test_what_publishes_neither_rows_nor_a_classifier_cannot_be_audited() -> None:
    @dataclass(frozen=True)
    class Silent(RemembersKey):
        def classifier(self, private: Dataset) -> Classifier:
            return None  # type: ignore[return-value]

    @dataclass(frozen=True)
    class Mute(Remembers):
        def sample_key(self, secret: Secret) -> Key:
            return Silent(self, secret)

    with pytest.raises(NotApplicable, match="nothing to audit"):
        played(Mute(0.0, 1.0))
