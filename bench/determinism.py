"""Deterministic arithmetic: float32 without rounding, and the same bits each time.

`exact` makes torch deterministic; an operation without a deterministic kernel is an error from then on. For medians and
other order statistics along an axis, a stable sort gives the same values: `register` puts those forms in their place.

Source: PyTorch, `torch.use_deterministic_algorithms`: the operations listed there as errors that a sort can replace.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TypeAlias

import torch

Chosen: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"


def exact(device: torch.device | str) -> torch.device:
    """Make this process deterministic on a device, before its first use.

    A CPU is so already. On CUDA, convolutions round to TensorFloat-32 and the fastest kernels add in any order:
    both are turned off for the whole process.
    """
    device = torch.device(device)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
    return device


@cache
def register() -> torch.library.Library:
    """Use the forms below on CUDA while the returned library lives."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, form in FORMS.items():
        library.impl(name, form, "CUDA")  # type: ignore[no-untyped-call]
    return library


def kthvalue(rows: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The k-th smallest number (NaN largest) and its first index.

    >>> kthvalue(torch.tensor([3.0, 1.0, 2.0, 1.0]), 2)
    (tensor(1.), tensor(3))
    """
    ordered = _ordered(rows, dim)
    if not 1 <= k <= ordered[0].shape[dim]:
        raise IndexError(f"kthvalue: k must be from 1 to {ordered[0].shape[dim]}, got {k}")
    return _at(ordered, torch.full_like(ordered[1].narrow(dim, 0, 1), k - 1), dim, keepdim, rows.dim())


def median(rows: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The lower median and its index; the first NaN, if any.

    >>> median(torch.tensor([[3.0, 1.0, 2.0, 4.0], [1.0, torch.nan, 0.0, 5.0]]), 1)
    (tensor([2., nan]), tensor([2, 1]))
    """
    ordered = _ordered(rows, dim)
    length, numbers = ordered[0].shape[dim], _numbers(ordered[0], dim)
    place = torch.where(numbers < length, numbers, (length - 1) // 2)
    return _at(ordered, place, dim, keepdim, rows.dim())


def nanmedian(rows: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The lower median without NaN; NaN if there is no number.

    >>> nanmedian(torch.tensor([[1.0, torch.nan, 0.0, 5.0]]), 1)
    (tensor([1.]), tensor([0]))
    """
    ordered = _ordered(rows, dim)
    place = (_numbers(ordered[0], dim) - 1).clamp_min(0) // 2
    return _at(ordered, place, dim, keepdim, rows.dim())


FORMS = {"kthvalue": kthvalue, "median.dim": median, "nanmedian.dim": nanmedian}
"""By operation and overload of torch."""


def _ordered(rows: torch.Tensor, dim: int) -> Chosen:
    """Values sorted along an axis, and indices; a scalar becomes one row."""
    values, places = torch.sort(rows.reshape(1) if rows.dim() == 0 else rows, dim=dim, stable=True)
    return values, places


def _numbers(ordered: torch.Tensor, dim: int) -> torch.Tensor:
    """Count of numbers that are not NaN along an axis, which stays."""
    return (~ordered.isnan()).sum(dim=dim, keepdim=True)


def _at(ordered: Chosen, place: torch.Tensor, dim: int, keepdim: bool, axes: int) -> Chosen:
    values, places = (part.gather(dim, place) for part in ordered)
    if keepdim and axes:
        return values, places
    return values.squeeze(dim), places.squeeze(dim)
