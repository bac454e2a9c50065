"""Bit planes: the parts of a number that people overlook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

PLANES: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "values": lambda rows: rows,
    "low four bits of 8": lambda rows: (rows * 255).round().remainder(16),
    "low two bits of 8": lambda rows: (rows * 255).round().remainder(4),
    "fractions of 1/255": lambda rows: rows * 255 - (rows * 255).round(),
    "fractions of 1/4096": lambda rows: (rows * 4096).remainder(1),
    "last byte": lambda rows: (rows.contiguous().view(torch.int32) & 255).float(),
    "last byte but one": lambda rows: ((rows.contiguous().view(torch.int32) >> 8) & 255).float(),
}
"""Values, then low bits of bytes, fractions and mantissas: functions of float32 numbers."""


def planes(rows: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Every plane of rows (n, ...) float32, by name."""
    for name, plane in PLANES.items():
        yield name, plane(rows)
