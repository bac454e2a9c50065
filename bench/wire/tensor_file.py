"""Tensors in safetensors files: written in blocks, checked on arrival.

Nothing is unpickled, and no link is followed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows

NAMES: Mapping[str, str] = {
    "torch.bool": "BOOL", "torch.uint8": "U8", "torch.int8": "I8", "torch.int16": "I16", "torch.int32": "I32",
    "torch.int64": "I64", "torch.float16": "F16", "torch.bfloat16": "BF16", "torch.float32": "F32",
    "torch.float64": "F64", "torch.uint16": "U16", "torch.uint32": "U32", "torch.uint64": "U64",
}  # fmt: skip
"""The format's name of each dtype, by `str(dtype)`."""
HELD = frozenset({"torch.uint8", "torch.int32", "torch.float16", "torch.float32", "torch.float64"})
"""What rows may be stored as."""
FLOAT_BYTES = 4
ALIGNED = 8
BLOCK_BYTES = 16 << 20


class Written(Protocol):
    """A file that takes bytes in order."""

    def write(self, content: bytes | memoryview, /) -> int:
        """Take some more."""


def write_tensors(file: Written, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors; `Rows` are read and written block by block.

    Raises:
        ValueError: A kind of number that the format has no name for.
    """
    header: dict[str, object] = {}
    at = 0
    order = sorted(tensors, key=lambda name: (-stored_as(tensors[name])[0].itemsize, name))  # so that each is aligned
    for name in order:
        kind, shape = stored_as(tensors[name])
        if str(kind) not in NAMES:
            raise ValueError(f"tensor {name} cannot be written: {kind} has no name in safetensors")
        end = at + math.prod(shape) * kind.itemsize
        header[name] = {"dtype": NAMES[str(kind)], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        for part in _blocks(tensors[name]):
            file.write(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


def checksum_of(tensors: Mapping[str, torch.Tensor]) -> str:
    """The SHA-256 of the file that `write_tensors` would write."""
    hashed = _Hashed()
    write_tensors(hashed, tensors)
    return hashed.sha256.hexdigest()


class _Hashed:
    """A file that keeps nothing but its hash."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, content: bytes | memoryview) -> int:
        """Take some more."""
        self.sha256.update(content)
        return len(content)


def stored_as(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...]]:
    """The stored dtype and shape of a tensor."""
    if isinstance(tensor, Rows) and tensor.stored is not None:
        return tensor.stored.raw(torch.arange(min(1, len(tensor)))).dtype, tuple(tensor.shape)
    return tensor.dtype, tuple(tensor.shape)


def read_tensors(path: Path, budget: Budget | None) -> dict[str, torch.Tensor]:
    """The tensors of an unchanging file, large ones as `Rows` over it.

    Args:
        path: Of the file, which may go afterwards.
        budget: None reads all of them into memory.
    """
    with safe_open(str(path), framework="pt") as file:
        return {name: _held(file.get_tensor(name), budget) for name in file.keys()}  # noqa: SIM118


def read_tensor(path: Path, name: str, budget: Budget | None) -> torch.Tensor:
    """One of them."""
    with safe_open(str(path), framework="pt") as file:
        return _held(file.get_tensor(name), budget)


def _held(tensor: torch.Tensor, budget: Budget | None) -> torch.Tensor:
    small = budget is None or tensor.numel() * max(tensor.itemsize, FLOAT_BYTES) <= budget.plain
    if budget is None or small or tensor.ndim < 2 or str(tensor.dtype) not in HELD:
        return tensor.clone()
    return Rows.of(tensor, budget, dtype=tensor.dtype)


def _blocks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if not isinstance(tensor, Rows):
        yield tensor
        return
    each = max(1, math.prod(tensor.shape[1:]) * tensor.dtype.itemsize)
    step = max(1, min(BLOCK_BYTES, tensor.budget.block) // each)
    for start in range(0, len(tensor), step):
        places = torch.arange(start, min(start + step, len(tensor)))
        yield tensor.read(places) if tensor.stored is None else tensor.stored.raw(places)


NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""What a tensor may be called."""
KINDS = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"})
MOST_TENSORS = 10_000
COPIED = 16 << 20  # bytes at a time
MOST_DIMENSIONS = 16


class TensorsError(Exception):
    """A file or mapping holds tensors that may not cross between processes."""


def pack_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a new file, for its owner's eyes alone.

    The folder, and those above it, must be ones in which the other process cannot put a link; the file itself may
    stand where that process writes: one that is there already, or a link, is refused.

    Raises:
        TensorsError: A name, dtype, layout or number of tensors that `unpack_tensors` would refuse.
        FileExistsError: Something is there.
    """
    for name, tensor in tensors.items():
        if tensor.layout is not torch.strided:
            raise TensorsError(f"tensor {_said(name)} must be dense")
    _check(tensors)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        write_tensors(file, tensors)


def unpack_tensors(path: Path, cap_bytes: int, budget: Budget | None = None) -> dict[str, torch.Tensor]:
    """Tensors of a file on the CPU, copied: the file may change.

    Args:
        path: As for `pack_tensors`.
        cap_bytes: Most bytes that the file may hold.
        budget: By which large ones become `Rows`; None reads all into memory.

    Raises:
        TensorsError: No regular file, too long, no safetensors, or tensors with other names, dtypes or dimensions.
        FileNotFoundError: Nothing is there.
    """
    try:
        # O_NONBLOCK: opening a FIFO would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TensorsError(f"tensors must come in a regular file: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise TensorsError("tensors must come in a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > cap_bytes:
            raise TensorsError(f"a file of tensors must take at most {cap_bytes} bytes, got {status.st_size}")
        if budget is None or status.st_size <= budget.plain:
            content = file.read(status.st_size + 1)
            if len(content) > status.st_size:
                raise TensorsError("a file of tensors must stay as it is while it is read, and it grew")
            read = partial(safetensors.torch.load, content)
        else:
            read = partial(_read_copy, file, status.st_size, budget)
        return _read(read)


def _read(read: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    try:
        tensors = read()
    except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError, RecursionError):
        raise TensorsError("a file of tensors must be safetensors, whole and with dtypes that are known") from None
    _check(tensors)
    return tensors


def _read_copy(file: IO[bytes], length: int, budget: Budget) -> dict[str, torch.Tensor]:
    """The tensors of so many bytes, from a private copy."""
    with tempfile.NamedTemporaryFile(dir=budget.made_folder()) as own:
        left = length
        while left and (part := file.read(min(left, COPIED))):
            own.write(part)
            left -= len(part)
        own.flush()
        return read_tensors(Path(own.name), budget)


def _check(tensors: Mapping[str, torch.Tensor]) -> None:
    if len(tensors) > MOST_TENSORS:
        raise TensorsError(f"at most {MOST_TENSORS} tensors may be handed over at once, got {len(tensors)}")
    for name, tensor in tensors.items():
        if NAME.fullmatch(name) is None:
            raise TensorsError(f"tensors must be named with A-Z, a-z, 0-9, _, . and -, got {_said(name)}")
        if str(tensor.dtype).removeprefix("torch.") not in KINDS:
            raise TensorsError(f"tensor {name} must be of a plain dtype, got {tensor.dtype}")
        if tensor.dim() > MOST_DIMENSIONS:
            raise TensorsError(f"tensor {name} must have at most {MOST_DIMENSIONS} dimensions, got {tensor.dim()}")
        # Any byte but 0 and 1 as a truth value makes torch's own operations contradict one another.
        if tensor.dtype is torch.bool and tensor.numel() and int(tensor.view(torch.uint8).max()) > 1:
            raise TensorsError(f"tensor {name} must hold 0 and 1 alone, being of truth values")


def _said(name: str) -> str:
    return ascii(name[:40])
