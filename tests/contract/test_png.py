"""Pictures: a whole PNG passes, and whatever hides in one, behind it, or in its size does not."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image

from bench.contract.evaluator import MOST_BYTES, MOST_SIDE, check_png


def part(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width: int, height: int) -> bytes:
    return part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


START, DATA, END = b"\x89PNG\r\n\x1a\n", part(b"IDAT", zlib.compress(b"\0\0")), part(b"IEND", b"")
WHOLE = START + header(1, 1) + DATA + END


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_pictures_as_they_are_saved_pass(mode: str) -> None:
    made = BytesIO()
    Image.new(mode, (20, 10)).save(made, "PNG")
    check_png(made.getvalue())
    check_png(WHOLE)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must be a PNG"),
        (b"GIF89a", "must be a PNG"),
        (START, "must be a whole PNG"),
        (START + header(1, 1) + END, "must be a whole PNG"),
        (START + DATA + END, "must be a whole PNG"),
        (WHOLE + b"and more", "nothing after it"),
        (WHOLE + WHOLE, "nothing after it"),
        (START + header(1, 1) + header(1, 1) + DATA + END, "must be a whole PNG"),
        (START + header(0, 1) + DATA + END, "sides"),
        (START + header(MOST_SIDE + 1, 1) + DATA + END, "sides"),
        (START + header(1, 1) + part(b"prVt", b"pixels") + DATA + END, "plain PNG"),
        (START + header(1, 1) + part(b"zTXt", b"bomb") + DATA + END, "plain PNG"),
        (START + header(1, 1) + struct.pack(">I", 2**31) + b"IDAT", "cut off"),
        (WHOLE + bytes(MOST_BYTES), "at most"),
    ],
)
def test_anything_else_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_png(content)


def test_every_damaged_byte_and_every_cut_is_noticed() -> None:
    for at in range(len(WHOLE)):
        for content in (WHOLE[:at], WHOLE[:at] + bytes([WHOLE[at] ^ 1]) + WHOLE[at + 1 :]):
            with pytest.raises(ValueError, match="must"):
                check_png(content)
