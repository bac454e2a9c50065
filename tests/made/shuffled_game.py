"""The game that attacks on pairs play: which raw row is behind each row of a shuffled release under an unknown key?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bench.randomness import Secret
from bench.types import Attack, Attacker, Dataset, Method, PairScores, Release, Scheme, View


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
