"""Moments of the pieces of a row: see the attack `moments`.

Source: Carlini et al., "NeuraCrypt is not private" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.eve.tokens import Layout
from bench.nets.patches import fitting_patch
from bench.types import by_blocks

ORDERS = range(2, 15)
FEATURES = 1 + len(ORDERS)
SMALLEST = 1e-6  # of a set's deviation: patches that do not vary more count as constant
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Reading:
    """A cut of rows into pieces, and if places identify the pieces."""

    layout: Layout
    in_place: bool


def usual_layout(rows: torch.Tensor) -> Layout:
    """Usual patches of images, else the whole row."""
    size = fitting_patch(rows.shape[2], rows.shape[3]) if rows.ndim == 4 else None
    return Layout("chunks", rows[0].numel()) if size is None else Layout("patches", size)


def moments(reading: Reading, rows: torch.Tensor) -> torch.Tensor:
    """Mean and rooted central moments of pieces, centred at each position.

    Args:
        reading: The cut of rows into pieces.
        rows: (n, ...) float32.

    Returns:
        (n, locations, 14) float32: the mean over the set's deviation, then log(|central moment i|^(1/i)) with that
        unit, i = 2..14, at least log(1e-6).
    """
    pieces = reading.layout.cut(rows)
    if pieces.shape[2] == 1:  # a single number has no spread: its size is all there is
        return by_blocks(pieces - pieces.mean(dim=0), lambda some: _powers(some, torch.ones_like(some[..., 0])))
    pieces = pieces - pieces.mean(dim=(0,) if reading.in_place else (0, 1), keepdim=True)
    unit = pieces.std(correction=0).clamp_min(1e-12)

    def features(some: torch.Tensor) -> torch.Tensor:
        part = some / unit
        mean = part.mean(dim=2)
        return _powers(part - mean[:, :, None], mean)

    return by_blocks(pieces, features, ROWS_AT_ONCE)


def _powers(centred: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    largest = centred.abs().amax(dim=2, keepdim=True).clamp_min(SMALLEST)  # its 14th power would leave float32
    scaled, columns = centred / largest, [mean]
    power = scaled
    for order in ORDERS:
        power = power * scaled
        root = power.mean(dim=2).abs().clamp_min(1e-30).pow(1 / order)
        columns.append((root * largest[:, :, 0]).clamp_min(SMALLEST).log())
    return torch.stack(columns, dim=2)
