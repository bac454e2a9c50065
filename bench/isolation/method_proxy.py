"""Proxy for another author's method when Eve calls its scheme.

A method's code in Eve's process could change her results, and would know that Eve calls it: it could show her another
scheme than the owner's. So her calls go to the judge, who passes them on to a room like the owner's. Methods of this
project are loaded in her process.

The judge gives every caller's rows one form (`bench.isolation.call_shape`). A process may still guess the caller by the
number of calls. So Eve's process is replaced after as many releases as an owner's makes, the first few times; and her
refusals and a sample of her releases are repeated in a fresh process that gets no other call. The k-th release is
repeated with probability 1/k: a method that cheats from the m-th of N releases on escapes with probability (m - 1)/N.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import Any

import torch

from bench.contract.seal import ContractError
from bench.isolation.remote_method import RemoteKey, RemoteMechanism, RemoteMethod, RemoteScheme
from bench.isolation.room_groups import Part
from bench.isolation.rpc_codec import ASKED, Generators, Handle, Line, UnlikeError, Value
from bench.isolation.simulations import SimulatedKey
from bench.rows.row_sets import same_but_rounding
from bench.types import Dataset, Generator, NotApplicable, Release

RENEWALS = 8
"""Processes that are replaced after as many releases as an owner's makes; the next stays."""
MOST_SAID = 4
"""Numbers of rows that a record names, the most frequent first."""
NO_KEYS = "simulations of the owner's form are releases under keys that the judge keeps"
FIRST = 1 << 32
"""The first number of an object of Eve's: no room numbers its own so high."""


class MethodProxy:
    """The judge's end: passes Eve's calls on to the method's rooms.

    Her keys are keys as the judge has them, so that the method gets the calls of an owner. Another process answers what
    an owner never asks (the mechanism, a generator), so that none that releases knows that Eve asks.

    Args:
        scheme: As the judge holds it, with the rows that complete her calls.
        pairs: Eve matches pairs, so a release without links counts as a refusal.
    """

    def __init__(self, scheme: RemoteScheme, *, pairs: bool) -> None:
        method = scheme.method
        self._pairs = pairs
        self._scheme = replace(method.again(for_eve=True).load(scheme.learned), cell=scheme.cell)
        self._beside = method.again(for_eve=True).load(scheme.learned)
        self._simulations = scheme.simulations
        self._objects: dict[int, object] = {}
        self._numbers = itertools.count(FIRST)
        self._fetched = 0
        self._called: Counter[str] = Counter()
        self._here, self._renewed = 0, 0
        self.refused = False
        """True if the method has refused Eve something since her last release."""

    def generator(self, state: Mapping[str, torch.Tensor]) -> Generator:
        """A release's generator, by its state."""
        return self._beside.load_generator(state)

    def ask(self, target: int | None, name: str, values: Sequence[Value]) -> Value:
        """Pass a call on. Raises as `bench.isolation.room.Room.ask` does.

        Raises:
            UnlikeError: A fresh process gives something else.
        """
        if target is None and name not in ("load", "hold"):
            raise ContractError(f"an attack may use the scheme that it knows, and not ask its method for {name}")
        callee = None if target is None else self._known(target)
        given = [self._known(value.number) if isinstance(value, Handle) else value for value in values]
        try:
            result, kind = self._asked(callee, name, given)
        except NotApplicable:
            self.refused = True
            raise
        return result if kind is None else self._kept(result, kind)

    def _asked(self, callee: object, name: str, values: Sequence[Any]) -> tuple[Any, str | None]:
        """The result of a call, and its kind if it stays here."""
        if callee is None:
            return (values[0], "Dataset") if name == "hold" else (self._scheme, "Scheme")
        if isinstance(callee, Release) and name == "fetch":
            self.refused = self._pairs and not (callee.links is not None and len(callee.links))
            return callee, None
        if isinstance(callee, RemoteKey):
            return self._asked_of_key(callee, name, values)
        if isinstance(callee, SimulatedKey):
            return self._asked_of_simulated(callee, name, values)
        if isinstance(callee, RemoteScheme):
            if self._simulations is not None and name == "sample_key":
                return SimulatedKey(self._simulations, self._simulations.number(values[0].content)), "Key"
            if self._simulations is not None and name == "load_key":
                raise NotApplicable(f"{NO_KEYS}: none is loaded from a state")
            if name in ("sample_key", "load_key"):
                return getattr(callee, name)(values[0]), "Key"
            callee = self._beside.handle()
        if callable(callee) and name == "call":
            return callee(*values), None
        if not isinstance(callee, Handle) or name not in ASKED.get(callee.kind, ()):
            raise ContractError(f"{name} of a {type(callee).__name__} may not be called")
        if callee.kind == "Mechanism" and name != "own":
            part = getattr(RemoteMechanism(partial(self._beside.ask, callee)), name)
            return part(*values) if callable(part) else part, None
        result = self._beside.ask(callee, name, *values)
        return result, result.kind if isinstance(result, Handle) else None

    def _asked_of_key(self, key: RemoteKey, name: str, values: Sequence[Any]) -> tuple[Any, str | None]:
        if name == "release":
            return self._released(key, values[0]), "Release"
        if name == "own":
            return list(key.own()), None
        if name == "classifier":
            classify = key.classifier(values[0])
            return classify, None if classify is None else "Classifier"
        if name in ("query", "decode", "state"):
            return getattr(key, name)(*values), None
        raise ContractError(f"{name} of a key may not be called")

    def _asked_of_simulated(self, key: SimulatedKey, name: str, values: Sequence[Any]) -> tuple[Any, str | None]:
        if name == "release":
            self._called[f"{len(values[0])} rows of the owner's call"] += 1
            return key.release(values[0]), "Release"
        if name == "own":
            return list(self._scheme.method.own or ()), None
        raise NotApplicable(f"{NO_KEYS}: none is asked for {name}")

    def _released(self, key: RemoteKey, rows: Dataset) -> Release:
        """A release for Eve, sometimes repeated in a fresh process."""
        self._called[self._numbers_of(rows)] += 1
        self._renew()
        try:
            found = key.release(rows)
        except NotApplicable as refusal:
            self._ask_again(key, rows, refusal)
            raise
        self._fetched += 1
        if SystemRandom().randrange(self._fetched) == 0:
            self._ask_again(key, rows, found)
        return found

    def _renew(self) -> None:
        """Replace a process that made as many releases as an owner's."""
        cell = self._scheme.cell
        if cell is not None and self._here >= cell.releases and self._renewed < RENEWALS:
            self._scheme.method.close()
            self._here, self._renewed = 0, self._renewed + 1
        self._here += 1

    def _numbers_of(self, rows: Dataset) -> str:
        """Rows of a call, for the record."""
        cell = self._scheme.cell
        if self._scheme.method.shape is None or cell is None or len(rows) == cell.rows:
            return f"{len(rows)} rows"
        if len(rows) > cell.rows:
            return f"{len(rows)} rows, more than the owner's {cell.rows}"
        return f"{len(rows)} rows, completed to {cell.rows} if it declares links"

    @property
    def asked(self) -> bool:
        """True if Eve has asked for releases."""
        return bool(self._called)

    def notes(self) -> dict[str, str]:
        """Numbers of rows that the method was called with, for the record."""
        said = [f"{count} x {rows}" for rows, count in self._called.most_common(MOST_SAID)]
        more = [] if len(self._called) <= MOST_SAID else [f"{len(self._called) - MOST_SAID} other numbers of rows"]
        return {"calls of the method": "; ".join([*said, *more]) or "none"}

    def _kept(self, result: object, kind: str) -> Handle:
        number = next(self._numbers)
        self._objects[number] = result
        return Handle(number, kind)

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop objects that Eve no longer uses."""
        for number in numbers:
            self._objects.pop(number, None)

    def _ask_again(self, key: RemoteKey, rows: Dataset, first: Release | NotApplicable) -> None:
        """Raise UnlikeError if a fresh process releases or refuses otherwise."""
        with closing(self._scheme.method.again()) as method:
            scheme = replace(method.load(self._scheme.learned), cell=self._scheme.cell)
            fresh = RemoteKey(scheme, key.made_by, key.of)
            again: Release | NotApplicable
            try:
                again = fresh.release(rows)
            except NotApplicable as refusal:
                again = refusal
            if not _alike(first, again):
                raise UnlikeError(
                    f"a method must do for Eve what it does for an owner: the same key and {len(rows)} rows gave her "
                    f"{_named(first)}, and an owner's process {_named(again)}"
                )

    def close(self) -> None:
        """End the processes."""
        self._objects.clear()
        self._scheme.method.close()
        self._beside.method.close()

    def _known(self, number: int) -> object:
        if number not in self._objects:
            raise ContractError("an attack asked for an object that it was not given")
        return self._objects[number]


def _alike(first: Release | NotApplicable, again: Release | NotApplicable) -> bool:
    """True if two processes give the same but for rounding."""
    if isinstance(first, NotApplicable) or isinstance(again, NotApplicable):
        return isinstance(first, NotApplicable) and isinstance(again, NotApplicable)
    parts = ("samples", "labels", "links", "primary")
    return all(same_but_rounding(getattr(first, part), getattr(again, part)) for part in parts)


def _named(result: Release | NotApplicable) -> str:
    return f"a refusal ({result})" if isinstance(result, NotApplicable) else f"a release of {len(result)} rows"


class KnownMethod(RemoteMethod):
    """Eve's end: a method whose calls all go to the judge.

    Args:
        line: The connection to the judge.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._rooms, self._held, self.own, self.shape, self._for_eve = {}, None, None, None, True

    def line(self, part: Part = "release") -> Line:
        """The connection to the judge."""
        return self._line


class JudgeLine:
    """A connection that sends every call to the judge.

    Args:
        ask: Sends a call and waits for its result.
    """

    open = True

    def __init__(self, ask: Callable[[Handle | None, str, Sequence[Value], Generators | None], Value]) -> None:
        self._ask = ask

    def ask(
        self, target: Handle | None, name: str, *values: Value, generator: Generators | None = None,
        training: object = None,
    ) -> Value:  # fmt: skip
        """As `bench.isolation.room.Room.ask`; nothing is fitted this way."""
        return self._ask(target, name, values, generator)
