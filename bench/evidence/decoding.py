"""Test images beside what a decoder makes of their released form."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class DecodingEvidence:
    """Test images beside what a decoder, trained by somebody who holds the key, makes of their released form.

    Args:
        raw: (n, c, h, w) float32 in [0, 1].
        decoded: The same shape and range, row by row.
        mean: (c, h, w), the mean of the images that the decoder was trained on: what it would say knowing nothing.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    raw: torch.Tensor
    decoded: torch.Tensor
    mean: torch.Tensor
    subjects: torch.Tensor | None
    seed: int
