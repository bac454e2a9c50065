"""Proxy of an attack in Eve's process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import torch

from bench.contract.seal import ContractError
from bench.isolation.method_proxy import MethodProxy
from bench.isolation.remote_method import RemoteScheme
from bench.isolation.room import Room
from bench.isolation.rpc_codec import Handle, Learned, Value, notes, tensor
from bench.isolation.tenant import Tenant
from bench.memory.rows import Rows, rows_at
from bench.pairs.score_blocks import all_products
from bench.types import Attack, Attacker, Dataset, LearningCurve, NotApplicable, PairScores, Release, View

SAID = (
    "name", "source", "requires", "presets", "scores", "knowledge", "uses_labels", "learns", "trainings", "relinks",
)  # fmt: skip


class RemoteAttack(Attack):
    """The attack `plugin`, which trains and scores in a room.

    Args:
        plugin: The attack as built here, for what it says of itself.
        tenant: The room to work in. Each `fit` has a new room, which ends with the attacker's `close`; the first
            opens at once, so that its process starts while the judge opens the data.
    """

    def __init__(self, plugin: Attack, tenant: Tenant) -> None:
        for name in SAID:
            setattr(self, name, getattr(plugin, name))
        self.tenant = tenant
        self.room, self._used = Room(tenant), False
        self._proxy: MethodProxy | None = None

    def close(self) -> None:
        """End its process, and that of the method which ran for it."""
        self.room.close()
        self.tenant.rooms.rest()
        if self._proxy is not None:
            self._proxy.close()

    def fit(self, view: View, seed: int) -> RemoteAttacker:
        """Train in Eve's process, which gets the public part of the scheme."""
        if not isinstance(view.scheme, RemoteScheme):
            raise TypeError(f"a scheme must be able to travel to Eve's process, got {type(view.scheme).__name__}")
        if self._used:
            self.close()
            self.room = Room(self.tenant)
        self._used = True
        theirs = view.scheme.method.tenant.rooms
        if self.tenant.rooms.takes_turns and theirs.takes_turns:  # one group, or one would wait for the other to end
            self.tenant = replace(self.tenant, rooms=theirs)
        self.tenant.rooms.enter("release")  # before it knows a private row
        self.tenant.rooms.admit(self.room)
        # An environment of another author loads no scheme: its packages could give other figures.
        alone = self.tenant.environment is not None
        learned = Learned(None, view.scheme.learned) if alone else view.scheme.travelling
        self._proxy = self.room.proxy = (
            MethodProxy(view.scheme, pairs=self.scores == "pairs") if learned.method is None else None
        )
        known = view.public, learned, view.candidates, view.control
        more: tuple[Value, ...] = seed, view.trained, view.profile, view.known, view.queries
        if alone and view.other is not None:
            raise NotApplicable(f"{self.name} is another author's, and is given the scheme of one method only")
        if view.other is not None:
            more = (*more, cast(RemoteScheme, view.other).travelling)
        result = self.room.ask(None, "fit", *known, *more)
        if not isinstance(result, Handle) or result.kind != "Attacker":
            raise ContractError(f"{self.name} must give an Attacker when it is fitted")
        return RemoteAttacker(self.room, result, self._proxy)


class RemoteAttacker(Attacker):
    """An attacker of Eve's process."""

    def __init__(self, room: Room, handle: Handle, proxy: MethodProxy | None) -> None:
        self._room, self._handle, self._proxy = room, handle, proxy

    def score(self, sealed: Release) -> RemoteScores:
        """Scores in Eve's process; blocks are fetched when read."""
        return self._scores("score", sealed)

    def score_knowing(self, sealed: Release, raw: Dataset, released: Release) -> RemoteScores:
        """Scores in Eve's process, which gets the known pairs."""
        return self._scores("score_knowing", sealed, raw, replace(released, links=None, primary=None))

    def _scores(self, what: str, sealed: Release, *known: Value) -> RemoteScores:
        result = self._room.ask(self._handle, what, replace(sealed, links=None, primary=None), *known)
        if not isinstance(result, Handle) or result.kind != "PairScores":
            raise ContractError("an attacker must give PairScores")
        return RemoteScores(self._room, result)

    def queries(self, budget: int) -> torch.Tensor | None:
        """As the attacker chooses."""
        result = self._room.ask(self._handle, "queries", budget)
        return None if result is None else tensor(result, "queries")

    def membership(self, sealed: Release) -> torch.Tensor:
        """As the attacker scores them."""
        return tensor(
            self._room.ask(self._handle, "membership", replace(sealed, links=None, primary=None)), "membership scores"
        )

    @property
    def asked(self) -> bool:
        """True if it has asked another author's method for releases."""
        return self._proxy is not None and self._proxy.asked

    def notes(self) -> Mapping[str, int | float | str]:
        """As the attacker says; and its calls of another author's method."""
        said = notes(self._room.ask(self._handle, "notes"))
        return said if self._proxy is None else {**said, **self._proxy.notes()}

    def learning(self) -> Sequence[LearningCurve]:
        """As the attacker says."""
        said = self._room.ask(self._handle, "learning")
        if not isinstance(said, Sequence) or not all(isinstance(curve, LearningCurve) for curve in said):
            raise ContractError("an attacker must give its learning as a sequence of LearningCurve")
        return cast("Sequence[LearningCurve]", said)


class RemoteScores(PairScores):
    """Scores in Eve's process, which the judge reads in blocks, in order."""

    def __init__(self, room: Room, handle: Handle) -> None:
        self._room, self._handle = room, handle
        shape = room.ask(handle, "shape")
        if not (isinstance(shape, Sequence) and len(shape) == 2 and all(isinstance(side, int) for side in shape)):
            raise ContractError("scores must have a shape (n, m)")
        self.shape = cast("tuple[int, int]", tuple(shape))
        self._factors = self._read_factors(room.ask(handle, "factors"))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """A block of scores; computed here if factors came."""
        if self._factors is not None and isinstance(self._factors[0], Rows):
            a, b = self._factors
            return all_products(rows_at(a, rows), rows_at(b, cols))
        result = tensor(self._room.ask(self._handle, "block", *_ends(rows), *_ends(cols)), "a block of scores")
        shape = tuple(len(range(*part.indices(side))) for part, side in zip((rows, cols), self.shape, strict=True))
        if tuple(result.shape) != shape:
            raise ContractError(f"a block of scores must have shape {shape}, got {tuple(result.shape)}")
        return result

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """As the scores say."""
        return self._factors

    @staticmethod
    def _read_factors(result: Value) -> tuple[torch.Tensor, torch.Tensor] | None:
        if result is None:
            return None
        if not isinstance(result, Sequence) or len(result) != 2:
            raise ContractError("factors of scores must be two tensors or None")
        a, b = (tensor(part, "a factor of scores") for part in result)
        return a, b


def _ends(part: slice) -> tuple[int, int]:
    return int(part.start), int(part.stop)
