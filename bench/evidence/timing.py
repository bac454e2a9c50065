"""Seconds of timed releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class TimingEvidence:
    """Seconds of each timed repeat of `Key.release` over `images` rows, after warm-up, device synchronised."""

    images: int
    seconds: Sequence[float]
