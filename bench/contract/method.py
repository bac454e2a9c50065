"""An obfuscation method: it fits what is public and hands out keys, each of which releases rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

import torch

from bench.contract.dataset import Dataset, Generator, Release
from bench.contract.mechanism import Mechanism
from bench.contract.plugin import NotApplicable, Plugin, PrivacyClaim, State
from bench.randomness import Secret

Classifier: TypeAlias = (
    "Callable[[torch.Tensor], torch.Tensor]"  # raw rows (n, ...) to scores (n, k), higher is likelier
)
Role = Literal["hides nothing", "keeps nothing", "keeps nothing, in secret", "remembers its rows", "forgets its rows"]
CAVEAT = "caveat"  # the note that tables show beside the method's name: what a reader must not overlook


class Key(ABC):
    """One data owner's secret: turns her raw rows into a release."""

    @abstractmethod
    def release(self, private: Dataset) -> Release:
        """The released form of `private`; its tensors stay untouched, row order is kept (the harness shuffles)."""

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """How new images (n, c, h, w) reach Bob's model, who does not know their labels. Default: as they are."""
        return samples

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Bob's predictions (n, k), higher is likelier, back to the real classes. Default: as they are."""
        return scores

    def classifier(self, private: Dataset) -> Classifier | None:
        """A classifier trained on the private rows, for methods that publish one in place of rows; None (the default).

        Such a method's `release` raises NotApplicable with the reason.
        """
        return None

    @abstractmethod
    def state(self) -> State:
        """Everything secret, as tensors: `Scheme.load_key(state)` gives an equal key."""


class Scheme(ABC):
    """The public part of a method after training. Eve holds it and can draw as many keys as she likes."""

    @abstractmethod
    def sample_key(self, secret: Secret) -> Key:
        """A fresh key, of one class for all secrets; the same secret gives the same key, on any machine."""

    @abstractmethod
    def load_key(self, state: State) -> Key:
        """The key that `Key.state` described."""

    def load_generator(self, state: State) -> Generator:
        """The generator that `Generator.state` described, for methods that publish one."""
        raise NotApplicable(f"{type(self).__name__} publishes no generator")

    def state(self) -> State:
        """Everything learned, as tensors: `Method.load(state)` gives an equal scheme. Default: nothing was learned."""
        return {}

    def claim(self) -> PrivacyClaim | None:
        """The formal guarantee for rows shaped like the public ones; None where the method makes none."""
        return None

    def mechanism(self) -> Mechanism | None:
        """The noise it adds, as Eve knows it: for likelihood attacks and audits. None (the default) where none is."""
        return None

    def accounts(self, rows: int) -> Mapping[str, float]:
        """The epsilon that a release of that many rows spends, by every accountant at hand. Default: none is needed."""
        return {}

    def notes(self) -> Mapping[str, int | float | str]:
        """What a record should say of the fitted scheme (bits per dimension, ...). Default: nothing.

        What stands under `CAVEAT`, in a sentence, goes with every figure of the scheme wherever it is shown.
        """
        return {}


class Method(Plugin):
    """An obfuscation method: fits what is public, then hands out keys.

    `uses_labels` says that released samples depend on labels (conditional flows): new rows, whose labels are what Bob
    wants to know, then reach his model as they are.
    `needs_labels` says that only the release does (rows grouped or modelled class by class). Attackers of both see the
    labels too, for without them they could not simulate a release.
    `equal_classes` says that it takes labels of exclusive classes only where these are equally frequent: a random
    surplus of them is withheld for it.
    `claims` is its formal guarantee in a sentence; the figure for given data is `Scheme.claim`. `role` marks the
    reference methods that every attack is held against (three for pairs, two for membership). `unlearned` names
    parameters that only `load` reads: what `fit` learns is shared by methods that differ in these alone (the
    harness fits with them at their defaults).
    `sides` maps a preset's name to the side in pixels that the method's sizes for it are made for: images that can be
    had at any side are prepared at it, unless a user says otherwise.
    """

    claims: ClassVar[str] = "no formal guarantee"
    role: ClassVar[Role | None] = None

    uses_labels: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    equal_classes: ClassVar[bool] = False
    unlearned: ClassVar[frozenset[str]] = frozenset()
    sides: ClassVar[Mapping[str, int]] = {}

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Scheme:
        """Train on public data only. Raises NotApplicable where the method cannot work on such rows."""

    @abstractmethod
    def load(self, state: State) -> Scheme:
        """The scheme that `Scheme.state` described, on the device of its tensors."""
