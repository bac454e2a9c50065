"""Arrays of NumPy from outside: shapes are checked against the bytes that are there, and nothing is unpickled."""

from __future__ import annotations

import math
from tokenize import TokenError
from typing import IO

import numpy as np
import psutil

from bench.contract.source import DataError


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """The array in an .npy file, or in such a member of an .npz.

    Args:
        file: At its start.
        size: How many bytes it holds.

    Raises:
        DataError: It holds Python objects, more than this machine's memory, or less than it declares.
        OSError, ValueError, EOFError: It is cut short or no such file; so says what reads it.
    """
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = header(file)
    except (SyntaxError, TokenError, RecursionError, MemoryError) as error:  # NumPy lets them through
        raise ValueError("a header that is no header") from error
    if dtype.hasobject:
        raise DataError("Python objects, which could run code and are not loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise DataError(f"an array declared as {dtype} of shape {shape} in {size} bytes, which do not hold it")
    memory = psutil.virtual_memory().total
    if size > memory:
        raise DataError(f"an array of {size} bytes, more than the {memory} of this machine's memory")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
