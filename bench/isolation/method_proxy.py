"""A method from outside as Eve runs it: in a process of its own, which the judge asks for her.

Whose code runs in Eve's process could change what she computes, and would know that it is Eve who asks: it could show
her another scheme than the owner's. So what she asks goes to the judge, and the judge passes it on to a room that is as
the owner's is. Methods of this project are loaded beside her.

A process may still guess who asks, by how much is asked. So what Eve was refused, and some of what she was released, is
asked again of a fresh process, of which nothing else was asked: as an owner asks once. The k-th release is asked again
with probability 1/k: of N releases whoever cheats from the m-th on gets away with it with probability (m - 1)/N.
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


class Errands:
    """The judge's end: what Eve asks of the scheme that she knows, asked in a room that opens with the first question.

    Args:
        scheme: As the judge holds it.
        pairs: Whether Eve matches pairs, to whom a release without links is none.
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
        """Whether the method has refused Eve anything since it last gave her a release."""

    def generator(self, state: Mapping[str, torch.Tensor]) -> Generator:
        """A release's generator, by its state."""
        return self._scheme.load_generator(state)

    def ask(self, whom: int | None, what: str, values: Sequence[Value]) -> Value:
        """What comes of a question. Raises what `bench.isolation.room.Room.ask` does.

        Raises:
            UnlikeError: A fresh process gives something else.
        """
        if whom is None and what not in ("load", "hold"):
            raise ContractError(f"an attack may use the scheme that it knows, and not ask its method for {what}")
        asked = None if whom is None else self._known(whom)
        given = [self._known(value.number) if isinstance(value, Handle) else value for value in values]
        try:
            found = self._scheme.method.line().ask(asked, what, *given, generator=self.generator)
        except NotApplicable as refusal:
            self.refused = True
            if what == "release" and whom in self._keys:
                self._ask_again(self._keys[whom], self._given(values[0]), refusal)
            raise
        if isinstance(found, Handle):
            self._handles[found.number] = found
            self._note(found.number, whom, what, values)
        if isinstance(found, Release) and whom in self._released:
            self.refused = self._pairs and not (found.links is not None and len(found.links))
            self._fetched += 1
            if SystemRandom().randrange(self._fetched) == 0:
                self._ask_again(*self._released[whom], found)
        return found

    def forget(self, numbers: Sequence[int]) -> None:
        """Let go what Eve asks for no more."""
        for number in numbers:
            for kept in (self._handles, self._keys, self._rows, self._released):
                kept.pop(number, None)

    def _note(self, number: int, whom: int | None, what: str, values: Sequence[Value]) -> None:
        """Remember what a release was made of, as long as Eve may ask for it."""
        if what == "hold":
            self._rows[number] = cast(Dataset, values[0])
        elif what in ("sample_key", "load_key"):
            made_by: MadeBy = "sample_key" if what == "sample_key" else "load_key"
            self._keys[number] = RemoteKey(self._scheme, made_by, cast("Secret | State", values[0]))
        elif what == "release" and whom in self._keys:
            self._released[number] = self._keys[whom], self._given(values[0])

    def _given(self, rows: Value) -> Dataset:
        return self._rows[rows.number] if isinstance(rows, Handle) else cast(Dataset, rows)

    def _ask_again(self, key: RemoteKey, rows: Dataset, first: Release | NotApplicable) -> None:
        """Raise UnlikeError where a process that is asked nothing else gives another release, or refuses another."""
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
                    f"{_said(first)}, and an owner's process {_said(again)}"
                )

    def close(self) -> None:
        """End the process."""
        for kept in (self._handles, self._keys, self._rows, self._released):
            kept.clear()
        self._scheme.method.close()

    def _known(self, number: int) -> Handle:
        if number not in self._handles:
            raise ContractError("an attack asked for an object that it was not given")
        return self._handles[number]


def _alike(first: Release | NotApplicable, again: Release | NotApplicable) -> bool:
    """Whether two processes do the same but for rounding."""
    if isinstance(first, NotApplicable) or isinstance(again, NotApplicable):
        return isinstance(first, NotApplicable) and isinstance(again, NotApplicable)
    parts = ("samples", "labels", "links", "primary")
    return all(same_but_rounding(getattr(first, name), getattr(again, name)) for name in parts)


def _said(found: Release | NotApplicable) -> str:
    return f"a refusal ({found})" if isinstance(found, NotApplicable) else f"a release of {len(found)} rows"


class KnownMethod(RemoteMethod):
    """Eve's end: a method that is asked over one line, whatever for. Her own keys need not be kept from her.

    Args:
        line: To the judge.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._rooms, self._held, self.own = {}, None, None

    def line(self, part: Part = "release") -> Line:
        """The line."""
        return self._line


class Relay:
    """A line that sends every question to the judge.

    Args:
        ask: Sends one, with what was forgotten since the last, and waits for what comes of it.
    """

    open = True

    def __init__(self, ask: Callable[[Handle | None, str, Sequence[Value], Generators | None], Value]) -> None:
        self._ask = ask

    def ask(
        self, whom: Handle | None, what: str, *values: Value, generator: Generators | None = None,
        training: object = None,
    ) -> Value:  # fmt: skip
        """As `bench.isolation.room.Room.ask`; nothing is fitted this way."""
        return self._ask(whom, what, values, generator)
