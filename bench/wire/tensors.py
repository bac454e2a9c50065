"""Tensors in a file between two processes: safetensors, checked on arrival, nothing unpickled, no link followed."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO

import safetensors.torch
import torch
from safetensors import SafetensorError

from bench.memory.memory_budget import Budget
from bench.wire.tensor_file import read_tensors, write_tensors

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""What a tensor may be called."""
KINDS = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"})
MOST_TENSORS = 10_000
COPIED = 16 << 20  # bytes at a time
MOST_DIMENSIONS = 16


class TensorsError(Exception):
    """A file, or a mapping, does not hold the tensors that may cross between processes."""


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
    """The tensors of a file, on the CPU, with memory or a file of their own: the file may change afterwards.

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
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise TensorsError("tensors must come in a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > cap_bytes:
            raise TensorsError(f"a file of tensors must take at most {cap_bytes} bytes, got {found.st_size}")
        if budget is None or found.st_size <= budget.plain:
            content = file.read(found.st_size + 1)
            if len(content) > found.st_size:
                raise TensorsError("a file of tensors must stay as it is while it is read, and it grew")
            read = partial(safetensors.torch.load, content)
        else:
            read = partial(_read_copy, file, found.st_size, budget)
        return _read(read)


def _read(read: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    try:
        tensors = read()
    except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError, RecursionError):
        raise TensorsError("a file of tensors must be safetensors, whole and with dtypes that are known") from None
    _check(tensors)
    return tensors


def _read_copy(file: IO[bytes], length: int, budget: Budget) -> dict[str, torch.Tensor]:
    """The tensors of so many bytes, from a copy that nobody else can write."""
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
