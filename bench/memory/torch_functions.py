"""Torch functions on lazy rows: reductions, arithmetic, indexing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import Signature, signature
from types import EllipsisType, NoneType
from typing import Any, cast

import torch

from bench.memory.rows import Rows, as_they_are

GATHERED = frozenset({"mean", "sum", "var", "std", "std_mean", "var_mean", "amin", "amax", "min", "max", "all", "any"})
"""What is gathered block by block."""
OWN = frozenset({"linalg_vector_norm", "logsumexp"})
"""What is only of a row by itself."""
_TORCHS = {"axis": "dim", "keepdims": "keepdim"}
"""Torch's own words for NumPy's, which its functions take too."""
_EXTREMES: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "amin": torch.minimum, "min": torch.minimum, "amax": torch.maximum, "max": torch.maximum,
    "any": torch.logical_or, "all": torch.logical_and,
}  # fmt: skip


def gather(func: Callable[..., Any], rows: Rows, args: Sequence[Any], more: Mapping[str, Any]) -> Any:
    """The reduction `func` in blocks, sums in float64; NotImplemented for all rows."""
    name, options = func.__name__, {_TORCHS.get(key, key): value for key, value in more.items()}
    first = "ord" if name == "linalg_vector_norm" else "dim"
    if args and not (first in options or isinstance(args[0], bool | torch.Tensor)):
        options[first], args = args[0], args[1:]
    if args or any(isinstance(value, torch.Tensor) for value in options.values()) or not len(rows):
        return NotImplemented
    if name in ("any", "all") and options.get("dim") == []:  # along no axis, where it is along all to the others
        return NotImplemented
    dim, keep = options.pop("dim", None), bool(options.pop("keepdim", False))
    axes = [dim] if isinstance(dim, int) else tuple(dim or range(rows.ndim))
    if any(not -rows.ndim <= axis < rows.ndim for axis in axes):
        raise IndexError(f"dim must lie within {-rows.ndim}..{rows.ndim - 1}, got {dim}")
    places = tuple(sorted(axis % rows.ndim for axis in axes))
    if 0 not in places:  # each row by itself
        return _along_rows(func, rows, {**options, "dim": dim, "keepdim": keep}, name)
    if name in OWN:
        return NotImplemented
    if (name in ("min", "max") and dim is not None) or (name in ("any", "all") and len(places) not in (1, rows.ndim)):
        return NotImplemented
    if name in _EXTREMES:
        if options:
            return NotImplemented
        result = _extreme(name, rows, places)
    else:
        correction = options.pop("correction", options.pop("unbiased", True) if "unbiased" in options else 1)
        whole = name == "sum" and not rows.dtype.is_floating_point
        kind = options.pop("dtype", None) or (torch.int64 if whole else rows.dtype)
        if options or not (kind.is_floating_point or name == "sum"):
            return NotImplemented
        result = _moments(name, rows, places, int(1 if correction is None else correction), kind)

    def shaped(part: torch.Tensor) -> torch.Tensor:
        return part if keep else part.reshape([side for axis, side in enumerate(part.shape) if axis not in places])

    return tuple(map(shaped, result)) if isinstance(result, tuple) else shaped(result)


def _along_rows(func: Callable[..., Any], rows: Rows, more: Mapping[str, Any], name: str) -> Any:
    """Each row's own: small, and so an ordinary tensor."""
    if name in ("min", "max", "std_mean", "var_mean"):
        return NotImplemented
    return torch.cat([func(part, **more) for _, part in rows.blocks()])


def _extreme(name: str, rows: Rows, places: tuple[int, ...]) -> torch.Tensor:
    kind = torch.uint8 if rows.dtype == torch.uint8 else torch.bool  # as torch has it

    def of(part: torch.Tensor) -> torch.Tensor:
        if name in ("any", "all"):
            flat = part.bool()
            for axis in places:
                flat = flat.any(dim=axis, keepdim=True) if name == "any" else flat.all(dim=axis, keepdim=True)
            return flat.to(kind)
        low = name in ("amin", "min")
        return part.amin(dim=places, keepdim=True) if low else part.amax(dim=places, keepdim=True)

    blocks = (of(part) for _, part in rows.blocks())
    result = next(blocks)
    for part in blocks:
        result = _EXTREMES[name](result, part).to(result.dtype)
    return result


def _moments(name: str, rows: Rows, places: tuple[int, ...], correction: int, kind: torch.dtype) -> Any:
    """Mean, variance and so on, in two passes."""
    count = 1
    for axis in places:
        count *= rows.shape[axis]
    wide = torch.float64 if kind.is_floating_point else torch.int64

    def total(parts: Iterator[torch.Tensor]) -> torch.Tensor:
        result = next(parts)
        for part in parts:
            result = result + part
        return result

    sums = total(part.to(wide).sum(dim=places, keepdim=True) for _, part in rows.blocks())
    if name == "sum":
        return sums.to(kind)
    mean = sums / count
    if name == "mean":
        return mean.to(kind)
    squares = total((part.to(wide) - mean).square_().sum(dim=places, keepdim=True) for _, part in rows.blocks())
    variance = squares / max(count - correction, 0)
    spread = variance if name.startswith("var") else variance.sqrt()
    return (spread.to(kind), mean.to(kind)) if name.endswith("_mean") else spread.to(kind)


ABOUT = frozenset({
    "__get__", "__len__", "size", "dim", "ndimension", "numel", "nelement", "element_size", "is_floating_point",
    "is_complex", "stride", "is_contiguous", "get_device", "is_pinned", "is_conj", "is_neg", "is_inference",
})  # fmt: skip
"""Asked of a tensor without its numbers."""
SAME = frozenset({"detach", "contiguous", "__deepcopy__"})
"""Gives the rows themselves."""
LIKE = frozenset({"to", "type_as"})
"""Asks a tensor for no more than its kind and place."""
ROW_BY_ROW = frozenset({
    "abs", "absolute", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bool", "ceil", "clamp", "clamp_max",
    "clamp_min", "clip", "div", "double", "eq", "exp", "float", "floor", "ge", "gt", "half", "int", "isfinite",
    "isinf", "isnan", "le", "log", "log1p", "logical_and", "logical_not", "logical_or", "long", "lt", "maximum",
    "minimum", "mul", "multiply", "nan_to_num", "ne", "neg", "pow", "reciprocal", "round", "rsub", "sigmoid", "sign",
    "sqrt", "square", "sub", "subtract", "tanh", "true_divide", "trunc", "where",
    "__abs__", "__add__", "__and__", "__eq__", "__ge__", "__gt__", "__invert__", "__le__", "__lt__", "__mul__",
    "__ne__", "__neg__", "__or__", "__pow__", "__radd__", "__rmul__", "__rsub__", "__rtruediv__", "__rdiv__", "__sub__",
    "__truediv__", "__div__",
})  # fmt: skip
"""What gives each row its own, element by element."""
WRITING = frozenset({"__setitem__", "__set__", "__delete__"})  # beside what ends in _


def refuse_writing(name: str, args: Sequence[Any], more: Mapping[str, Any]) -> None:
    """Raise TypeError for a function that would write into rows."""
    writes = name in WRITING or (name.endswith("_") and not name.endswith("__"))
    if (writes and args and isinstance(args[0], Rows)) or isinstance(more.get("out"), Rows):
        raise TypeError(f"rows that are read where they are used cannot be written to (by {name}): copy some first")


def answer(func: Callable[..., Any], name: str, args: Sequence[Any], more: Mapping[str, Any]) -> Any:
    """Result of a function without all rows; NotImplemented if it needs them."""
    first = args[0] if args else None
    if name in ROW_BY_ROW and "out" not in more:
        return _row_by_row(func, args, more)
    if name in ("cat", "concatenate", "concat") and "out" not in more:
        return _asked(_joined, args, more)
    if name == "equal":
        return _asked(_equal, args, more)
    if first is not None and not isinstance(first, Rows):
        like = args[1] if name in LIKE and len(args) == 2 and not more else None
        return first.to(like.device, like.dtype) if isinstance(like, Rows) else NotImplemented
    if not isinstance(first, Rows):
        return NotImplemented
    if name in SAME:
        return first
    if name.startswith("new_"):
        return getattr(torch.empty(0, dtype=first.dtype, device=first.device), name)(*args[1:], **more)
    if name in (GATHERED | OWN) and "out" not in more:
        return gather(func, first, args[1:], more)
    return _asked(_OWN[name], args, more) if name in _OWN else NotImplemented


def plain(value: object) -> object:
    """An ordinary tensor in place of rows (or TooLargeError); other values unchanged."""
    return value.whole() if isinstance(value, Rows) else value


def _asked(answers: Callable[..., Any], args: Sequence[Any], more: Mapping[str, Any]) -> Any:
    """Answer to these arguments; NotImplemented for others torch accepts."""
    try:
        _signature(answers).bind(*args, **more)
    except TypeError:
        return NotImplemented
    return answers(*args, **more)


@cache
def _signature(answers: Callable[..., Any]) -> Signature:
    return signature(answers)


def _row_by_row(func: Callable[..., Any], args: Sequence[Any], more: Mapping[str, Any]) -> Any:
    """Lazy result of an elementwise function on n rows."""
    rows = next((value for value in args if isinstance(value, Rows)), None)
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if rows is None or not len(rows) or any(isinstance(value, torch.Tensor) for value in more.values()):
        return NotImplemented
    n, most = len(rows), max(value.ndim for value in tensors)
    own = [isinstance(value, torch.Tensor) and value.ndim == most and len(value) == n for value in args]
    for value, its_own in zip(args, own, strict=True):
        if isinstance(value, Rows) and not its_own:
            return NotImplemented
        if isinstance(value, torch.Tensor) and not its_own and value.ndim == most and len(value) != 1:
            return NotImplemented
    check = as_they_are(args)

    def read(index: torch.Tensor) -> torch.Tensor:
        check()
        values = [
            value if not its_own else value.read(index) if isinstance(value, Rows) else value[index.to(value.device)]
            for value, its_own in zip(args, own, strict=True)
        ]
        return cast(torch.Tensor, func(*values, **more))

    probe: object = read(torch.zeros(1, dtype=torch.int64))
    if probe is NotImplemented:  # Python asks the other operand
        raise TypeError(f"{func.__name__} takes no {' and '.join(type(value).__name__ for value in args)}")
    if not isinstance(probe, torch.Tensor):
        return NotImplemented
    return rows.like(read, (n, *probe.shape[1:]), probe.dtype, probe.device)


def _joined(parts: Sequence[torch.Tensor], dim: int = 0) -> Any:
    """Rows of several sets, one after another."""
    first = next(part for part in parts if isinstance(part, Rows))
    if dim != 0 or any(part.dtype != first.dtype or part.shape[1:] != first.shape[1:] for part in parts):
        return NotImplemented
    ends, check = torch.tensor([len(part) for part in parts]).cumsum(0), as_they_are(parts)

    def read(index: torch.Tensor) -> torch.Tensor:
        check()
        rows = torch.empty((len(index), *first.shape[1:]), dtype=first.dtype, device=first.device)
        part_numbers = torch.searchsorted(ends, index, right=True)
        for number in sorted(set(part_numbers.tolist())):
            here, part = (part_numbers == number).nonzero()[:, 0], parts[number]
            places = index[here] - (int(ends[number]) - len(part))
            some = part.read(places) if isinstance(part, Rows) else part[places.to(part.device)]
            rows[here.to(rows.device)] = some.to(rows.device)
        return rows

    return first.like(read, (int(ends[-1]), *first.shape[1:]))


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    rows, other = (a, b) if isinstance(a, Rows) else (cast(Rows, b), a)
    return all(torch.equal(part, other[place]) for place, part in rows.blocks())


def _getitem(rows: Rows, key: Any) -> Any:
    if isinstance(key, tuple) and not key:
        return rows
    head, rest = (key[0], key[1:]) if isinstance(key, tuple) else (key, ())
    if isinstance(head, bool) or head is None or head is Ellipsis:
        return NotImplemented
    if rest:
        if isinstance(head, slice) and head == slice(None):
            return NotImplemented if _leads(rest) else rows.map(lambda part: part[(slice(None), *rest)])
        if isinstance(head, int):
            return _getitem(rows, head)[rest]
        return _getitem(rows, head)[(slice(None), *rest)] if isinstance(head, slice) else NotImplemented
    if isinstance(head, slice):
        return rows.some(torch.arange(len(rows))[head])
    index = torch.as_tensor(head)
    if index.is_floating_point() and not index.numel():  # an empty list
        index = index.long()
    if index.ndim > 1 or (index.ndim == 0 and index.dtype == torch.bool) or index.dtype == torch.uint8:
        return NotImplemented
    return rows.some(index[None])[0] if index.ndim == 0 else rows.some(index)


def _leads(rest: Sequence[Any]) -> bool:
    """True if advanced indices are not adjacent, or have two axes."""
    by = [at for at, index in enumerate(rest) if not isinstance(index, int | slice | NoneType | EllipsisType)]
    if any(isinstance(rest[at], torch.Tensor) and rest[at].ndim == 2 for at in by):
        return True
    return len(by) > 1 and by[-1] - by[0] >= len(by)


def _split(rows: Rows, split_size: int | Sequence[int], dim: int = 0) -> Any:
    if dim != 0:
        return NotImplemented
    return tuple(rows.at(part) for part in torch.arange(len(rows)).split(split_size))  # type: ignore[no-untyped-call]


def _matmul(rows: Rows, other: torch.Tensor) -> Any:
    if rows.ndim != 2 or not isinstance(other, torch.Tensor) or isinstance(other, Rows) or other.ndim != 2:
        return NotImplemented
    return rows.times(other)


def _flatten(rows: Rows, start_dim: int = 0, end_dim: int = -1) -> Any:
    return rows.map(lambda part: part.flatten(start_dim, end_dim)) if start_dim >= 1 else NotImplemented


def _reshape(rows: Rows, *shape: Any, **more: Any) -> Any:
    if more or not shape or isinstance(shape[0], torch.dtype):
        return NotImplemented
    whole = torch.empty(tuple(rows.shape), device="meta").reshape(*shape).shape
    if not len(rows) or not whole or whole[0] != len(rows):
        return NotImplemented
    return rows.map(lambda part: part.reshape(len(part), *whole[1:]))


def _permute(rows: Rows, *dims: Any) -> Any:
    order: Sequence[int] = dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims
    return rows.map(lambda part: part.permute(*order)) if order and order[0] in (0, -rows.ndim) else NotImplemented


def _transpose(rows: Rows, dim0: int, dim1: int) -> Any:
    if {dim0, dim1} & {0, -rows.ndim}:
        return NotImplemented
    return rows.map(lambda part: part.transpose(dim0, dim1))


def _to(rows: Rows, *what: Any, **more: Any) -> Any:
    result = rows
    for target in (*what, *more.values()):
        if isinstance(target, torch.Tensor):
            result = _to(result, target.dtype, target.device)
        elif isinstance(target, torch.dtype):
            result = result if target == result.dtype else result.map(lambda part, to=target: part.to(to))  # type: ignore[misc]
        elif isinstance(target, torch.device | str):
            result = result.on(torch.device(target))
    return result


_OWN: Mapping[str, Callable[..., Any]] = {
    "__getitem__": _getitem,
    "matmul": _matmul,
    "__matmul__": _matmul,
    "mm": _matmul,
    "index_select": lambda rows, dim, index: rows.some(index) if dim == 0 else NotImplemented,
    "split": _split,
    "flatten": _flatten,
    "reshape": _reshape,
    "view": _reshape,
    "permute": _permute,
    "transpose": _transpose,
    "to": _to,
    "cpu": lambda rows: rows.on(torch.device("cpu")),
    "unsqueeze": lambda rows, dim: rows.map(lambda part: part.unsqueeze(dim)) if dim >= 1 else NotImplemented,
    "__iter__": lambda rows: iter(rows),
    "__format__": lambda rows, how: format(repr(rows), how),
}
"""What is answered without reading all rows."""


class RowsTensor(Rows, torch.Tensor):
    """The tensor that `Rows` are. It asks the functions above first."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Result of torch's `func` on rows. Raises TypeError if it writes."""
        name, more = getattr(func, "__name__", ""), dict(kwargs or {})
        refuse_writing(name, args, more)
        if name in ABOUT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **more)
        result = answer(func, name, args, more)
        return (
            func(*torch.utils._pytree.tree_map(plain, tuple(args)), **torch.utils._pytree.tree_map(plain, more))
            if result is NotImplemented
            else result
        )

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same for what calls torch from below Python."""
        return func(
            *torch.utils._pytree.tree_map(plain, tuple(args)), **torch.utils._pytree.tree_map(plain, dict(kwargs or {}))
        )
