"""A method in a process of its own, the owner's: what evaluators ask of schemes and keys is asked there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from torch import Tensor

from bench.contract.seal import ContractError
from bench.isolation.language import Handle, Learned, Value, notes, tensor, tensors
from bench.isolation.room import Room
from bench.isolation.tenant import Tenant
from bench.randomness import Secret
from bench.types import (
    Classifier,
    Dataset,
    Generator,
    Key,
    Mechanism,
    Method,
    PrivacyClaim,
    Release,
    Scheme,
    State,
)

SAID = ("name", "source", "requires", "presets", "claims", "role", "uses_labels", "needs_labels")
"""What a method says of itself that its stand-in repeats. (What `fit` does not read is dealt with where it runs.)"""


class RemoteMethod(Method):
    """The method `plugin`, whose work is done in a room that opens when it is first needed.

    Args:
        plugin: The method as built here, for what it says of itself.
        tenant: Where the work is done.
    """

    def __init__(self, plugin: Method, tenant: Tenant) -> None:
        for name in SAID:
            setattr(self, name, getattr(plugin, name))
        self.tenant = tenant
        self._room: Room | None = None
        self._held: tuple[Dataset, Handle] | None = None

    @property
    def room(self) -> Room:
        """The owner's process; after it has died, a new one."""
        if self._room is None or not self._room.open:
            self._room = Room(self.tenant)
        return self._room

    def close(self) -> None:
        """End the process, if there is one."""
        if self._room is not None:
            self._room.close()

    def hold(self, rows: Dataset) -> Handle:
        """Rows that the owner's process keeps; the same rows are handed over once."""
        if self._held is None or self._held[0] is not rows:
            self._held = (rows, _handle(self.room.ask(None, "hold", rows), "Dataset"))
        return self._held[1]

    def fit(self, public: Dataset, seed: int) -> RemoteScheme:
        """Fit in the owner's process, on public rows; no private ones are there yet."""
        handle = _handle(self.room.ask(None, "fit", public, seed), "Scheme")
        return RemoteScheme(self, tensors(self.room.ask(handle, "state")))

    def load(self, state: State) -> RemoteScheme:
        """The scheme, which the owner's process loads when it is first asked something."""
        return RemoteScheme(self, state)


@dataclass(frozen=True, eq=False)
class RemoteScheme(Scheme):
    """A scheme of the owner's process.

    Args:
        method: Its method.
        learned: Its state.
    """

    method: RemoteMethod
    learned: State

    def state(self) -> State:
        """What was learned."""
        return self.learned

    @property
    def travelling(self) -> Learned:
        """As it is handed to Eve."""
        return Learned(self.method.tenant.spec, self.learned)

    def sample_key(self, secret: Secret) -> RemoteKey:
        """A key of the owner's process."""
        return RemoteKey(self, _handle(self._ask("sample_key", secret), "Key"))

    def load_key(self, state: State) -> RemoteKey:
        """A key of the owner's process."""
        return RemoteKey(self, _handle(self._ask("load_key", state), "Key"))

    def load_generator(self, state: State) -> RemoteGenerator:
        """A generator, which is looked at when it first draws rows."""
        return RemoteGenerator(self, state)

    def claim(self) -> PrivacyClaim | None:
        """As the scheme says."""
        found = self._ask("claim")
        if found is not None and not isinstance(found, PrivacyClaim):
            raise ContractError(f"a claim must be a PrivacyClaim or None, got {type(found).__name__}")
        return found

    def notes(self) -> Mapping[str, int | float | str]:
        """As the scheme says."""
        return notes(self._ask("notes"))

    def mechanism(self) -> RemoteMechanism | None:
        """The mechanism of the owner's process."""
        found = self._ask("mechanism")
        return None if found is None else RemoteMechanism(self, _handle(found, "Mechanism"))

    @cached_property
    def _handle(self) -> Handle:
        return _handle(self.method.room.ask(None, "load", self.learned), "Scheme")

    def _ask(self, what: str, *values: Value) -> Value:
        return self.method.room.ask(self._handle, what, *values)

    def ask(self, whom: Handle, what: str, *values: Value) -> Value:
        """What an object of this scheme gives."""
        return self.method.room.ask(whom, what, *values, generator=self.load_generator)


@dataclass(frozen=True, eq=False)
class RemoteKey(Key):
    """A key of the owner's process."""

    scheme: RemoteScheme
    handle: Handle

    def release(self, private: Dataset) -> Release:
        """The release, as it came out of the owner's process; `bench.contract.seal.check` looks at it."""
        found = self.scheme.ask(self.handle, "release", private)
        if not isinstance(found, Release):
            raise ContractError(f"a key must release a Release, got {type(found).__name__}")
        return found

    def query(self, samples: Tensor) -> Tensor:
        """As the key encodes them."""
        return tensor(self.scheme.ask(self.handle, "query", samples), "a query")

    def decode(self, scores: Tensor) -> Tensor:
        """As the key decodes them."""
        return tensor(self.scheme.ask(self.handle, "decode", scores), "decoded predictions")

    def classifier(self, private: Dataset) -> Classifier | None:
        """The classifier of the owner's process."""
        found = self.scheme.ask(self.handle, "classifier", private)
        if found is None:
            return None
        handle = _handle(found, "Classifier")
        return lambda rows: tensor(self.scheme.ask(handle, "call", rows), "a classifier's scores")

    def state(self) -> State:
        """The secret."""
        return tensors(self.scheme.ask(self.handle, "state"))


@dataclass(frozen=True, eq=False)
class RemoteGenerator(Generator):
    """A published generator, loaded in the owner's process."""

    scheme: RemoteScheme
    published: State

    def sample(self, count: int, seed: int) -> Release:
        """As the generator draws them."""
        found = self.scheme.ask(self._handle, "sample", count, seed)
        if not isinstance(found, Release):
            raise ContractError(f"a generator must draw a Release, got {type(found).__name__}")
        return found

    def state(self) -> State:
        """All that is published."""
        return self.published

    @cached_property
    def _handle(self) -> Handle:
        return _handle(self.scheme._ask("load_generator", self.published), "Generator")


class RemoteMechanism(Mechanism):
    """A mechanism of the owner's process."""

    def __init__(self, scheme: RemoteScheme, handle: Handle) -> None:
        self._scheme, self._handle = scheme, handle
        self.exact, self.rowwise = bool(self._ask("exact")), bool(self._ask("rowwise"))

    @cached_property
    def scale(self) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("scale"), "a scale")

    @cached_property
    def fence(self) -> tuple[Tensor, Tensor] | None:
        """As the mechanism says."""
        found = self._ask("fence")
        if found is None:
            return None
        low, high = (tensor(end, "an end of a fence") for end in cast("Sequence[Value]", found))
        return low, high

    def locate(self, data: Dataset) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("locate", data), "codes")

    def observe(self, release: Release) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("observe", release), "codes")

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """As the mechanism says."""
        pairs = [tuple(cast("Sequence[Value]", pair)) for pair in cast("Sequence[Value]", self._ask("witnesses", like))]
        if not all(len(pair) == 2 and all(isinstance(part, Dataset) for part in pair) for pair in pairs):
            raise ContractError("witnesses must be pairs of data sets")
        return cast("Sequence[tuple[Dataset, Dataset]]", pairs)

    def log_density(self, located: Tensor, observed: Tensor) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("log_density", located, observed), "log densities")

    def noise(self, located: Tensor, observed: Tensor) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("noise", located, observed), "noise")

    def stopped(self, observed: Tensor) -> Tensor:
        """As the mechanism says."""
        return tensor(self._ask("stopped", observed), "stopped numbers")

    def _ask(self, what: str, *values: Value) -> Value:
        return self._scheme.ask(self._handle, what, *values)


def timed_release(key: Key, private: Dataset) -> Callable[[], int | None]:
    """A release to be timed: it gives the peak memory of an accelerator in bytes where only its process can see that.

    Rows are handed to the owner's process before, and the release stays there: neither way is timed.
    """
    if not isinstance(key, RemoteKey):
        return lambda: _nothing(key.release(private))
    method = key.scheme.method
    held = method.hold(private)
    return lambda: cast("int | None", method.room.ask(key.handle, "release and keep", held))


def _nothing(_: object) -> None:
    return None


def _handle(found: Value, kind: str) -> Handle:
    if not isinstance(found, Handle) or found.kind != kind:
        raise ContractError(f"a plug-in must give a {kind}, got {type(found).__name__}")
    return found
