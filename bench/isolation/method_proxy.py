"""Proxy for another author's method when Eve calls its scheme.

A method's code in Eve's process could change her results, and would know that Eve calls it: it could show her another
scheme than the owner's. So her calls go to the judge, who passes them on to a room like the owner's. Methods of this
project are loaded in her process.

A process may still guess the caller by the number of calls. So Eve's refusals and a sample of her releases are repeated
in a fresh process that gets no other call, as with an owner. The k-th release is repeated with probability 1/k: a
method that cheats from the m-th of N releases on escapes with probability (m - 1)/N.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from random import SystemRandom
from typing import cast

import torch

from bench.contract.seal import ContractError
from bench.isolation.remote_method import MadeBy, Part, RemoteKey, RemoteMethod, RemoteScheme
from bench.isolation.rpc_codec import Generators, Handle, Line, UnlikeError, Value
from bench.randomness import Secret
from bench.rows.row_sets import same_but_rounding
from bench.types import Dataset, Generator, NotApplicable, Release, State


class MethodProxy:
    """The judge's end: passes Eve's calls on to the method's room.

    Args:
        scheme: As the judge holds it.
        pairs: Eve matches pairs, so a release without links counts as a refusal.
    """

    def __init__(self, scheme: RemoteScheme, *, pairs: bool) -> None:
        self._pairs = pairs
        self._scheme = RemoteMethod(scheme.method, scheme.method.tenant).load(scheme.learned)
        self._handles: dict[int, Handle] = {}
        self._keys: dict[int, RemoteKey] = {}
        self._rows: dict[int, Dataset] = {}
        self._released: dict[int, tuple[RemoteKey, Dataset]] = {}
        self._fetched = 0
        self.refused = False
        """True if the method has refused Eve something since her last release."""

    def generator(self, state: Mapping[str, torch.Tensor]) -> Generator:
        """A release's generator, by its state."""
        return self._scheme.load_generator(state)

    def ask(self, target: int | None, name: str, values: Sequence[Value]) -> Value:
        """Pass a call on. Raises as `bench.isolation.room.Room.ask` does.

        Raises:
            UnlikeError: A fresh process gives something else.
        """
        if target is None and name not in ("load", "hold"):
            raise ContractError(f"an attack may use the scheme that it knows, and not ask its method for {name}")
        handle = None if target is None else self._known(target)
        arguments = [self._known(value.number) if isinstance(value, Handle) else value for value in values]
        try:
            result = self._scheme.method.line().ask(handle, name, *arguments, generator=self.generator)
        except NotApplicable as refusal:
            self.refused = True
            if name == "release" and target in self._keys:
                self._ask_again(self._keys[target], self._given(values[0]), refusal)
            raise
        if isinstance(result, Handle):
            self._handles[result.number] = result
            self._note(result.number, target, name, values)
        if isinstance(result, Release) and target in self._released:
            self.refused = self._pairs and not (result.links is not None and len(result.links))
            self._fetched += 1
            if SystemRandom().randrange(self._fetched) == 0:
                self._ask_again(*self._released[target], result)
        return result

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop objects that Eve no longer uses."""
        for number in numbers:
            for objects in (self._handles, self._keys, self._rows, self._released):
                objects.pop(number, None)

    def _note(self, number: int, target: int | None, name: str, values: Sequence[Value]) -> None:
        """Keep the origin of a release while Eve may fetch it."""
        if name == "hold":
            self._rows[number] = cast(Dataset, values[0])
        elif name in ("sample_key", "load_key"):
            made_by: MadeBy = "sample_key" if name == "sample_key" else "load_key"
            self._keys[number] = RemoteKey(self._scheme, made_by, cast("Secret | State", values[0]))
        elif name == "release" and target in self._keys:
            self._released[number] = self._keys[target], self._given(values[0])

    def _given(self, rows: Value) -> Dataset:
        return self._rows[rows.number] if isinstance(rows, Handle) else cast(Dataset, rows)

    def _ask_again(self, key: RemoteKey, rows: Dataset, first: Release | NotApplicable) -> None:
        """Raise UnlikeError if a fresh process releases or refuses otherwise."""
        with closing(RemoteMethod(self._scheme.method, self._scheme.method.tenant)) as method:
            fresh = RemoteKey(method.load(self._scheme.learned), key.made_by, key.of)
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
        """End the process."""
        for objects in (self._handles, self._keys, self._rows, self._released):
            objects.clear()
        self._scheme.method.close()

    def _known(self, number: int) -> Handle:
        if number not in self._handles:
            raise ContractError("an attack asked for an object that it was not given")
        return self._handles[number]


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
        self._rooms, self._held, self.own = {}, None, None

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
