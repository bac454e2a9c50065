"""Messages between processes: bounded JSON objects over a pipe or socket.

A message is its length in four bytes, highest first, then that many bytes of JSON. Reading it runs no foreign code.
"""

from __future__ import annotations

import json
import math
import os
import select
from collections.abc import Iterator, Mapping
from typing import Literal, NoReturn, cast

from pydantic import JsonValue

from bench.room_side import HEAD

Message = Mapping[str, JsonValue]
Reason = Literal[
    "too-long", "not-utf8", "not-json", "not-an-object", "too-deep", "too-many-values", "not-finite", "surrogate"
]
MOST_DEEP = 32
MOST_VALUES = 1_000_000  # what a value takes in memory does not follow from the bytes that spell it
MOST_DIGITS = 40  # of an integer: numbers that no record needs cost quadratic time to read


class WireError(Exception):
    """Content is no message; `reason` names why, without quoting it."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def encode(message: Message, cap: int) -> bytes:
    """The message as UTF-8 JSON of at most `cap` bytes. Raises WireError."""
    _check(message)
    try:
        content = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise _surrogate() from None
    if len(content) > cap:
        raise WireError("too-long", f"a message must take at most {cap} bytes, got {len(content)}")
    return content


def decode(content: bytes) -> dict[str, JsonValue]:
    """The message that these bytes spell. Raises WireError for anything else."""
    # Strings may hold these signs too: the count is of at most so many values, and costs no more than a look.
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) >= MOST_VALUES:
        raise _too_many()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise WireError("not-utf8", "a message must be UTF-8") from None
    try:
        message = json.loads(text, parse_constant=_constant, parse_int=_integer, object_pairs_hook=_object)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise WireError("not-json", "a message must be JSON with every name of an object given once") from None
    _check(message)
    return cast("dict[str, JsonValue]", message)


def _check(message: object) -> None:
    """Raise WireError for an invalid message; a loop counts as too deep."""
    if not isinstance(message, dict):
        raise WireError("not-an-object", f"a message must be an object, got {_kind(message)}")
    values = 0
    level: list[object] = [message]
    for _ in range(MOST_DEEP):
        below: list[object] = []
        for value in level:
            parts = _parts(value)
            values += 1 + len(parts)
            if values > MOST_VALUES:
                raise _too_many()
            below += parts
        if not below:
            return
        level = below
    raise _too_deep()


def _parts(value: object) -> list[object]:
    """The parts of a value, names included."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise WireError("not-json", "the names of an object must be text")
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _surrogate() from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _not_finite()
    elif isinstance(value, int):
        if abs(value) >= 10**MOST_DIGITS:
            raise _too_large()
    elif value is not None:
        raise WireError("not-json", f"a message must be plain JSON, got {_kind(value)}")
    return []


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name is given twice")
    return entries


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _too_large()
    return int(digits)


def _constant(name: str) -> NoReturn:
    raise _not_finite()


def _kind(value: object) -> str:
    """The type's name of a value; foreign class names are not quoted."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else "an object of another class"


def _surrogate() -> WireError:
    return WireError("surrogate", "text in a message must be Unicode: half a surrogate pair is no character")


def _not_finite() -> WireError:
    return WireError("not-finite", "numbers in a message must be finite")


def _too_large() -> WireError:
    return WireError("not-json", f"integers in a message must have at most {MOST_DIGITS} digits")


def _too_deep() -> WireError:
    return WireError("too-deep", f"a message must be at most {MOST_DEEP} levels deep")


def _too_many() -> WireError:
    return WireError("too-many-values", f"a message must hold at most {MOST_VALUES} values")


_CHUNK = 1 << 16
_CHUNKS = 4  # per call: a writer that never stops must not hold the reader


class Reader:
    """Reader of messages that never waits and holds little beyond `cap` bytes.

    The descriptor stays its owner's to close. After a WireError nothing more can be read from it: where the next
    message would begin is not known.

    Args:
        descriptor: The end to read from; it is made non-blocking.
        cap: Most bytes that a message may take.
    """

    def __init__(self, descriptor: int, cap: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._cap = descriptor, cap
        self._held = bytearray()

    def messages(self) -> Iterator[dict[str, JsonValue]]:
        """Every whole message available now, or the first of a flood.

        Raises:
            WireError: Not a message, or a longer one than `cap`; those before it have been given.
            EOFError: The other end is closed, and everything whole has been given.
        """
        for _ in range(_CHUNKS):
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                return
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise EOFError("the other end is closed" + (" in the middle of a message" if self._held else ""))
            self._held += chunk
            yield from self._whole()

    def _whole(self) -> Iterator[dict[str, JsonValue]]:
        at = 0
        try:
            while len(self._held) - at >= HEAD:
                length = int.from_bytes(self._held[at : at + HEAD], "big")
                if length > self._cap:
                    raise WireError("too-long", f"a message must take at most {self._cap} bytes, got {length}")
                end = at + HEAD + length
                if len(self._held) < end:
                    return
                content = bytes(self._held[at + HEAD : end])
                at = end
                yield decode(content)
        finally:
            del self._held[:at]


def send(descriptor: int, message: Message, cap: int) -> None:
    """Write a whole message, waiting until the other end takes it.

    Raises:
        WireError: It is none, or takes more than `cap` bytes; nothing was written.
        BrokenPipeError: The other end is closed.
    """
    content = encode(message, cap)
    left = memoryview(len(content).to_bytes(HEAD, "big") + content)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
