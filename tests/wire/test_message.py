"""Messages: what is one crosses unchanged, and whatever is none is refused by name, without being quoted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue

from bench.wire.message import MOST_DEEP, MOST_VALUES, WireError, decode, encode

CAP = 1 << 20


def test_a_message_comes_back_as_it_was() -> None:
    message: dict[str, JsonValue] = {"a": [1, -2.5, None, True, "ü\n\x1b𝄞"], "b": {"c": {}}, "": 10**39}
    assert decode(encode(message, CAP)) == message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not-json"),
        (b"{", "not-json"),
        (b"{} {}", "not-json"),
        (b"garbage CANARY", "not-json"),
        (b'{"a":1,"a":2}', "not-json"),
        (b'{"a":{"b":1,"b":1}}', "not-json"),
        (b'{"a":"\x01"}', "not-json"),
        (b'{"a":' + b"9" * 5000 + b"}", "not-json"),
        (b'{"a":' + b"9" * 41 + b"}", "not-json"),
        (b"\xef\xbb\xbf{}", "not-json"),
        (b'{"a":"\xff CANARY"}', "not-utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not-utf8"),
        ("{}".encode("utf-16"), "not-utf8"),
        (b"[]", "not-an-object"),
        (b'"CANARY"', "not-an-object"),
        (b"null", "not-an-object"),
        (b'{"a":NaN}', "not-finite"),
        (b'{"a":[Infinity]}', "not-finite"),
        (b'{"a":-Infinity}', "not-finite"),
        (b'{"a":1e999}', "not-finite"),
        (b'{"a":"\\ud800 CANARY"}', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "too-deep"),
        (b'{"a":' + b"[" * MOST_DEEP + b"]" * MOST_DEEP + b"}", "too-deep"),
        (b'{"a":[' + b"," * MOST_VALUES + b"]}", "too-many-values"),
    ],
)
def test_what_is_no_message_is_refused_by_name(content: bytes, reason: str) -> None:
    with pytest.raises(WireError) as error:
        decode(content)
    assert error.value.reason == reason
    assert "CANARY" not in str(error.value)
    assert len(str(error.value)) < 200


def test_a_pair_of_surrogates_spells_one_character() -> None:
    assert decode(rb'{"a":"\ud834\udd1e"}') == {"a": "𝄞"}


def test_a_loop_and_what_is_no_json_are_not_sent() -> None:
    loop: dict[str, object] = {}
    loop["a"] = [loop]
    shared: list[object] = []
    for _ in range(MOST_DEEP - 4):
        shared = [shared, shared]  # 2^28 values in a few lists

    class CANARY:
        pass

    refused: dict[str, list[Any]] = {
        "too-deep": [loop],
        "too-many-values": [{"a": shared}],
        "not-finite": [{"a": float("nan")}, {"a": [float("inf")]}],
        "surrogate": [{"a": "\ud800"}, {"\udc00": 1}],
        "not-json": [
            {"a": object()},
            {1: 2},
            {"a": {None: 1}},
            {"a": b""},
            {"a": (1,)},
            {"a": CANARY()},
            {"a": 10**41},
        ],
        "not-an-object": [[], "x", None, 3],
    }
    for reason, messages in refused.items():
        for message in messages:
            with pytest.raises(WireError) as error:
                encode(message, CAP)
            assert error.value.reason == reason
            assert "CANARY" not in str(error.value)


def test_the_cap_counts_bytes() -> None:
    message = {"a": "ü" * 10}
    length = len(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())
    assert len(encode(message, length)) == length
    with pytest.raises(WireError) as error:
        encode(message, length - 1)
    assert error.value.reason == "too-long"
