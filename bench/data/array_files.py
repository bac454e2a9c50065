"""Arrays in NumPy and HDF5 files from outside, read without unpickling.

NumPy: shapes are checked against the bytes that are there. HDF5: images are read and resized block by block; they must
lie in the file itself, every chunk of them, for the format can also point to bytes of other files.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import psutil

from bench.contract.source import DataError
from bench.data.declared_size import PACKED, check_declared
from bench.data.picture import PIXELS, enlarged
from bench.data.sample_array import resize
from bench.disk.file_kind import impostor

if TYPE_CHECKING:
    from h5py import Dataset as Hdf5Dataset

_BLOCK = 128  # images
_BLOCK_BYTES = 1 << 28
_CHUNK_BYTES = 1 << 26
_SHUFFLE, _DEFLATE, _CHECKSUM = 2, 1, 3  # HDF5's numbers of filters
_FILTERS = frozenset({_SHUFFLE, _DEFLATE, _CHECKSUM})


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
    _check_memory(size, "an array")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_member(archive: ZipFile, name: str) -> np.ndarray:
    """Read an .npz member; raises as `read_array`, or KeyError."""
    info = archive.getinfo(name)
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DataError(f"{name} packed by method {info.compress_type}, expected deflate or none")
    ratio = 1 if info.compress_type == ZIP_STORED else PACKED
    check_declared(info.file_size, held=info.compress_size, noun=name, ratio=ratio)
    with archive.open(info) as member:
        return read_array(member, info.file_size)


def _check_memory(size: int, noun: str) -> None:
    if size > (memory := psutil.virtual_memory().total):
        raise DataError(f"{noun} of {size} bytes, more than the {memory} of this machine's memory")


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
            if isinstance(file.get("images", getlink=True), h5py.ExternalLink | h5py.SoftLink):
                raise DataError("expected images in the file itself, found a link to another place")
            stored = file.get("images")
            if not isinstance(stored, h5py.Dataset) or stored.dtype != np.uint8 or stored.shape[:1] != (n,):
                kind = "no array" if stored is None else f"{getattr(stored, 'dtype', 'a group')} of {stored.shape}"
                raise DataError(f"expected uint8 images of {n} rows under the name images, found {kind}")
            if stored.ndim not in (3, 4) or (stored.ndim == 4 and stored.shape[3] not in (1, 3)):
                raise DataError(f"expected images of 1 or 3 channels, last, found the shape {stored.shape}")
            _check_stored(stored, path.stat().st_size)
            side = math.prod(stored.shape[1:]) if size is None else channels * size * size
            _check_memory(n * side, "images")
            notes = () if size is None else enlarged(stored.shape[1:3], size)
            step = max(1, min(_BLOCK, _BLOCK_BYTES // math.prod(stored.shape[1:])))
            blocks = [_block(stored[first : first + step], channels, size) for first in range(0, n, step)]
    except (OSError, RuntimeError, AttributeError, zlib.error) as error:
        raise DataError(f"truncated or not an HDF5 file ({error!s:.120})") from error
    return Stored(np.concatenate(blocks), tuple(f"{n} of {n} images: {note}" for note in notes))


def _check_stored(stored: Hdf5Dataset, size: int) -> None:
    """Raise DataError unless an array lies in its file of `size` bytes."""
    if stored.is_virtual or stored.external is not None:
        raise DataError("expected images in the file itself, found an array that is made of other files")
    if not 0 < math.prod(stored.shape[1:3]) <= PIXELS:
        raise DataError(f"expected images of 1 to {PIXELS} pixels, found {stored.shape[1]} x {stored.shape[2]}")
    whole = math.prod(stored.shape)
    if stored.chunks is None:
        check_declared(whole, held=stored.id.get_storage_size(), noun="images", ratio=1)
        check_declared(whole, held=size, noun="images", ratio=1)
        return
    filters = [code for code, *_ in _filters(stored)]
    if not _FILTERS.issuperset(filters) or len(set(filters)) < len(filters):
        raise DataError(f"expected images packed by deflate or not at all, found the HDF5 filters {filters}")
    if filters and sorted(filters, key=(_SHUFFLE, _DEFLATE, _CHECKSUM).index) != filters:
        raise DataError(f"expected shuffle, deflate and checksum in this order, found the HDF5 filters {filters}")
    chunk = math.prod(stored.chunks)
    if chunk > _CHUNK_BYTES:
        raise DataError(f"expected chunks of at most {_CHUNK_BYTES} bytes, found {chunk}")
    check_declared(whole, held=size, noun="images", ratio=PACKED if _DEFLATE in filters else 1)
    expected = math.prod(-(-side // part) for side, part in zip(stored.shape, stored.chunks, strict=True))
    if (found := stored.id.get_num_chunks()) != expected:
        raise DataError(f"expected {expected} stored chunks of images, found {found}")
    for number in range(found) if _DEFLATE in filters else ():
        skipped, packed = stored.id.read_direct_chunk(stored.id.get_chunk_info(number).chunk_offset)
        if not skipped & 1 << filters.index(_DEFLATE):  # HDF5 would unpack it whatever its length
            stream = zlib.decompressobj()
            stream.decompress(packed, chunk)
            if stream.unconsumed_tail:
                raise DataError(f"a chunk of images unpacks to more than its {chunk} bytes")


def _filters(stored: Hdf5Dataset) -> Iterator[tuple[int, ...]]:
    made = stored.id.get_create_plist()
    return (made.get_filter(number) for number in range(made.get_nfilters()))


def _block(rows: np.ndarray, channels: int, size: int | None) -> np.ndarray:
    """Rows (b, h, w[, c]) as (b, channels, size, size)."""
    images = rows[..., None] if rows.ndim == 3 else rows
    if images.shape[3] == 3 and channels == 1:
        weighed = images.astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)  # Pillow's "L"
        images = ((weighed + 32768) >> 16).astype(np.uint8)[..., None]
    images = images.transpose(0, 3, 1, 2).repeat(channels if images.shape[3] < channels else 1, axis=1)
    return images if size is None else np.stack([resize(image, size) for image in images])
