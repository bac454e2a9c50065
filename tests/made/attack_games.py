"""Games of attacks: pairs of a shuffled release, and membership in a mixture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bench.evaluators.membership import mixed
from bench.randomness import Secret
from bench.seeds import generator
from bench.statistics.classification_scores import auc
from bench.types import Attack, Attacker, Dataset, Generator, Key, Method, PairScores, Release, Scheme, State, View
from made.toy_methods import Keyless, toy_seed


@dataclass(frozen=True)
class Game:
    """One attack played to its end.

    Args:
        attacker: The fitted attack.
        scores: Of raw rows by released rows.
        order: (m,) int64, the raw row behind each released one.
    """

    attacker: Attacker
    scores: PairScores
    order: Tensor

    @property
    def table(self) -> Tensor:
        """All scores (n, m)."""
        return self.scores.block(slice(None), slice(None))

    @property
    def right(self) -> Tensor:
        """(m,) bool: released rows whose best candidate is the right one."""
        return self.table.argmax(dim=0) == self.order

    @property
    def matched(self) -> int:
        """How many released rows have the right candidate as their best."""
        return int(self.right.sum())

    @property
    def top_1(self) -> float:
        """The share of released rows that have."""
        return self.matched / len(self.order)


def shuffled(scheme: Scheme, private: Dataset, key: int = 7) -> tuple[Release, Tensor]:
    """A release without links or labels under a key never seen, in a random order, and the raw row behind each row."""
    order = torch.randperm(len(private), generator=torch.Generator().manual_seed(5))
    return Release(scheme.sample_key(Secret.of_seed(key)).release(private).samples[order], None, None), order


def play(attack: Attack, of: Method | Scheme, private: Dataset, *, public: Dataset | None = None) -> Game:
    """Attack a release of `private`; Eve knows all of its rows, and `public` ones (None: the same).

    A method is fitted to the public rows first.
    """
    public = private if public is None else public
    scheme = of.fit(public, 0) if isinstance(of, Method) else of
    attacker = attack.fit(View(public, scheme, private, public), 0)
    sealed, order = shuffled(scheme, private)
    return Game(attacker, attacker.score(sealed), order)


N = 120


def rows(seed: int, n: int = N, columns: int = 6) -> Dataset:
    """Two classes about centres of their own; the last column is constant."""
    source = generator(seed)
    classes = torch.arange(n) % 2
    samples = torch.randn(n, columns, generator=source) + 2.0 * classes[:, None] - 1
    samples[:, -1] = 3.0
    return Dataset("made", samples, classes[:, None].float(), None, ("second",), False, True)


@dataclass(frozen=True)
class Made(Generator):
    """Rows by a rule, a count and a seed."""

    rule: Callable[[int, int], Release]

    def sample(self, count: int, seed: int) -> Release:
        return self.rule(count, seed)

    def state(self) -> State:
        return {}


@dataclass(frozen=True)
class Copies(Scheme, Key):
    """Every row with a little noise, by the key's seed; `published` as a generator of such copies beside one row."""

    noise: float = 0.2
    published: bool = False
    seed: int = 0

    def sample_key(self, secret: Secret) -> Key:
        return replace(self, seed=toy_seed(secret))

    def load_key(self, state: State) -> Key:
        return self

    def state(self) -> State:
        return {}

    def release(self, private: Dataset) -> Release:
        def copies(count: int, seed: int) -> Release:
            places = torch.arange(count) % len(private)
            noise = torch.randn(count, private.samples.shape[1], generator=generator(seed))
            labels = None if private.labels is None else private.labels[places]
            return Release(private.samples[places] + self.noise * noise, labels, None)

        if self.published:  # the rows beside it tell nothing
            fresh = rows(self.seed % 1000 + 500, len(private))
            return Release(fresh.samples, fresh.labels, None, generator=Made(copies))
        return copies(len(private), self.seed)


class Forgets(Keyless):
    """One point, again and again."""

    def release(self, private: Dataset) -> Release:
        return Release(torch.full_like(private.samples, 0.3), private.labels, None)


@dataclass(frozen=True)
class Anew(Copies):
    """Fresh rows of the same kind: nothing of the private ones but their number."""

    def release(self, private: Dataset) -> Release:
        fresh = rows(self.seed % 1000 + 500, len(private))
        return Release(fresh.samples, fresh.labels, None)


@dataclass(frozen=True)
class Narrow(Keyless):
    """Rows of another shape."""

    def release(self, private: Dataset) -> Release:
        return Release(private.samples[:, :3], private.labels, None)


def game(scheme: Scheme, columns: int = 6) -> tuple[View, Release, Tensor]:
    """Eve's view, a release of the members under a key she has not seen, and who is a member (2 N,) bool."""
    private, others, control = (rows(seed, columns=columns) for seed in (1, 2, 3))
    candidates, order = mixed(private, others, Secret.of_seed(4))
    return (
        View(rows(5, columns=columns), scheme, candidates, control),
        scheme.sample_key(Secret.of_seed(11)).release(private),
        order < len(private),
    )


def found(attack: Attack, scheme: Scheme, columns: int = 6) -> float:
    """The attack's AUC in that game."""
    view, sealed, members = game(scheme, columns)
    scores = attack.fit(view, 6).membership(sealed)
    assert scores.dtype == torch.float64
    assert bool(scores.isfinite().all())
    return auc(scores, members.double()) or 0.0


def margin(deviations: float) -> float:
    """So many standard deviations of the AUC of N members and N others under chance (Mann and Whitney 1947).

    3.1 are passed once in a thousand, 4.5 on either side once in 150,000.
    """
    return deviations * math.sqrt((2 * N + 1) / (12 * N * N))
