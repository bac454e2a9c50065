"""Evidence as bytes and back, so that metrics can be recomputed.

A safetensors file. Numbers of one kind lie in one tensor, end to end, each in the narrowest kind that gives the very
same bits back (counts fit into bytes); the file's header is a table of contents in JSON. The evaluator declares the
types that are read, so that the file cannot choose them, and no code of its author runs.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import safetensors.torch
import torch
from safetensors import SafetensorError

from bench.plugins.spec import is_required

NARROWER = ("bool", "uint8", "int16", "float16", "int32", "float32")
KINDS = frozenset({*NARROWER, "int8", "int64", "float64"})
HEADER = "evidence"
MOST_DEEP = 24
MOST_BYTES = 8 * 2**20
"""Most bytes of a record's evidence. Larger evidence is not kept; its record can be run again."""
MOST_BOUND = 1 << 10  # that the key of its record takes besides
MOST_TIMES = 4  # a number is read once, and again where several types are tried


class EvidenceError(Exception):
    """A file holds no valid evidence of the expected type."""


def pack(evidence: Mapping[str, object]) -> bytes:
    """The bytes from which `unpack` gives the same evidence.

    Raises:
        EvidenceError: It holds something that no file could (an open file, a function).
    """
    heap = _Heap()
    tree = {name: heap.put(part, 0) for name, part in evidence.items()}
    tensors = {name: torch.cat(parts) for name, parts in heap.parts.items()}
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
    packed: bytes = safetensors.torch.save(
        tensors or {"uint8": torch.zeros(0, dtype=torch.uint8)}, metadata={HEADER: text}
    )
    return packed


class _Heap:
    """Tensors end to end, by the kind that they are kept in."""

    def __init__(self) -> None:
        self.parts: dict[str, list[torch.Tensor]] = {}
        self.lengths: dict[str, int] = {}

    def put(self, value: object, depth: int) -> Any:
        if depth > MOST_DEEP:
            raise EvidenceError(f"evidence must be at most {MOST_DEEP} levels deep")
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: self.put(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return [[self.put(key, depth + 1), self.put(each, depth + 1)] for key, each in value.items()]
        if isinstance(value, str) or value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else repr(value)
        if isinstance(value, Sequence):
            return [self.put(each, depth + 1) for each in value]
        raise EvidenceError(f"evidence must be dataclasses, tensors and plain values, got {type(value).__name__}")

    def _tensor(self, tensor: torch.Tensor) -> list[Any]:
        """The tensor's kind and shape, and its place in the heap."""
        own = tensor.detach().cpu().contiguous()
        kept = _narrowed(own)
        name, was = (str(each.dtype).removeprefix("torch.") for each in (kept, own))
        if was not in KINDS:
            raise EvidenceError(f"tensors of evidence must be of a plain kind, got {own.dtype}")
        start = self.lengths.get(name, 0)
        self.parts.setdefault(name, []).append(kept.reshape(-1))
        self.lengths[name] = start + kept.numel()
        return [was, list(own.shape), name, start]


def _narrowed(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers in the narrowest kind that keeps every bit."""
    if tensor.dtype == torch.bool:
        return tensor
    for kind in (getattr(torch, name) for name in NARROWER):
        if kind.itemsize >= tensor.dtype.itemsize:
            continue
        narrow = tensor.to(kind)
        if _bits(narrow.to(tensor.dtype)).equal(_bits(tensor)):
            return narrow
    return tensor


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


RECORD = "record"


def bind(content: bytes, record: str) -> bytes:
    """The bytes of `pack` with the key of their record."""
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    head["__metadata__"] = {**head["__metadata__"], RECORD: record}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of 8 bytes
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def bound_to(content: bytes) -> str | None:
    """The key of the record that evidence names, or None."""
    size = int.from_bytes(content[:8], "little")
    try:
        found = json.loads(content[8 : 8 + size]).get("__metadata__", {}).get(RECORD)
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def unpack(content: bytes, kind: type) -> dict[str, object]:
    """The evidence that `pack` wrote, by part, each of the type `kind`.

    Raises:
        EvidenceError: It is no such file, or holds something else.
    """
    try:
        tree, tensors = json.loads(_header(content)), safetensors.torch.load(content)
        if not isinstance(tree, dict):
            raise EvidenceError("the header of evidence must be an object")
        if len(content) > MOST_BYTES + MOST_BOUND:
            raise EvidenceError(f"evidence takes at most {MOST_BYTES} bytes, and this {len(content)}")
        reader = _Reader({name: tensor for name, tensor in tensors.items() if name in KINDS})
        return {str(name): reader.get(kind, part, 0) for name, part in tree.items()}
    except EvidenceError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, IndexError, RuntimeError, RecursionError) as error:
        raise EvidenceError(f"it is no evidence of the kind {kind.__name__}: {type(error).__name__}") from error


def _header(content: bytes) -> str:
    size = int.from_bytes(content[:8], "little")
    if size > len(content) - 8:
        raise EvidenceError("it is no safetensors file")
    found = json.loads(content[8 : 8 + size]).get("__metadata__", {}).get(HEADER)
    if not isinstance(found, str):
        raise EvidenceError("it is a safetensors file without evidence")
    return found


class _Reader:
    def __init__(self, heap: Mapping[str, torch.Tensor]) -> None:
        self.heap = heap
        self.left = MOST_TIMES * sum(map(len, heap.values()))  # numbers that may still be read

    def get(self, hint: Any, node: Any, depth: int) -> Any:
        """The value of `node`, which must have the type `hint`."""
        if depth > MOST_DEEP:
            raise EvidenceError(f"evidence must be at most {MOST_DEEP} levels deep")
        origin, inner = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._either(inner, node, depth)
        if origin is Literal:
            if node not in inner:
                raise EvidenceError(f"expected one of {inner}, got {node!r:.40}")
            return node
        if hint is torch.Tensor:
            return self._tensor(node)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._dataclass(hint, node, depth)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {self.get(inner[0], key, depth + 1): self.get(inner[1], each, depth + 1) for key, each in node}
        if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
            return tuple(self.get(each, part, depth + 1) for each, part in zip(inner, node, strict=True))
        if isinstance(origin, type) and issubclass(origin, Sequence):
            made = [self.get(inner[0], part, depth + 1) for part in node]
            return tuple(made) if origin is tuple else made
        return _plain(hint, node)

    def _either(self, hints: tuple[Any, ...], node: Any, depth: int) -> Any:
        if node is None and type(None) in hints:
            return None
        for hint in hints:
            if hint is not type(None):
                with_hint = _attempt(self, hint, node, depth)
                if with_hint is not _NONE:
                    return with_hint
        raise EvidenceError(f"nothing that was expected fits {node!r:.40}")

    def _dataclass(self, hint: type, node: Any, depth: int) -> Any:
        hints = _hints(hint)
        fields = [field for field in dataclasses.fields(cast(Any, hint)) if field.init]
        names, needed = {field.name for field in fields}, {field.name for field in fields if is_required(field)}
        if not isinstance(node, dict) or not needed <= node.keys() <= names:
            raise EvidenceError(
                f"{hint.__name__} must have the fields {', '.join(sorted(needed))}, and may have "
                f"{', '.join(sorted(names - needed)) or 'no other'}"
            )
        return hint(**{name: self.get(hints[name], part, depth + 1) for name, part in node.items()})

    def _tensor(self, node: Any) -> torch.Tensor:
        was, shape, name, start = node
        length = math.prod(shape)
        if min([start, *shape], default=0) < 0 or start + length > len(self.heap[name]):
            raise EvidenceError("a tensor lies outside the file")
        self.left -= length
        if self.left < 0:
            raise EvidenceError(f"its tensors take more than {MOST_TIMES} times the numbers that the file holds")
        if was not in KINDS:
            raise EvidenceError(f"tensors of evidence must be of a plain kind, got {was}")
        return self.heap[name][start : start + length].to(getattr(torch, was)).reshape(shape).clone()


_NONE = object()


def _attempt(reader: _Reader, hint: Any, node: Any, depth: int) -> Any:
    try:
        return reader.get(hint, node, depth)
    except (EvidenceError, TypeError, ValueError, KeyError):
        return _NONE


def _plain(hint: Any, node: Any) -> Any:
    if hint is float and isinstance(node, int | float | str) and not isinstance(node, bool):
        return float(node)
    if hint in (int, str, bool) and type(node) is hint:
        return node
    raise EvidenceError(f"expected {getattr(hint, '__name__', hint)}, got {type(node).__name__}")


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)
