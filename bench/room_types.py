"""Types that a plug-in imports in an environment without this project.

They need numpy and Python 3.8. A plug-in imports this file as `bench_room`, or as `bench.types` and `bench.randomness`.
The contract is that of `bench.types`, and its documentation is there. Rows, states and scores are numpy arrays, or
torch tensors for a plug-in with `arrays = "torch"`. Rows are read-only.
"""

from __future__ import annotations

__figures__ = False

import dataclasses
import hashlib
import hmac
import importlib
import json
import math
import os
import sys
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

REPOSITORY = "repository"
"""The folder of an environment with authors' code, beside that of its files."""
Array = Any
"""A numpy array, or a torch tensor for a plug-in with `arrays = "torch"`."""
State = Mapping[str, Array]


class NotApplicable(Exception):  # noqa: N818  (an outcome, not an error)
    """A senseless pairing, with the reason."""


class ContractError(Exception):
    """A plug-in broke the contract; the text says expected and actual values."""


class OutsideError(Exception):
    """Another process failed with an error of its own kind, named first."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels and people; see `bench.contract.dataset.Dataset`."""

    name: str
    samples: Array
    labels: Optional[Array]
    subjects: Optional[Array]
    findings: Tuple[str, ...]
    exclusive: bool
    shareable: bool

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, rows: Array) -> Dataset:
        """The given rows (indices) as a new data set."""
        parts: Dict[str, Any] = {name: getattr(self, name) for name in ("samples", "labels", "subjects")}
        parts = {name: None if part is None else part[rows] for name, part in parts.items()}
        return dataclasses.replace(self, **parts)


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """Released rows with labels and links; see `bench.contract.dataset.Release`."""

    samples: Array
    labels: Optional[Array]
    links: Optional[Array]
    primary: Optional[Array] = None
    generator: Any = None

    def __len__(self) -> int:
        return len(self.samples)


def paired(samples: Array, labels: Optional[Array]) -> Release:
    """A release in which raw row i became released row i."""
    rows = np.arange(len(samples))
    return Release(samples, labels, np.stack((rows, rows), axis=1))


@dataclasses.dataclass(frozen=True)
class PrivacyClaim:
    """A differential-privacy claim; see `bench.contract.plugin.PrivacyClaim`."""

    unit: str
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: Optional[float] = None
    neighbours: str = "replaced"
    units: int = 1
    family: str = "any"
    sampling_rate: Optional[float] = None
    steps: Optional[int] = None


class Stream:
    """Secret random numbers in order: SHAKE-256 of a key and a counter.

    Its numbers differ from those of `bench.randomness`.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._count = key, 0

    def _words(self, shape: Sequence[int]) -> Array:
        self._count += 1
        name = self._key + self._count.to_bytes(8, "big")
        drawn = hashlib.shake_256(name).digest(8 * int(np.prod(shape, dtype=np.int64)))
        return np.frombuffer(drawn, dtype="<u8").reshape(shape)

    def uniform(self, *shape: int) -> Array:
        """float64: odd multiples of 2^-54 in (0, 1)."""
        return ((self._words(shape) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    def integers(self, below: int, *shape: int) -> Array:
        """int64, uniform below `below`, which is at most 2^32; bias below 2^-31."""
        if not 1 <= below <= 1 << 32:
            raise ValueError("below must be from 1 to 2^32, got {}".format(below))
        return (self._words(shape) % np.uint64(below)).astype(np.int64)

    def permutation(self, n: int) -> Array:
        """(n,) int64: 0 .. n - 1 in random order."""
        return np.argsort(self._words((n,)), kind="stable")

    def normal(self, *shape: int) -> Array:
        """float64, standard normal; not for noise of a claim."""
        return np.sqrt(-2 * np.log(self.uniform(*shape))) * np.cos(2 * math.pi * self.uniform(*shape))


@dataclasses.dataclass(frozen=True)
class Secret:
    """32 secret bytes; `derive` gives the same children as `bench.randomness.Secret`."""

    content: bytes = dataclasses.field(repr=False)

    @classmethod
    def of_seed(cls, seed: int, *names: Union[str, int]) -> Secret:
        """A simulated secret; the seed determines it."""
        return cls(hashlib.sha256(b"simulated" + json.dumps((seed, *names)).encode()).digest())

    @classmethod
    def load(cls, state: Array) -> Secret:
        """The secret that `tensor` gave."""
        return cls(bytes(state.tolist()))

    def tensor(self) -> Array:
        """uint8 (32,), for `Key.state`."""
        return np.frombuffer(self.content, dtype=np.uint8).copy()

    def derive(self, *names: Union[str, int]) -> Secret:
        """Another secret, by name (HKDF-Expand, RFC 5869), revealing no other one."""
        about = b"veil-bench secret" + json.dumps(names).encode()
        return Secret(hmac.new(self.content, about + b"\x01", hashlib.sha256).digest())

    def stream(self, *names: Union[str, int]) -> Stream:
        """The stream of that name, from its beginning."""
        return Stream(self.derive("stream", *names).content)

    def bound_to(self, samples: Array) -> Secret:
        """Another secret for every content, shape and dtype of `samples`."""
        rows = np.ascontiguousarray(samples)
        tag = hmac.new(self.derive("content").content, rows.tobytes(), hashlib.sha256).hexdigest()
        return self.derive("bound", str(rows.dtype), *rows.shape, tag)


class Plugin:
    """The base of all plug-ins: frozen dataclasses with parameters as fields."""

    presets: Mapping[str, Mapping[str, Any]] = {}
    requires = "nothing beyond its own environment"
    needs_public = True
    uses_labels = False
    arrays = "numpy"


class Method(Plugin):
    """A method: `fit(public, seed)` and `load(state)` give a `Scheme`; see `bench.contract.method`."""

    claims = "no formal guarantee"
    needs_labels = encodes_labels = uses_subjects = needs_subjects = equal_classes = False
    unlearned = frozenset()  # type: frozenset[str]
    sides: Mapping[str, int] = {}


class Scheme:
    """A method's public part: `sample_key(secret)` and `load_key(state)` give a `Key`."""

    def state(self) -> State:
        """Learned arrays: `Method.load(state)` gives an equal scheme. Default: none."""
        return {}

    def claim(self) -> Optional[PrivacyClaim]:
        """The formal guarantee. Default: none."""
        return None

    def mechanism(self) -> Any:
        """The noise, as a `Mechanism`. Default: none."""
        return None

    def accounts(self, rows: int) -> Mapping[str, float]:
        """Epsilon of a release of so many rows by accountant. Default: none."""
        return {}

    def notes(self) -> Mapping[str, Any]:
        """Notes for the record on the scheme. Default: none."""
        return {}

    def load_generator(self, state: State) -> Any:
        """The generator that `Generator.state` described."""
        raise NotApplicable("{} publishes no generator".format(type(self).__name__))


class Key:
    """An owner's secret: `release(private)` gives a `Release`, `state()` arrays for `Scheme.load_key`."""

    def query(self, samples: Array) -> Array:
        """New images for Bob's model. Default: unchanged."""
        return samples

    def decode(self, scores: Array) -> Array:
        """Bob's predictions as real classes. Default: unchanged."""
        return scores

    def classifier(self, private: Dataset) -> Optional[Callable[[Array], Array]]:
        """A published classifier. Default: none."""
        return None


class Generator:
    """A published generator: `sample(count, seed)` gives a `Release`, `state()` arrays."""


class Mechanism:
    """Laplace noise: `scale` (d,), `locate(data)` and `observe(release)`; see `bench.contract.mechanism`.

    The judge computes densities and noise, unless `log_density`, `noise` and `stopped` are here.
    """

    exact = rowwise = True
    fence = None

    def witnesses(self, like: Dataset) -> Sequence[Tuple[Dataset, Dataset]]:
        """Pairs of inputs with codes as far apart as possible. Default: none."""
        return ()


class Keyless(Method, Scheme, Key):
    """A method without training and keys: a plug-in writes `transform(samples)` alone."""

    needs_public = False

    def release(self, private: Dataset) -> Release:
        """Transformed rows, labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: Array) -> Array:
        """Transformed rows, in order."""
        return getattr(self, "transform")(samples)  # noqa: B009  (the plug-in's)

    def fit(self, *given: Any) -> Keyless:
        """Itself: nothing is learned, and nothing is secret."""
        return self

    load = sample_key = load_key = fit


@dataclasses.dataclass(frozen=True, eq=False)
class View:
    """Eve's knowledge before she sees the release; see `bench.contract.attack.View`."""

    public: Dataset
    scheme: Any
    candidates: Dataset
    control: Dataset
    trained: int = 0
    profile: str = "same-image"
    known: Optional[Dataset] = None
    queries: int = 0


class Attack(Plugin):
    """An attack: `fit(view, seed)` gives an `Attacker`; see `bench.contract.attack`."""

    scores = "pairs"
    learns = False


@dataclasses.dataclass(frozen=True)
class LearningCurve:
    """One training of an attack; see `bench.contract.learning_curve.LearningCurve`."""

    figure: str
    points: Sequence[Tuple[int, float]]
    converged: bool
    reason: str
    part: str = ""


class Attacker:
    """A trained attack: `score(release)` gives `PairScores`, or `membership(release)` scores (n,)."""

    def score_knowing(self, release: Release, raw: Dataset, released: Release) -> PairScores:
        """Scores of an Eve who knows pairs; by default `score`."""
        scores: PairScores = getattr(self, "score")(release)  # noqa: B009  (the plug-in's)
        return scores

    def queries(self, budget: int) -> Optional[Array]:
        """Images to encode; by default None, for control rows."""
        return None

    def notes(self) -> Mapping[str, Any]:
        """Notes for the record. Default: none."""
        return {}

    def learning(self) -> Sequence[LearningCurve]:
        """The curve of each training. Default: none, nothing was trained."""
        return []


class PairScores:
    """Scores (n, m) of pairs; higher means likelier equal."""

    def __init__(self, scores: Array) -> None:
        self.scores, self.shape, self.factors = scores, tuple(scores.shape), None

    def block(self, rows: slice, cols: slice) -> Array:
        """Scores of a block, float32 or float64."""
        return self.scores[rows, cols]


# Code of a paper's authors, which an adapter runs.


def repository(adapter: str) -> str:
    """The folder of authors' code beside an adapter.

    Sandboxes may only read it.

    Args:
        adapter: The adapter's `__file__`.

    Raises:
        ValueError: It was not added with a repository.
    """
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(adapter))), REPOSITORY)
    if not os.path.isdir(folder):
        name = os.path.basename(adapter)
        raise ValueError("{0} runs its authors' code: `bench plugin add {0} --repo CHECKOUT`".format(name))
    return folder


def authors_module(adapter: str, name: str, folder: str = "", arguments: Sequence[str] = ()) -> Any:
    """A module of authors' code, imported as a started script.

    Args:
        adapter: The adapter's `__file__`.
        name: Of the module, as their own code imports it.
        folder: The folder of the repository that their code imports from; "" for its top.
        arguments: Of the command line, which scripts read when they are imported.

    Raises:
        ValueError: It cannot be imported, or another module has its name; the text says what to do.
    """
    root = os.path.join(repository(adapter), folder).rstrip(os.sep)
    if root not in sys.path:
        sys.path.insert(0, root)
    before, sys.argv = sys.argv, ["{}.py".format(name), *arguments]
    try:
        module = importlib.import_module(name)
    except (ImportError, SystemExit) as error:
        raise ValueError(
            "the authors' {} cannot be imported ({}: {}): name a package that it needs after the adapter, or state a "
            "patch of the line".format(name, type(error).__name__, error)
        ) from error
    finally:
        sys.argv = before
    place = os.path.realpath(getattr(module, "__file__", None) or os.sep)
    if not place.startswith(root + os.sep):
        raise ValueError("the name {} leads to {}, not to the authors' code".format(name, place))
    return module


# In a room, its host puts its own functions in the place of these.


def stage(name: str) -> None:
    """Begin a stage; a later failure is recorded under its name."""


def report(what: str, done: int, total: int) -> None:
    """Report that `done` of `total` steps of the stage are done."""


def keep(arrays: State) -> None:
    """Keep the arrays of an unfinished `fit` in place of earlier ones."""


def kept() -> Optional[Dict[str, Array]]:
    """Numpy arrays that an interrupted `fit` kept last; None if none."""
    return None
