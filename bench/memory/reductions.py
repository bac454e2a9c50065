"""Sums, means, extremes and the like of rows that are read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from bench.memory.lazy import Lazy

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


def gather(func: Callable[..., Any], rows: Lazy, args: Sequence[Any], more: Mapping[str, Any]) -> Any:
    """The reduction `func` of rows; NotImplemented for one that needs all rows at once.

    Along other axes than that of the rows it is `func`'s own; along that of the rows sums are added up in float64.
    """
    name, told = func.__name__, {_TORCHS.get(key, key): value for key, value in more.items()}
    first = "ord" if name == "linalg_vector_norm" else "dim"
    if args and not (first in told or isinstance(args[0], bool | torch.Tensor)):
        told[first], args = args[0], args[1:]
    if args or any(isinstance(each, torch.Tensor) for each in told.values()) or not len(rows):
        return NotImplemented
    if name in ("any", "all") and told.get("dim") == []:  # along no axis, where it is along all to the others
        return NotImplemented
    dim, keep = told.pop("dim", None), bool(told.pop("keepdim", False))
    axes = [dim] if isinstance(dim, int) else tuple(dim or range(rows.ndim))
    if any(not -rows.ndim <= axis < rows.ndim for axis in axes):
        raise IndexError(f"dim must lie within {-rows.ndim}..{rows.ndim - 1}, got {dim}")
    places = tuple(sorted(axis % rows.ndim for axis in axes))
    if 0 not in places:  # each row by itself
        return _along_rows(func, rows, {**told, "dim": dim, "keepdim": keep}, name)
    if name in OWN:
        return NotImplemented
    if (name in ("min", "max") and dim is not None) or (name in ("any", "all") and len(places) not in (1, rows.ndim)):
        return NotImplemented
    if name in _EXTREMES:
        if told:
            return NotImplemented
        found = _extreme(name, rows, places)
    else:
        correction = told.pop("correction", told.pop("unbiased", True) if "unbiased" in told else 1)
        whole = name == "sum" and not rows.dtype.is_floating_point
        kind = told.pop("dtype", None) or (torch.int64 if whole else rows.dtype)
        if told or not (kind.is_floating_point or name == "sum"):
            return NotImplemented
        found = _moments(name, rows, places, int(1 if correction is None else correction), kind)

    def shaped(part: torch.Tensor) -> torch.Tensor:
        return part if keep else part.reshape([side for axis, side in enumerate(part.shape) if axis not in places])

    return tuple(map(shaped, found)) if isinstance(found, tuple) else shaped(found)


def _along_rows(func: Callable[..., Any], rows: Lazy, more: Mapping[str, Any], name: str) -> Any:
    """Each row's own: small, and so an ordinary tensor."""
    if name in ("min", "max", "std_mean", "var_mean"):
        return NotImplemented
    return torch.cat([func(part, **more) for _, part in rows.blocks()])


def _extreme(name: str, rows: Lazy, places: tuple[int, ...]) -> torch.Tensor:
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
    found = next(blocks)
    for part in blocks:
        found = _EXTREMES[name](found, part).to(found.dtype)
    return found


def _moments(name: str, rows: Lazy, places: tuple[int, ...], correction: int, kind: torch.dtype) -> Any:
    """Mean, variance and so on: in two passes, the second about the mean."""
    count = 1
    for axis in places:
        count *= rows.shape[axis]
    wide = torch.float64 if kind.is_floating_point else torch.int64

    def total(parts: Iterator[torch.Tensor]) -> torch.Tensor:
        found = next(parts)
        for part in parts:
            found = found + part
        return found

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
