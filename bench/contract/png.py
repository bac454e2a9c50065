"""Whether bytes are a PNG and nothing beside: read by its chunks, decoded nowhere."""

from __future__ import annotations

__figures__ = True

import zlib

MOST_BYTES = 4 * 2**20
MOST_SIDE = 20_000
_START = b"\x89PNG\r\n\x1a\n"
_PARTS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"pHYs", b"sRGB", b"gAMA", b"cHRM", b"tEXt", b"sBIT"})


def check_png(content: bytes) -> None:
    """Raise ValueError unless the bytes are a whole PNG of bounded size, without unusual parts or anything after it."""
    if not content.startswith(_START):
        raise ValueError(f"must be a PNG, got {content[:8]!r}")
    if len(content) > MOST_BYTES:
        raise ValueError(f"must take at most {MOST_BYTES} bytes, got {len(content)}")
    at, kinds = len(_START), []
    while at < len(content):
        length, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(content) or zlib.crc32(content[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end], "big"):
            raise ValueError("must be a whole PNG: a part of it is cut off or damaged")
        if kind not in _PARTS:
            raise ValueError(f"must be a plain PNG, got a part {kind!r}")
        if kind == b"IHDR":
            width, height = (int.from_bytes(content[at + 8 + 4 * k : at + 12 + 4 * k], "big") for k in (0, 1))
            if not (length == 13 and 0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
                raise ValueError(f"must have sides of 1 to {MOST_SIDE} pixels, got {width} x {height}")
        kinds.append(kind)
        at = end
        if kind == b"IEND":
            break
    whole = kinds[:1] == [b"IHDR"] and kinds.count(b"IHDR") == 1 and kinds[-1:] == [b"IEND"] and b"IDAT" in kinds
    if not whole or at != len(content):
        raise ValueError("must be a whole PNG, from its header to its end, and nothing after it")
