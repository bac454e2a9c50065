"""Checks of a generator's state, which may come from a stranger."""

from __future__ import annotations

from collections.abc import Mapping, Set

import torch

from bench.types import State


def check_names(state: State, names: Set[str]) -> None:
    """Raise ValueError unless `state` has exactly those tensors."""
    if missing := sorted(names - state.keys()):
        raise ValueError(f"a generator's state needs {', '.join(missing)}: got {', '.join(sorted(state)) or 'nothing'}")
    if unknown := sorted(state.keys() - names):
        raise ValueError(f"a generator's state holds {', '.join(unknown)}: expected only {', '.join(sorted(names))}")


def check_tensors(
    state: State, shapes: Mapping[str, tuple[int, ...]], *, dtype: torch.dtype | None = None, finite: bool = True
) -> None:
    """Raise ValueError unless tensors have their shape, `dtype`, and finite numbers.

    `dtype` None stands for float32.
    """
    dtype = dtype or torch.float32
    for name, shape in shapes.items():
        tensor = state[name]
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            raise ValueError(f"{name} must be {dtype} of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
        bad = int((~tensor.isfinite()).sum())
        if finite and bad:
            raise ValueError(f"{name} must be finite: {bad} of its {tensor.numel()} numbers are not")
