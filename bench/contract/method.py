"""Obfuscation methods: they fit public data, and keys release rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch

from bench.contract.dataset import Dataset, Generator, Release
from bench.contract.mechanism import Mechanism
from bench.contract.plugin import NotApplicable, Plugin, PrivacyClaim, State
from bench.contract.recorded import Recorded
from bench.randomness import Secret

Classifier: TypeAlias = (
    "Callable[[torch.Tensor], torch.Tensor]"  # raw rows (n, ...) to scores (n, k), higher is likelier
)
Role = Literal[
    "hides nothing",
    "keeps nothing",
    "keeps nothing, in secret",
    "remembers its rows",
    "forgets its rows",
    "sees public rows only",
]
CAVEAT = "caveat"  # the note that tables show beside the method's name: what a reader must not overlook


@dataclass(frozen=True, eq=False)
class PrivateStep:
    """A private training's step, as its claim's proof lets Eve see it.

    Args:
        total: (d,) noisy sum of the rows' clipped gradients, in any unit that steps of all trainings share.
        gradients: (k, d) gradients of the probes at the weights before the step, unclipped.
        clip: Largest length of a row's gradient in the sum, as stated.
    """

    total: torch.Tensor
    gradients: torch.Tensor
    clip: float


class Key(ABC):
    """One data owner's secret: turns her raw rows into a release."""

    @abstractmethod
    def release(self, private: Dataset) -> Release:
        """The release of `private`: tensors stay untouched, rows keep their order."""

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """New images (n, c, h, w) for Bob's model, without labels.

        Default: unchanged.
        """
        return samples

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Bob's predictions (n, k) as real classes; higher is likelier.

        Default: unchanged.
        """
        return scores

    def classifier(self, private: Dataset) -> Classifier | None:
        """A classifier trained on private rows, if published; None (the default).

        Such a method's `release` raises NotApplicable with the reason. The classifier answers every row by itself, with
        finite scores.
        """
        return None

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        """Train as `classifier` does, and show every step to `see`, for audits.

        Of methods whose claim holds for the noisy sums of all steps, not for the last weights alone. `probes` are rows
        like the private ones; they have no part in the training. Default: raises NotApplicable.
        """
        raise NotApplicable(f"{type(self).__name__} shows no steps of a private training")

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        """Train on rows of given gradients, and show every step to `see`.

        For audits. Step, sampling, clip and noise are those of `classifier`. Steps have no gradients of probes.
        Default: raises NotApplicable.

        Args:
            like: Rows of the shape and labels of private rows; they have no part in the training.
            gradients: (c, d) float32, the gradient of each of c rows at every step, before it is clipped.
            see: Receiver of every step.
        """
        raise NotApplicable(f"{type(self).__name__} trains on no given gradients")

    @abstractmethod
    def state(self) -> State:
        """Everything secret, as tensors: `Scheme.load_key(state)` gives an equal key."""


class Scheme(ABC):
    """A method's public part: Eve holds it, and draws keys from it."""

    @abstractmethod
    def sample_key(self, secret: Secret) -> Key:
        """A fresh key; equal secrets give equal keys on any machine.

        All keys are of one class.
        """

    @abstractmethod
    def load_key(self, state: State) -> Key:
        """The key that `Key.state` described."""

    def load_generator(self, state: State) -> Generator:
        """The generator that `Generator.state` described, for methods that publish one."""
        raise NotApplicable(f"{type(self).__name__} publishes no generator")

    def state(self) -> State:
        """Learned tensors: `Method.load(state)` gives an equal scheme.

        Default: none.
        """
        return {}

    def claim(self) -> PrivacyClaim | None:
        """The formal guarantee for rows like the public ones; None if none."""
        return None

    def mechanism(self) -> Mechanism | None:
        """Its noise as Eve knows it; None (the default) if none."""
        return None

    def accounts(self, rows: int) -> Mapping[str, float]:
        """Epsilon of a release of that many rows, by each accountant.

        Default: none is needed.
        """
        return {}

    def notes(self) -> Mapping[str, int | float | str]:
        """Notes for the record on the scheme (bits per dimension, ...).

        Default: none.

        What stands under `CAVEAT`, in a sentence, goes with every figure of the scheme wherever it is shown.
        """
        return {}


class Method(Plugin):
    """An obfuscation method: fits what is public, then hands out keys.

    `uses_labels` says that released samples depend on labels (conditional flows): new rows, whose labels are what Bob
    wants to know, then reach his model as they are.
    `needs_labels` says that only the release does (rows grouped or modelled class by class). Attackers of both see the
    labels too, for without them they could not simulate a release.
    `encodes_labels` says that only released labels do (permuted, mixed or shuffled). `uses_subjects` says that the
    release depends on who is shown. A method of another author gets labels and subjects only if it says so; if it says
    nothing of labels it releases none, and the judge adds the raw ones by its links.
    `needs_subjects` says that its claim is about people: an owner whose data name none is refused. Rows of unknown
    people, such as Eve's, are to be released as of a person each.
    `equal_classes` says that it takes labels of exclusive classes only where these are equally frequent: a random
    surplus of them is withheld for it.
    `raw_like` says that released rows are images in the units of raw ones, so that a model of them reads raw images
    too, and an import of the release needs no key for new images.
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
    encodes_labels: ClassVar[bool] = False
    uses_subjects: ClassVar[bool] = False
    needs_subjects: ClassVar[bool] = False
    equal_classes: ClassVar[bool] = False
    raw_like: ClassVar[bool] = False
    unlearned: ClassVar[frozenset[str]] = frozenset()
    sides: ClassVar[Mapping[str, int]] = {}

    @property
    def recorded(self) -> Recorded | None:
        """Its releases, if another tool made them. Default: None, its keys do.

        The judge reads them. Of such a method's keys `release` raises NotApplicable.
        """
        return None

    @property
    def releases(self) -> int | None:
        """Number of releases that another tool made. Default: None, its keys do."""
        return None

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Scheme:
        """Train on public data. Raises NotApplicable for rows it cannot read."""

    @abstractmethod
    def load(self, state: State) -> Scheme:
        """The scheme that `Scheme.state` described, on the device of its tensors."""
