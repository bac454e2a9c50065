"""Files of tensors in the safetensors format, written a block at a time and read without copying what is large."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import safe_open

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
    """What takes the bytes of a file in order."""

    def write(self, content: bytes | memoryview, /) -> int:
        """Take some more."""


def write_tensors(file: Written, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors, of which `Rows` are read block by block, as they are stored.

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
    """In what kind of number a tensor is written, and in which shape."""
    if isinstance(tensor, Rows) and tensor.stored is not None:
        return tensor.stored.raw(torch.arange(min(1, len(tensor)))).dtype, tuple(tensor.shape)
    return tensor.dtype, tuple(tensor.shape)


def read_tensors(path: Path, budget: Budget | None) -> dict[str, torch.Tensor]:
    """The tensors of a file that stays as it is: with memory of their own, or as `Rows` over it where they are large.

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
