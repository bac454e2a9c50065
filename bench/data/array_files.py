"""Arrays in NumPy and HDF5 files from outside, read without unpickling.

NumPy: shapes are checked against the bytes that are there. HDF5: images are read and resized block by block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np
import psutil

from bench.contract.source import DataError
from bench.data.picture import enlarged
from bench.data.raw_files import impostor
from bench.data.sample_array import resize

_BLOCK = 128


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an .npy file, or member of an .npz, of `size` bytes.

    Raises DataError for Python objects, or for more than this machine's memory or the file holds; OSError,
    ValueError or EOFError, as what reads it, for other damage.
    """
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = header(file)
    except (SyntaxError, TokenError, RecursionError, MemoryError) as error:  # NumPy lets them through
        raise ValueError("an unreadable header") from error
    if dtype.hasobject:
        raise DataError("Python objects, which could run code and are not loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise DataError(f"an array declared as {dtype} of shape {shape} in {size} bytes, which do not hold it")
    memory = psutil.virtual_memory().total
    if size > memory:
        raise DataError(f"an array of {size} bytes, more than the {memory} of this machine's memory")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


@dataclass(frozen=True, eq=False)
class Stored:
    """Images of a file.

    Args:
        images: (n, channels, size, size) uint8.
        notes: What was done to them that a reader of figures should know.
    """

    images: np.ndarray
    notes: tuple[str, ...]


def hdf5_images(path: Path, *, n: int, channels: int, size: int | None) -> Stored:
    """The array `images` (n, h, w[, 3]) of an HDF5 file, resized.

    Grey images become three equal channels; colours become grey as Pillow makes them. Raises DataError for another
    or damaged file, or another number of images.
    """
    import h5py  # only if there is such a file

    try:
        if wrong := impostor(path):
            raise DataError(f"expected an HDF5 file, found {wrong}")
        with h5py.File(path, "r") as file:
            stored = file.get("images")
            if not isinstance(stored, h5py.Dataset) or stored.dtype != np.uint8 or stored.shape[:1] != (n,):
                kind = "no array" if stored is None else f"{getattr(stored, 'dtype', 'a group')} of {stored.shape}"
                raise DataError(f"expected uint8 images of {n} rows under the name images, found {kind}")
            if stored.ndim not in (3, 4) or (stored.ndim == 4 and stored.shape[3] not in (1, 3)):
                raise DataError(f"expected images of 1 or 3 channels, last, found the shape {stored.shape}")
            notes = () if size is None else enlarged(stored.shape[1:3], size)
            blocks = [_block(stored[first : first + _BLOCK], channels, size) for first in range(0, n, _BLOCK)]
    except (OSError, RuntimeError, AttributeError) as error:
        raise DataError(f"truncated or not an HDF5 file ({error!s:.120})") from error
    return Stored(np.concatenate(blocks), tuple(f"{n} of {n} images: {note}" for note in notes))


def _block(rows: np.ndarray, channels: int, size: int | None) -> np.ndarray:
    """Rows (b, h, w[, c]) as (b, channels, size, size)."""
    images = rows[..., None] if rows.ndim == 3 else rows
    if images.shape[3] == 3 and channels == 1:
        weighed = images.astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)  # Pillow's "L"
        images = ((weighed + 32768) >> 16).astype(np.uint8)[..., None]
    images = images.transpose(0, 3, 1, 2).repeat(channels if images.shape[3] < channels else 1, axis=1)
    return images if size is None else np.stack([resize(image, size) for image in images])
