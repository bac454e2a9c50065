"""Replicates: a figure by key and on resamples of the people.

Its interval and comparisons come from them.
"""

from __future__ import annotations

__figures__ = True

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Scale = Literal["plain", "log", "share"]


@dataclass(frozen=True)
class Replicates:
    """A figure under K keys on all people, and on B resamples.

    A resample stands for another draw of as many people: drawn with replacement, or a half of them without, which
    varies about the whole as much. The resamples are the same under every key, every attack and every method on the
    same rows, so that two figures can be compared resample by resample.

    Args:
        by_key: (K,) the figure of each key. What is drawn with a key, such as the seed of a training, counts as its
            own.
        resampled: By key, (B,) the figure on each resample.
        degrees: Degrees of freedom that the spread over resamples has as an estimate of a variance.
        people: What tells these resamples from others: a hash; empty where figures cannot be compared.
        scale: Where the figure is nearly normal: as it is, its logarithm, or the log odds of a share.
        trainings: (K,) the number of the attacker's training that attacked each key; empty if nothing was trained, or
            with every key anew.

    Raises:
        ValueError: Keys with unequal numbers of resamples, or fewer than two; trainings of another number of keys.
    """

    by_key: Sequence[float]
    resampled: Sequence[Sequence[float]]
    degrees: float
    people: str = ""
    scale: Scale = "plain"
    trainings: Sequence[int] = ()

    def __post_init__(self) -> None:
        lengths = {len(each) for each in self.resampled}
        if not self.by_key or len(self.resampled) != len(self.by_key) or len(lengths) != 1 or min(lengths) < 2:
            raise ValueError(
                f"replicates need at least two resamples under every key, as many under each, got "
                f"{[len(each) for each in self.resampled]} for {len(self.by_key)} keys"
            )
        if len(self.trainings) not in (0, len(self.by_key)):
            raise ValueError(f"expected the training of each of {len(self.by_key)} keys, got {len(self.trainings)}")


@dataclass(frozen=True)
class Exchanges:
    """A figure's rank among those of exchanged people, to judge attacks together.

    Args:
        tails: (1 + B,) by exchange, the true links first: how many of all 1 + B have a figure at least as bad for the
            owner, itself among them.
        spread: The figure's standard deviation over the exchanges.
        people: A hash of the exchanges: figures are judged together if it is the same.
    """

    tails: Sequence[int]
    spread: float
    people: str

    def __post_init__(self) -> None:
        if len(self.tails) < 2 or not all(1 <= tail <= len(self.tails) for tail in self.tails) or self.spread < 0:
            raise ValueError("exchanges need two tails or more, each from 1 to their number, and a spread of 0 or more")
