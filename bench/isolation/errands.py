"""A method from outside as Eve runs it: in a process of its own, which the judge asks for her.

Whose code runs in Eve's process could change what she computes, and would know that it is Eve who asks: it could show
her another scheme than the owner's. So what she asks goes to the judge, and the judge passes it on to a room that is as
the owner's is. Methods of this project are loaded beside her.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from bench.contract.seal import ContractError
from bench.isolation.language import Handle, Value
from bench.isolation.line import Generators, Line
from bench.isolation.remote_method import Part, RemoteMethod, RemoteScheme
from bench.types import Generator


class Errands:
    """The judge's end: what Eve asks of the scheme that she knows, asked in a room that opens with the first question.

    Args:
        scheme: As the judge holds it.
    """

    def __init__(self, scheme: RemoteScheme) -> None:
        self._scheme = RemoteMethod(scheme.method, scheme.method.tenant).load(scheme.learned)
        self._handles: dict[int, Handle] = {}

    def generator(self, state: Mapping[str, Tensor]) -> Generator:
        """A release's generator, by its state."""
        return self._scheme.load_generator(state)

    def ask(self, whom: int | None, what: str, values: Sequence[Value]) -> Value:
        """What comes of a question. Raises what `bench.isolation.room.Room.ask` does."""
        if whom is None and what not in ("load", "hold"):
            raise ContractError(f"an attack may use the scheme that it knows, and not ask its method for {what}")
        asked = None if whom is None else self._known(whom)
        given = [self._known(value.number) if isinstance(value, Handle) else value for value in values]
        found = self._scheme.method.line().ask(asked, what, *given, generator=self.generator)
        if isinstance(found, Handle):
            self._handles[found.number] = found
        return found

    def forget(self, numbers: Sequence[int]) -> None:
        """Let go what Eve asks for no more."""
        for number in numbers:
            self._handles.pop(number, None)

    def close(self) -> None:
        """End the process."""
        self._handles.clear()
        self._scheme.method.close()

    def _known(self, number: int) -> Handle:
        if number not in self._handles:
            raise ContractError("an attack asked for an object that it was not given")
        return self._handles[number]


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
