"""Channels: whole messages however they are cut, and a bounded answer to every way of writing nonsense."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from bench.wire.message import Reader, WireError, send

CAP = 1 << 20


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours.fileno(), theirs.fileno()


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def test_messages_arrive_whole_and_in_order(pipe: tuple[int, int]) -> None:
    ours, theirs = pipe
    reader = Reader(ours, CAP)
    assert list(reader.messages()) == []
    for number in range(3):
        send(theirs, {"number": number}, CAP)
    assert list(reader.messages()) == [{"number": number} for number in range(3)]
    assert list(reader.messages()) == []


def test_a_message_may_come_byte_by_byte(pipe: tuple[int, int]) -> None:
    ours, theirs = pipe
    reader = Reader(ours, CAP)
    found: list[object] = []
    for byte in framed(b'{"a":1}') + framed(b"{}") + framed(b'{"b":2}')[:5]:
        os.write(theirs, bytes([byte]))
        found += list(reader.messages())
    assert found == [{"a": 1}, {}]


def test_a_long_message_waits_for_its_reader() -> None:
    ours, theirs = os.pipe()
    message = {"a": "x" * (CAP // 2)}
    os.set_blocking(theirs, False)  # as another process may have left it
    writer = threading.Thread(target=send, args=(theirs, message, CAP))
    writer.start()
    reader = Reader(ours, CAP)
    while not (found := list(reader.messages())):
        pass
    writer.join()
    assert found == [message]
    os.close(ours)
    os.close(theirs)


def test_the_end_is_said_after_the_last_message(pipe: tuple[int, int]) -> None:
    ours, theirs = os.pipe()
    send(theirs, {"a": 1}, CAP)
    os.write(theirs, framed(b'{"never":"whole"}')[:-3])
    os.close(theirs)
    found = Reader(ours, CAP).messages()
    assert next(found) == {"a": 1}
    with pytest.raises(EOFError, match="in the middle of a message"):
        next(found)
    os.close(ours)


def test_nothing_but_the_end_is_said_of_a_closed_pipe() -> None:
    ours, theirs = os.pipe()
    os.close(theirs)
    reader = Reader(ours, CAP)
    for _ in range(2):
        with pytest.raises(EOFError) as error:
            list(reader.messages())
        assert "middle" not in str(error.value)
    os.close(ours)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ((1 << 30).to_bytes(4, "big"), "too-long"),
        (b"\xff\xff\xff\xff", "too-long"),
        ((CAP + 1).to_bytes(4, "big"), "too-long"),
        (framed(b"\x80\x05"), "not-utf8"),
        (framed(b""), "not-json"),
        (framed(b"[]"), "not-an-object"),
    ],
)
def test_nonsense_is_refused_after_what_came_before_it(pipe: tuple[int, int], written: bytes, reason: str) -> None:
    ours, theirs = pipe
    send(theirs, {"a": 1}, CAP)
    os.write(theirs, written)
    found = Reader(ours, CAP).messages()
    assert next(found) == {"a": 1}
    with pytest.raises(WireError) as error:
        next(found)
    assert error.value.reason == reason


def test_a_flood_is_given_in_parts() -> None:
    ours, theirs = os.pipe()
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            os.write(theirs, framed(b"{}") * 10_000)

    writer = threading.Thread(target=flood)
    writer.start()
    reader = Reader(ours, CAP)
    parts = [sum(1 for _ in reader.messages()) for _ in range(4)]  # would not end if one look read all there is
    stop.set()
    while writer.is_alive():
        list(reader.messages())
    assert max(parts) <= (4 << 16) // 6 + 1
    os.close(ours)
    os.close(theirs)


def test_what_is_no_message_leaves_nothing_in_the_pipe(pipe: tuple[int, int]) -> None:
    ours, theirs = pipe
    with pytest.raises(WireError):
        send(theirs, {"a": float("nan")}, CAP)
    with pytest.raises(WireError):
        send(theirs, {"a": "x" * 100}, 50)
    send(theirs, {"a": 1}, CAP)
    assert list(Reader(ours, CAP).messages()) == [{"a": 1}]


def test_nobody_reading_is_said() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with pytest.raises(BrokenPipeError):
        send(theirs, {}, CAP)
    os.close(theirs)
