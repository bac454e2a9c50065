"""The contract between the harness and its plug-ins: plain frozen data, and five small abstract classes.

Letters mean the same everywhere: n raw rows, m released rows, k classes or findings, p links, d code width.
A plug-in computes; the harness splits, times, checks, shuffles, judges and records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from bench.generator import Generator
    from bench.mechanism import Mechanism

Parameter = int | float | str | bool | None
State = Mapping[str, Tensor]
Classifier = Callable[[Tensor], Tensor]  # raw rows (n, ...) to scores (n, k), higher is likelier
Role = Literal["hides nothing", "keeps nothing", "remembers its rows", "forgets its rows"]
E = TypeVar("E", contravariant=True)


class NotApplicable(Exception):  # noqa: N818  (an outcome, not an error)
    """Raised when a pairing makes no sense (say, guesswork for a release without links); the text is the reason."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one kind with their labels and the people they show.

    Args:
        name: Where the rows come from, for messages and records.
        samples: Images (n, c, h, w), float32 in [0, 1]; or a table (n, d), float32.
        labels: (n, k) float32: 1 yes, 0 no, between them for mixed rows, NaN unknown or withheld. None where hidden.
        subjects: (n,) int64, one number a person. None where nobody knows.
        findings: The k names of the label columns.
        exclusive: True when each row has exactly one of the k classes.
        shareable: False for data under a use agreement: no pixel, path or identifier may leave this machine.
    """

    name: str
    samples: Tensor
    labels: Tensor | None
    subjects: Tensor | None
    findings: tuple[str, ...]
    exclusive: bool
    shareable: bool

    def __post_init__(self) -> None:
        for what, tensor in (("labels", self.labels), ("subjects", self.subjects)):
            if tensor is not None and len(tensor) != len(self.samples):
                raise ValueError(
                    f"{what} must have one row per sample: expected {len(self.samples)}, got {len(tensor)}"
                )
        if self.labels is not None and self.labels.shape[1:] != (len(self.findings),):
            raise ValueError(f"labels must have {len(self.findings)} columns, got shape {tuple(self.labels.shape)}")

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, rows: Tensor) -> Dataset:
        """The given rows (int64 indices) as a new data set."""
        return replace(
            self,
            samples=self.samples[rows],
            labels=None if self.labels is None else self.labels[rows],
            subjects=None if self.subjects is None else self.subjects[rows],
        )

    def to(self, device: torch.device) -> Dataset:
        """The same data set with its tensors on `device`."""
        return replace(
            self,
            samples=self.samples.to(device),
            labels=None if self.labels is None else self.labels.to(device),
            subjects=None if self.subjects is None else self.subjects.to(device),
        )


@dataclass(frozen=True, eq=False)
class Release:
    """What a data owner publishes.

    Args:
        samples: (m, ...) float32: images (m, c, h, w) or vectors (m, d).
        labels: (m, k) float32 as in `Dataset`, encoded if the method encodes labels; None if none are released.
        links: (p, 2) int64: raw row, released row. Which person stands where; the harness keeps this from attackers.
            None where no raw row stands in a released row (generative methods).
        primary: (p,) bool beside the links, where several raw rows are mixed into one: the row that the released one
            was made for. None where a released row has no such row, or only one.
        generator: What is published beside the rows, or in their place (then the rows are one draw from it); None where
            nothing is.
    """

    samples: Tensor
    labels: Tensor | None
    links: Tensor | None
    primary: Tensor | None = None
    generator: Generator | None = None

    def __len__(self) -> int:
        return len(self.samples)


def paired(samples: Tensor, labels: Tensor | None) -> Release:
    """A release in which raw row i became released row i."""
    rows = torch.arange(len(samples), device=samples.device)
    return Release(samples, labels, torch.stack((rows, rows), dim=1))


@dataclass(frozen=True)
class PrivacyClaim:
    """A differential-privacy claim as data, so that claimed, derived and measured figures stand side by side.

    Args:
        unit: What one neighbouring change alters.
        epsilon: The bound that the method's authors (paper or code) state; infinity where no finite bound holds.
        delta: The claimed failure probability, in [0, 1].
        assumptions: What must be true for the claim to hold, in one sentence.
        basis: Where the claim comes from (paper and equation, or derivation), and how the derived bound follows.
        derived: The bound that follows from the mechanism as it runs here, with the same delta; infinity where none
            does. None stands for the claimed one.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: float | None = None

    def __post_init__(self) -> None:
        for what, bound in (("epsilon", self.epsilon), ("derived", self.derived)):
            if bound is not None and not bound > 0:
                raise ValueError(f"{what} must be positive, got {bound}")
        if not 0 <= self.delta <= 1:
            raise ValueError(f"delta must be in [0, 1], got {self.delta}")


class Key(ABC):
    """One data owner's secret: turns her raw rows into a release."""

    @abstractmethod
    def release(self, private: Dataset) -> Release:
        """The released form of `private`; its tensors stay untouched, row order is kept (the harness shuffles)."""

    def query(self, samples: Tensor, labels: Tensor | None = None) -> Tensor:
        """How new images (n, c, h, w) reach Bob's model. Default: as they are.

        `labels` (n, k) come only to methods that declare `uses_labels`.
        """
        return samples

    def decode(self, scores: Tensor) -> Tensor:
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
    def sample_key(self, seed: int) -> Key:
        """A fresh key; the same seed gives the same key."""

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

    def notes(self) -> Mapping[str, int | float | str]:
        """What a record should say of the fitted scheme (bits per dimension, ...). Default: nothing."""
        return {}


class Plugin(ABC):
    """What every method and attack carries. Plug-ins are frozen dataclasses; their fields are their parameters.

    `presets` maps a preset's name to parameters that size the plug-in for it; the command line wins over them.
    `requires` says what must be installed, downloaded or at hand.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {}
    requires: ClassVar[str] = "nothing beyond this project"


class Method(Plugin):
    """An obfuscation method: fits what is public, then hands out keys.

    `uses_labels` says that released samples depend on labels (conditional flows); only then does `Key.query` see any.
    `needs_labels` says that only the release does (rows grouped or modelled class by class). Attackers of both see the
    labels too, for without them they could not simulate a release.
    `claims` is its formal guarantee in a sentence; the figure for given data is `Scheme.claim`. `role` marks the
    reference methods that every attack is held against (two for pairs, two for membership). `unlearned` names
    parameters that only `load` reads: what `fit` learns is shared by methods that differ in these alone (the harness
    fits with them at their defaults).
    """

    claims: ClassVar[str] = "no formal guarantee"
    role: ClassVar[Role | None] = None

    uses_labels: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    unlearned: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Scheme:
        """Train on public data only. Raises NotApplicable where the method cannot work on such rows."""

    @abstractmethod
    def load(self, state: State) -> Scheme:
        """The scheme that `Scheme.state` described, on the device of its tensors."""


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
    def block(self, rows: slice, cols: slice) -> Tensor:
        """Scores of a block, float32 or float64. The same pair gives the same bits whatever the block."""

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """Rows (n, d) and (m, d) whose inner products are the scores; None (the default) where there are none.

        Float64 multiples of 2^-26, no row longer than 1 + 2^-10, so that float64 products of them are exact in any
        order. They spare the judge half of the reading; `bench.nets.cosine.CosineScores` has them.
        """
        return None


class Attacker(ABC):  # noqa: B024  (an attacker overrides whichever of the two it can do)
    """A trained attack. It only scores; the harness judges."""

    def score(self, sealed: Release) -> PairScores:
        """Scores of all (candidate, released) pairs for a shuffled release without links."""
        raise NotApplicable(f"{type(self).__name__} does not score pairs")

    def membership(self, sealed: Release) -> Tensor:
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


@dataclass(frozen=True)
class Score:
    """One figure with its uncertainty.

    Args:
        value: The figure.
        low, high: 95 % interval; None where none can be given.
        n: How many rows (or grid rows, or repeats) stand behind it.
        null: What chance gives, where known; null_low and null_high its 95 % interval.
        p: Probability under chance of a figure at least so far from it (two-sided); None where unknown.
        parts: The figure per finding, class or level, where there are several.
        note: How the interval came about, or why there is none.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    parts: Mapping[str, Score] = field(default_factory=dict)
    note: str = ""


class Metric(ABC, Generic[E]):
    """Turns evidence of one kind into a Score. `better` says which direction the data owner wants.

    `on_request` metrics, which cost much, are computed only where they are named; those that are `for_features` also
    where rows are scored in a feature space.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]]
    source: ClassVar[str]
    on_request: ClassVar[bool] = False
    for_features: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, evidence: E) -> Score:
        """The figure. Raises NotApplicable where the evidence cannot bear it."""
