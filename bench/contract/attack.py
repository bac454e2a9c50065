"""An attack: it fits on what Eve, the attacker, sees, and scores releases under keys that she has never seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.contract.dataset import Dataset, Release
from bench.contract.method import Scheme
from bench.contract.plugin import NotApplicable, Plugin


@dataclass(frozen=True, eq=False)
class View:
    """All that Eve knows before she sees the release: never links, never a key, never a key's seed.

    Args:
        public: The public data set, with labels.
        scheme: The fitted scheme; she may draw her own keys from it.
        candidates: The raw rows she tries to find in the release (worst case: exactly the released people), in
            another order than their owner's. Labels only for attacks that ask for them, and where released samples
            depend on them; subjects never. For membership attacks, which always get labels: the released rows among
            as many others as there are, in random order.
        control: Rows of the same kind that are known not to be in the release, and not among the candidates.
    """

    public: Dataset
    scheme: Scheme
    candidates: Dataset
    control: Dataset


class PairScores(ABC):
    """A score for every (raw row, released row); higher means likelier the same image. Read in blocks, never whole."""

    shape: tuple[int, int]

    @abstractmethod
    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores of a block, float32 or float64. The same pair gives the same bits whatever the block."""

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Rows (n, d) and (m, d) whose inner products are the scores; None (the default) where there are none.

        Float64 multiples of 2^-26, no row longer than 1 + 2^-10, so that float64 products of them are exact in any
        order. They spare the judge half of the reading; `bench.pairs.score_matrices.CosineScores` has them.
        """
        return None


class Attacker(ABC):  # noqa: B024  (an attacker overrides whichever of the two it can do)
    """A trained attack. It only scores; the harness judges."""

    def score(self, sealed: Release) -> PairScores:
        """Scores of all (candidate, released) pairs for a shuffled release without links."""
        raise NotApplicable(f"{type(self).__name__} does not score pairs")

    def membership(self, sealed: Release) -> torch.Tensor:
        """(n,) float32 or float64 on any device, higher means likelier that the candidate was in the private data."""
        raise NotApplicable(f"{type(self).__name__} does not score membership")

    def notes(self) -> Mapping[str, int | float | str]:
        """What a record should say of the fitted attack and of the last release scored. Default: nothing."""
        return {}


class Attack(Plugin):
    """An attack: fits on Eve's view, then scores releases under keys it has never seen.

    `scores` says which of the two an attacker gives; `knowledge` in a sentence what Eve is assumed to know;
    `uses_labels` asks for raw and released labels (membership attacks always get them).
    """

    scores: ClassVar[Literal["pairs", "membership"]] = "pairs"
    knowledge: ClassVar[str]
    uses_labels: ClassVar[bool] = False

    @abstractmethod
    def fit(self, view: View, seed: int) -> Attacker:
        """Train or set up. Draws its own keys with `view.scheme.sample_key` if it needs any."""
