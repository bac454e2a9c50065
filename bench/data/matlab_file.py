"""Arrays of numbers in a MATLAB file (.mat, level 4 or 5), read within bounds: SciPy's reader dies of damaged ones.

Source: MathWorks, MAT-File Format (2023). Level 5: 128 bytes of header, then elements of type, size and content, some
of them deflated. An array holds its class, shape, name and numbers, which stand in the least type that holds them all.
Files of version 7.3 are HDF5, and none of these.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

MOST_BYTES = 1 << 28
"""Of a file, and of what one deflated element comes to."""
_HEADER, _TAG = 128, 8
_MATRIX, _DEFLATED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = range(6, 16)  # arrays of numbers; cells, structures, objects, text and sparse ones come before
_LEVEL_4 = ("f8", "f4", "i4", "i2", "u2", "u1")

Found = Iterator[tuple[str, np.ndarray | None]]


def read_matlab(path: Path, name: str) -> np.ndarray:
    """The array of numbers of that name, in the type in which its numbers stand.

    Raises:
        ValueError: It is no such file, is damaged or too large, or holds no such array; the text says which.
        OSError: It cannot be read.
    """
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"expected a MATLAB file of at most {MOST_BYTES} bytes, found {path.stat().st_size}")
    content = memoryview(path.read_bytes())
    try:
        arrays = _level_4(content) if 0 in content[:4] else _level_5(content)
        return next(array for found, array in arrays if found == name and array is not None)
    except (struct.error, zlib.error, UnicodeDecodeError, IndexError) as error:
        raise ValueError(f"a damaged MATLAB file ({error})") from error
    except StopIteration:
        raise ValueError(f"a MATLAB file without an array of numbers called {name!r}") from None


def _level_5(content: memoryview) -> Found:
    """Arrays by name; None for what holds no plain real numbers."""
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:_HEADER]))
    if order is None or struct.unpack(f"{order}H", content[124:126])[0] != 0x0100:
        raise ValueError("no MATLAB file of level 4 or 5")
    for kind, part in _elements(content[_HEADER:], order):
        if kind == _DEFLATED:
            inflater = zlib.decompressobj()
            part = memoryview(inflater.decompress(part, MOST_BYTES))
            if inflater.unconsumed_tail:
                raise ValueError(f"a deflated array of more than {MOST_BYTES} bytes")
            kind, part = next(_elements(part, order), (0, part))
        if kind == _MATRIX:
            yield _array(part, order)


def _array(content: memoryview, order: str) -> tuple[str, np.ndarray | None]:
    parts = list(islice(_elements(content, order), 4))
    if len(parts) < 4:  # an array without numbers, or an object
        return "", None
    (_, flags), (_, sides), (_, name), (kind, numbers) = parts
    bits = struct.unpack(f"{order}I", flags[:4])[0]
    plain = (bits & 0xFF) in _CLASSES and not bits & 0x800 and kind in _NUMBERS  # 0x800: complex
    shape = struct.unpack(f"{order}{len(sides) // 4}i", sides)
    text = bytes(name).decode("ascii")
    return text, _shaped(numbers, np.dtype(order + _NUMBERS[kind]), shape) if plain else None


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and content of one element after another; each begins at a multiple of 8 bytes, but for deflated ones."""
    while len(content) >= _TAG:
        kind, size = struct.unpack(f"{order}II", content[:_TAG])
        if kind >> 16:  # type, size and up to four bytes of content in one tag
            kind, size, start, end = kind & 0xFFFF, kind >> 16, 4, _TAG
            if size > 4:
                raise ValueError(f"a damaged MATLAB file (a small element of {size} bytes)")
        else:
            start, end = _TAG, _TAG + size + (0 if kind == _DEFLATED else -size % 8)
        if start + size > len(content):
            raise ValueError(f"a damaged MATLAB file (an element of {size} bytes, of which {len(content)} are there)")
        yield kind, content[start : start + size]
        content = content[end:]


def _level_4(content: memoryview) -> Found:
    """Arrays by name; None for text, sparse and complex ones."""
    while len(content):
        order = "<" if content[0] < 100 and not any(content[2:4]) else ">"
        kind, rows, columns, complex_, length = struct.unpack(f"{order}5i", content[:20])
        thousands, hundreds, tens, form = kind // 1000, kind // 100 % 10, kind // 10 % 10, kind % 10
        if thousands not in (0, 1) or hundreds or tens >= len(_LEVEL_4) or not 0 < length <= len(content) - 20:
            raise ValueError("no MATLAB file of level 4 or 5")
        dtype = np.dtype(order + _LEVEL_4[tens])
        name, content = bytes(content[20 : 20 + length - 1]).decode("ascii"), content[20 + length :]
        size = max(rows, 0) * max(columns, 0) * dtype.itemsize
        plain = form == 0 and not complex_
        yield name, _shaped(content[:size], dtype, (rows, columns)) if plain else None
        content = content[size * (2 if complex_ else 1) :]


def _shaped(numbers: memoryview, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers, which stand column by column, in the order of this machine."""
    if min(shape, default=-1) < 0 or math.prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"a damaged MATLAB file (an array of shape {shape} in {len(numbers)} bytes)")
    found = np.frombuffer(numbers, dtype=dtype).reshape(shape, order="F")
    return found.astype(dtype.newbyteorder("="))
