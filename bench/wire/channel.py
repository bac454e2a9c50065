"""Messages over a pipe or socket: the length in four bytes, highest first, then that many bytes of JSON."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

from pydantic import JsonValue

from bench.wire.message import Message, WireError, decode, encode

_HEAD = 4
_CHUNK = 1 << 16
_CHUNKS = 4  # a look: a writer that never stops must not hold whoever looks


class Reader:
    """What has come over a descriptor, message by message; it never waits, and holds little more than `cap` bytes.

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
        """Every whole message that is there now, or of a flood the first; look again whenever there is more to read.

        Raises:
            WireError: Not a message, or a longer one than `cap`; those before it have been given.
            EOFError: The other end is closed, and everything whole has been given.
        """
        for _ in range(_CHUNKS):
            try:
                found = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                return
            except ConnectionResetError:
                found = b""
            if not found:
                raise EOFError("the other end is closed" + (" in the middle of a message" if self._held else ""))
            self._held += found
            yield from self._whole()

    def _whole(self) -> Iterator[dict[str, JsonValue]]:
        at = 0
        try:
            while len(self._held) - at >= _HEAD:
                length = int.from_bytes(self._held[at : at + _HEAD], "big")
                if length > self._cap:
                    raise WireError("too-long", f"a message must take at most {self._cap} bytes, got {length}")
                end = at + _HEAD + length
                if len(self._held) < end:
                    return
                content = bytes(self._held[at + _HEAD : end])
                at = end
                yield decode(content)
        finally:
            del self._held[:at]


def send(descriptor: int, message: Message, cap: int) -> None:
    """Write a whole message, waiting as long as the other end takes it.

    Raises:
        WireError: It is none, or takes more than `cap` bytes; nothing was written.
        BrokenPipeError: Nobody reads any more.
    """
    content = encode(message, cap)
    left = memoryview(len(content).to_bytes(_HEAD, "big") + content)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
