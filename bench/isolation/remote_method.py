"""Proxies of a method and its objects in the owner's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, cast

import torch

from bench.checkpoint import checkpoint_folder
from bench.contract.seal import ContractError
from bench.isolation.call_shape import Call, CallShape, CellRows, UnlinkedError
from bench.isolation.query_noise import noisy
from bench.isolation.room import Room
from bench.isolation.room_folder import KeptTraining
from bench.isolation.room_groups import Part
from bench.isolation.rpc_codec import Handle, Learned, Line, RefusedError, Value, handle_of, notes, tensor, tensors
from bench.isolation.simulations import Simulations
from bench.isolation.tenant import Tenant
from bench.plugins.configured import configure
from bench.plugins.spec import parse
from bench.plugins.third_party import is_outside
from bench.randomness import Secret
from bench.types import (
    Classifier,
    Dataset,
    Generator,
    Key,
    Mechanism,
    Method,
    NotApplicable,
    PrivacyClaim,
    PrivateStep,
    Release,
    Scheme,
    State,
)


class RemoteMechanism(Mechanism):
    """A mechanism in the owner's process, called through `ask`.

    Densities and noise that it does not compute itself are computed here, from its scale and fence.
    """

    def __init__(self, ask: Callable[..., Value]) -> None:
        self._ask = ask
        self.exact, self.rowwise = bool(self._ask("exact")), bool(self._ask("rowwise"))

    @cached_property
    def scale(self) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("scale"), "a scale")

    @cached_property
    def fence(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """As the mechanism says."""
        answer = self._ask("fence")
        if answer is None:
            return None
        low, high = (tensor(end, "an end of a fence") for end in cast("Sequence[Value]", answer))
        return low, high

    def locate(self, data: Dataset) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("locate", data), "codes")

    def observe(self, release: Release) -> torch.Tensor:
        """As the mechanism says."""
        return tensor(self._ask("observe", release), "codes")

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """As the mechanism says."""
        pairs = [tuple(cast("Sequence[Value]", pair)) for pair in cast("Sequence[Value]", self._ask("witnesses", like))]
        if not all(len(pair) == 2 and all(isinstance(part, Dataset) for part in pair) for pair in pairs):
            raise ContractError("witnesses must be pairs of data sets")
        return cast("Sequence[tuple[Dataset, Dataset]]", pairs)

    def log_density(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        if "log_density" not in self._own:
            return super().log_density(located, observed)
        return tensor(self._ask("log_density", located, observed), "log densities")

    def noise(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        if "noise" not in self._own:
            return super().noise(located, observed)
        return tensor(self._ask("noise", located, observed), "noise")

    def stopped(self, observed: torch.Tensor) -> torch.Tensor:
        """As the mechanism says."""
        if "stopped" not in self._own:
            return super().stopped(observed)
        return tensor(self._ask("stopped", observed), "stopped numbers")

    @cached_property
    def _own(self) -> list[str]:
        return _names(self._ask("own"))


SAID = (
    "name", "source", "requires", "presets", "claims", "role", "uses_labels", "needs_labels", "encodes_labels",
    "uses_subjects", "needs_subjects", "equal_classes",
)  # fmt: skip
"""Attributes of a method that its proxy repeats."""


MadeBy = Literal["sample_key", "load_key"]
"""What of a scheme makes a key."""


@dataclass(frozen=True, eq=False)
class Held:
    """Rows kept in a method's process, and their call; None if unchanged."""

    given: Dataset
    cell: CellRows | None
    line: Line
    handle: Handle
    call: Call | None


@dataclass(frozen=True, eq=False)
class KeptRelease:
    """A release that stays in the owner's process, and its call."""

    handle: Handle
    call: Call | None


class RemoteMethod(Method):
    """The method `plugin`, whose work is done in rooms opened on demand.

    None that has fitted releases, that which has seen private rows encodes no query, and neither decodes predictions.

    Args:
        plugin: The method as built here, for what it says of itself.
        tenant: The room to work in.
        shape: The form of its calls; None for methods of this project, which get rows as they are.
        for_eve: Its rooms answer an attacker, who knows private rows, and live beside hers: she would wait forever for
            a room that waits until hers has ended. Each still does one part only, as an owner's.
    """

    def __init__(
        self, plugin: Method, tenant: Tenant, shape: CallShape | None = None, *, for_eve: bool = False
    ) -> None:
        for name in SAID:
            setattr(self, name, getattr(plugin, name))
        self.tenant, self.shape, self._for_eve = tenant, shape, for_eve
        self._releases = plugin.releases
        self._rooms: dict[Part, Room] = {}
        self._held: Held | None = None
        self.own: Sequence[str] | None = None  # of keys, once known (`RemoteScheme.own`)

    @property
    def releases(self) -> int | None:
        """As the method says."""
        return self._releases

    def room(self, part: Part = "release") -> Room:
        """The owner's process for a part; opened anew after it died."""
        if part != "fit":
            self._end_fitting()
        if part not in self._rooms or not self._rooms[part].open:
            beside: Part = "release" if self._for_eve else part
            self._rooms[part] = self.tenant.rooms.open(beside, lambda: Room(self.tenant))
        return self._rooms[part]

    def line(self, part: Part = "release") -> Line:
        """The connection to the owner's process for a part."""
        return self.room(part)

    @property
    def speaker(self) -> Part:
        """The process to ask about a scheme: while alive, that which fitted."""
        return "fit" if "fit" in self._rooms else "release"

    def _end_fitting(self) -> None:
        if (room := self._rooms.pop("fit", None)) is not None:
            room.close()

    def close(self) -> None:
        """End the processes that there are."""
        for room in self._rooms.values():
            room.close()
        self._rooms.clear()
        self.tenant.rooms.rest()

    def again(self, *, shaped: bool = True, for_eve: bool = False) -> RemoteMethod:
        """The same method in other rooms; `shaped` keeps the form of calls."""
        method = RemoteMethod(self, self.tenant, self.shape if shaped else None, for_eve=for_eve or self._for_eve)
        method.own = self.own
        return method

    def hold(self, rows: Dataset, cell: CellRows | None = None) -> Held:
        """Rows kept in the owner's process; the same rows are sent once."""
        line, last = self.line(), self._held
        if last is not None and last.line is line and last.given is rows and last.cell is cell:
            return last
        call = None if self.shape is None else self.shape.call(rows, cell)
        shown = rows if call is None else call.shown
        if last is not None and last.line is line and last.call is not None and last.call.shown is shown:
            self._held = replace(last, given=rows, cell=cell, call=call)
        else:
            self._held = last = None  # those before go first
            self._held = Held(rows, cell, line, handle_of(line.ask(None, "hold", shown), "Dataset"), call)
        return self._held

    def fit(self, public: Dataset, seed: int) -> RemoteScheme:
        """Fit in a process that sees public rows only and never releases."""
        training = None if (place := checkpoint_folder()) is None else KeptTraining(place)
        self._end_fitting()
        fitting = self.room("fit")
        handle = handle_of(fitting.ask(None, "fit", public, seed, training=training), "Scheme")
        return RemoteScheme(self, tensors(fitting.ask(handle, "state")))

    def load(self, state: State) -> RemoteScheme:
        """The scheme, loaded in the owner's process on first use."""
        return RemoteScheme(self, state)


@dataclass(frozen=True, eq=False)
class RemoteScheme(Scheme):
    """A scheme of the owner's process.

    Args:
        method: Its method.
        learned: Its state.
        cell: Rows by which calls of another author's method are completed, as for an attacker; None for the owner's.
        simulations: Releases that an attacker gets in place of her own; None if she makes her own.
    """

    method: RemoteMethod
    learned: State
    cell: CellRows | None = None
    simulations: Simulations | None = None
    _handles: dict[Line, Handle] = field(default_factory=dict)

    def state(self) -> State:
        """The learned state."""
        return self.learned

    @property
    def travelling(self) -> Learned:
        """The scheme as sent to Eve, without code of other authors.

        Nor does she learn where a release by another tool lies, beside which the links may be.
        """
        spec = self.method.tenant.spec
        if self.method.releases is not None:
            spec = configure("methods", spec, self.method.tenant.preset).placeless
        return Learned(None if is_outside("methods", parse(spec)) else spec, self.learned)

    def sample_key(self, secret: Secret) -> RemoteKey:
        """A key of the owner's process."""
        shape = self.method.shape
        return RemoteKey(self, "sample_key", secret if shape is None else shape.key_secret(secret))

    def load_key(self, state: State) -> RemoteKey:
        """A key of the owner's process."""
        return RemoteKey(self, "load_key", state)

    def load_generator(self, state: State) -> RemoteGenerator:
        """A generator, which is looked at when it first draws rows."""
        return RemoteGenerator(self, state)

    def claim(self) -> PrivacyClaim | None:
        """As the scheme says."""
        answer = self._ask("claim")
        if answer is not None and not isinstance(answer, PrivacyClaim):
            raise ContractError(f"a claim must be a PrivacyClaim or None, got {type(answer).__name__}")
        return answer

    def accounts(self, rows: int) -> Mapping[str, float]:
        """As the scheme says."""
        return {name: float(epsilon) for name, epsilon in notes(self._ask("accounts", rows)).items()}

    def notes(self) -> Mapping[str, int | float | str]:
        """As the scheme says."""
        return notes(self._ask("notes"))

    def mechanism(self) -> RemoteMechanism | None:
        """The mechanism of the owner's process."""
        answer = self.ask(self.handle(), "mechanism")
        return None if answer is None else RemoteMechanism(partial(self.ask, handle_of(answer, "Mechanism")))

    def own(self) -> list[str]:
        """The functions of `OWN` that its keys override, by their own word.

        A key that leaves something as it is need not be asked for it, nor have a process for it.
        """
        key = self._ask("sample_key", self.sample_key(Secret.of_seed(0, "no key of anybody's")).of)
        return _names(self._ask("own", target=handle_of(key, "Key")))

    def handle(self, part: Part = "release") -> Handle:
        """The scheme in the process for that part."""
        line = self.method.line(part)
        if line not in self._handles:
            self._handles[line] = handle_of(line.ask(None, "load", self.learned), "Scheme")
        return self._handles[line]

    def _ask(self, what: str, *values: Value, target: Handle | None = None) -> Value:
        part = self.method.speaker
        return self.ask(target or self.handle(part), what, *values, part=part)

    def ask(self, target: Handle, what: str, *values: Value, part: Part = "release") -> Value:
        """Call an object of this scheme."""
        return self.method.line(part).ask(target, what, *values, generator=self.load_generator)


@dataclass(frozen=True, eq=False)
class RemoteKey(Key):
    """A key in three processes: for releases, for queries, for predictions.

    A process that has seen the private rows could answer for Bob, and one that has seen the queries as well.

    Args:
        scheme: Its scheme.
        made_by, of: How each process makes the key: `sample_key` of a secret, or `load_key` of a state.
    """

    scheme: RemoteScheme
    made_by: MadeBy
    of: Secret | State
    _handles: dict[Line, Handle] = field(default_factory=dict)

    def handle(self, part: Part = "release") -> Handle:
        """The key in the process for that part."""
        line = self.scheme.method.line(part)
        if line not in self._handles:
            made = self.scheme.ask(self.scheme.handle(part), self.made_by, self.of, part=part)
            handle, method = handle_of(made, "Key"), self.scheme.method
            own = _names(self.scheme.ask(handle, "own", part=part))
            if method.own is None:
                method.own = own
            if list(method.own) != own:
                raise ContractError(f"all keys must do the same by themselves: one does {method.own}, another {own}")
            self._handles[line] = handle
        return self._handles[line]

    def release(self, private: Dataset) -> Release:
        """The release from the owner's process, not yet checked."""
        try:
            return self.fetch(self.kept_release(private))
        except UnlinkedError:
            return RemoteKey(replace(self.scheme, cell=None), self.made_by, self.of).release(private)

    def hold(self, private: Dataset) -> Held:
        """Rows kept in the owner's process, as its method gets them."""
        return self.scheme.method.hold(private, self.scheme.cell)

    def kept_release(self, private: Dataset) -> KeptRelease:
        """A release that stays in the owner's process until it is fetched."""
        held = self.hold(private)
        try:
            return KeptRelease(handle_of(self.scheme.ask(self.handle(), "release", held.handle), "Release"), held.call)
        except NotApplicable as reason:  # of rows that are released for the sake of one attack alone, too
            raise RefusedError(str(reason)) from None

    def fetch(self, kept: KeptRelease) -> Release:
        """A kept release of the rows given, in their order."""
        found = self.scheme.ask(kept.handle, "fetch")
        if not isinstance(found, Release):
            raise ContractError(f"a key must release a Release, got {type(found).__name__}")
        return found if kept.call is None else kept.call.returned(found)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Encoded samples; unchanged if the key does not override `query`."""
        if "query" not in self.own("query"):
            return samples
        rows = self._for_bob(samples)
        return tensor(self.scheme.ask(self.handle("query"), "query", rows, part="query"), "a query")

    def _for_bob(self, samples: torch.Tensor) -> torch.Tensor:
        """Bob's rows as the method gets them; another author's with noise."""
        shape = self.scheme.method.shape
        return samples if shape is None else noisy(samples, shape.secret)

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Decoded scores; unchanged if the key does not override `decode`."""
        if "decode" not in self.own("decode"):
            return scores
        return tensor(self.scheme.ask(self.handle("decode"), "decode", scores, part="decode"), "decoded predictions")

    def classifier(self, private: Dataset) -> Classifier | None:
        """The classifier of the owner's process, or None."""
        if "classifier" not in self.own("release"):
            return None
        shape = self.scheme.method.shape
        rows = private if shape is None else shape.call(private, self.scheme.cell).shown
        answer = self.scheme.ask(self.handle(), "classifier", rows)
        if answer is None:
            return None
        handle = handle_of(answer, "Classifier")
        return lambda rows: tensor(self.scheme.ask(handle, "call", self._for_bob(rows)), "a classifier's scores")

    def private_steps(self, private: Dataset, probes: Dataset, see: Callable[[PrivateStep], None]) -> None:
        """As the method's own key shows them, in this process."""
        self._here().private_steps(private, probes, see)

    def canary_steps(self, like: Dataset, gradients: torch.Tensor, see: Callable[[PrivateStep], None]) -> None:
        """As the method's own key shows them, in this process."""
        self._here().canary_steps(like, gradients, see)

    def _here(self) -> Key:
        """This project's key once more, made in this process.

        Steps hold gradients of all probes, far more numbers than are sent between processes.
        """
        known = self.scheme.travelling
        if known.method is None:
            raise NotApplicable("steps of a private training are read from methods of this project alone")
        scheme = configure("methods", known.method, self.scheme.method.tenant.preset, here=True).plugin.load(
            known.state
        )
        return scheme.sample_key(self.of) if isinstance(self.of, Secret) else scheme.load_key(self.of)

    def state(self) -> State:
        """The secret."""
        return tensors(self.scheme.ask(self.handle(), "state"))

    def own(self, part: Part = "release") -> Sequence[str]:
        """As `RemoteScheme.own`, asked of this key if not known yet."""
        if self.scheme.method.own is None:
            self.handle(part)
        return self.scheme.method.own or ()


@dataclass(frozen=True, eq=False)
class RemoteGenerator(Generator):
    """A published generator, loaded in the owner's process."""

    scheme: RemoteScheme
    published: State

    def sample(self, count: int, seed: int) -> Release:
        """As the generator draws them."""
        answer = self.scheme.ask(self._handle, "sample", count, seed)
        if not isinstance(answer, Release):
            raise ContractError(f"a generator must draw a Release, got {type(answer).__name__}")
        return answer

    def state(self) -> State:
        """All that is published."""
        return self.published

    @cached_property
    def _handle(self) -> Handle:
        return handle_of(self.scheme.ask(self.scheme.handle(), "load_generator", self.published), "Generator")


def _names(found: Value) -> list[str]:
    return [str(name) for name in cast("Sequence[str]", found)] if isinstance(found, Sequence) else []
