"""Tensors in a file between two processes: safetensors, checked on arrival, nothing unpickled, no link followed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""What a tensor may be called."""
KINDS = frozenset({
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
})  # fmt: skip
MOST_TENSORS = 10_000
MOST_DIMENSIONS = 16


class TensorsError(Exception):
    """A file, or a mapping, does not hold the tensors that may cross between processes."""


def pack_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
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
    # Views and expanded tensors share memory, which safetensors refuses: every tensor gets its own.
    content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def unpack_tensors(path: Path, cap_bytes: int) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU, with memory of their own: the file may change afterwards.

    Args:
        path: As for `pack_tensors`.
        cap_bytes: Most bytes that the file may hold.

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
        content = file.read(found.st_size + 1)
    if len(content) > found.st_size:
        raise TensorsError("a file of tensors must stay as it is while it is read, and it grew")
    try:
        tensors = load(content)
    except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError, RecursionError):
        raise TensorsError("a file of tensors must be safetensors, whole and with dtypes that are known") from None
    _check(tensors)
    return tensors


def _check(tensors: Mapping[str, Tensor]) -> None:
    if len(tensors) > MOST_TENSORS:
        raise TensorsError(f"at most {MOST_TENSORS} tensors may be handed over at once, got {len(tensors)}")
    for name, tensor in tensors.items():
        if NAME.fullmatch(name) is None:
            raise TensorsError(f"tensors must be named with A-Z, a-z, 0-9, _, . and -, got {_said(name)}")
        if tensor.dtype not in KINDS:
            raise TensorsError(f"tensor {name} must be of a plain dtype, got {tensor.dtype}")
        if tensor.dim() > MOST_DIMENSIONS:
            raise TensorsError(f"tensor {name} must have at most {MOST_DIMENSIONS} dimensions, got {tensor.dim()}")
        # Any byte but 0 and 1 as a truth value makes torch's own operations contradict one another.
        if tensor.dtype is torch.bool and tensor.numel() and int(tensor.view(torch.uint8).max()) > 1:
            raise TensorsError(f"tensor {name} must hold 0 and 1 alone, being of truth values")


def _said(name: str) -> str:
    return ascii(name[:40])
