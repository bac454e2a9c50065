"""Repeatable forms of operations that torch refuses on CUDA where the same work must give the same bits.

`bench.determinism.exact` has torch compute repeatably, and an operation without a repeatable kernel is an error from
then on. For medians and other order statistics along an axis, which plug-ins take without a thought of that, a stable
sort gives the same values, in every process that computes for a plug-in.

Source: PyTorch, `torch.use_deterministic_algorithms`: of the operations listed there as errors, those for which a sort
does.
"""

from __future__ import annotations

import os
from functools import cache

import torch


def exact(device: torch.device | str) -> torch.device:
    """The device, after this process was told to compute on it repeatably; called before the first work on it.

    A CPU does so by itself. On CUDA convolutions round to TensorFloat-32 and the fastest kernels add in whatever order
    they come, so that two fits with one seed differ and rows change with their neighbours in a batch: both are turned
    off for the whole process, and an operation that has no repeatable form is an error of torch that names it
    (`bench.determinism` has some that torch lacks). Networks that may train in bfloat16 ask for that themselves
    (`bench.nets.classifier.fast_precision`).
    """
    device = torch.device(device)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
    return device


Chosen = tuple[torch.Tensor, torch.Tensor]


@cache
def register() -> torch.library.Library:
    """Have CUDA use the forms below in this process, as long as what is returned lives; a CPU goes on as before."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, form in FORMS.items():
        library.impl(name, form, "CUDA")  # type: ignore[no-untyped-call]
    return library


def kthvalue(rows: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The k-th smallest number along an axis, NaN above all others, and the first place where it stands.

    >>> kthvalue(torch.tensor([3.0, 1.0, 2.0, 1.0]), 2)
    (tensor(1.), tensor(3))
    """
    ordered = _ordered(rows, dim)
    if not 1 <= k <= ordered[0].shape[dim]:
        raise IndexError(f"kthvalue: k must be from 1 to {ordered[0].shape[dim]}, got {k}")
    return _at(ordered, torch.full_like(ordered[1].narrow(dim, 0, 1), k - 1), dim, keepdim, rows.dim())


def median(rows: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The lower median along an axis and a place where it stands; NaN, and the first of them, where there is one.

    >>> median(torch.tensor([[3.0, 1.0, 2.0, 4.0], [1.0, torch.nan, 0.0, 5.0]]), 1)
    (tensor([2., nan]), tensor([2, 1]))
    """
    ordered = _ordered(rows, dim)
    length, numbers = ordered[0].shape[dim], _numbers(ordered[0], dim)
    place = torch.where(numbers < length, numbers, (length - 1) // 2)
    return _at(ordered, place, dim, keepdim, rows.dim())


def nanmedian(rows: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The lower median of what is a number along an axis; NaN where nothing is.

    >>> nanmedian(torch.tensor([[1.0, torch.nan, 0.0, 5.0]]), 1)
    (tensor([1.]), tensor([0]))
    """
    ordered = _ordered(rows, dim)
    place = (_numbers(ordered[0], dim) - 1).clamp_min(0) // 2
    return _at(ordered, place, dim, keepdim, rows.dim())


FORMS = {"kthvalue": kthvalue, "median.dim": median, "nanmedian.dim": nanmedian}
"""By operation and overload of torch."""


def _ordered(rows: torch.Tensor, dim: int) -> Chosen:
    """Sorted along an axis, of one number where there is none, and the place of each."""
    values, places = torch.sort(rows.reshape(1) if rows.dim() == 0 else rows, dim=dim, stable=True)
    return values, places


def _numbers(ordered: torch.Tensor, dim: int) -> torch.Tensor:
    """How many along an axis are no NaN; the axis stays."""
    return (~ordered.isnan()).sum(dim=dim, keepdim=True)


def _at(ordered: Chosen, place: torch.Tensor, dim: int, keepdim: bool, axes: int) -> Chosen:
    values, places = (each.gather(dim, place) for each in ordered)
    if keepdim and axes:
        return values, places
    return values.squeeze(dim), places.squeeze(dim)
