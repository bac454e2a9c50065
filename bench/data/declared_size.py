"""Sizes that a file declares, against what its bytes can hold.

A header of a few bytes can ask for terabytes, and a short stream can unpack to them. So a declared size is compared
with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from bench.contract.source import DataError

PACKED = 1100
"""Bytes that a packed byte may stand for: deflate, the format of PNG, gzip, zip and HDF5, reaches 1,032."""
TEXT = 250
"""The same for tables: real ones of numbers and names are packed to a tenth, blank ones to a hundredth."""
FREE = 1 << 24
"""Bytes that any file may ask for, however short it is."""


def check_declared(declared: int, *, held: int, noun: str, ratio: int = PACKED, most: int | None = None) -> None:
    """Raise DataError if a file declares more than it can hold.

    Args:
        declared: Bytes that are asked for.
        held: Bytes that are there.
        noun: What declares them, for the message.
        ratio: Bytes that one of them may stand for; 1 if nothing is packed.
        most: A limit whatever is there; None for none.
    """
    bound = held if ratio == 1 else max(FREE, ratio * held)
    if most is not None:
        bound = min(bound, most)
    if declared > bound:
        raise DataError(
            f"{noun} declares {declared} bytes, expected at most {bound}: the file holds {held} bytes of it"
        )


class _Counted(io.RawIOBase):
    """An unpacked stream that ends in DataError beyond a bound."""

    def __init__(self, path: Path, bound: int) -> None:
        self._path, self._left, self._bound = path, bound, bound
        self._packed = gzip.open(path)  # noqa: SIM115  (`close` closes it)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._packed.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            held = self._path.stat().st_size
            raise DataError(f"{self._path}: unpacks to more than {self._bound} bytes, from the {held} that it holds")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._packed.close()
        super().close()


def open_gzip(path: Path, *, ratio: int = TEXT) -> io.BufferedReader:
    """A gzip file unpacked, which ends in DataError beyond its bound."""
    return io.BufferedReader(_Counted(path, max(FREE, ratio * path.stat().st_size)))
