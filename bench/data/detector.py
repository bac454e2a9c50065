"""From attenuation to a film: quanta, display curve, collimator and side letter."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bench.data.plane import film
from bench.data.study import GRAIN, Study


@lru_cache(maxsize=8)
def resampler(size: int) -> np.ndarray:
    """Weights (size, GRAIN) float32 that average or interpolate the grain of the quanta to `size` pixels."""
    here = (np.arange(size) + 0.5) / size * GRAIN - 0.5
    reach = max(1.0, GRAIN / size)
    weights = np.maximum(1.0 - np.abs(here[:, None] - np.arange(GRAIN)[None, :]) / reach, 0.0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def expose(attenuation: np.ndarray, study: Study) -> np.ndarray:
    """The film of an attenuation (size, size): uint8, bright is dense.

    Noise grows with attenuation because fewer quanta arrive: its spread in the logarithm is exp(A / 2) / sqrt(N0).
    """
    size = len(attenuation)
    weights = resampler(size)
    quanta = weights @ study.grain @ weights.T
    seen = attenuation + 0.045 * study.noise * np.exp(0.9 * attenuation - 0.6) * quanta
    low, high = 0.10 - study.bright, 0.10 + 1.16 * study.contrast - study.bright
    grey = np.clip((seen - low) / (high - low), 0.0, None)
    grey = np.power(grey, study.gamma)
    # The shoulder of the display curve: bright tissue saturates softly.
    grey = 1.0 - np.log1p(np.exp(np.minimum((0.94 - grey) / 0.06, 50.0))) * 0.06
    x, y = film(size)
    left, right, top, bottom = study.collimator
    seen_part = (x > -left) & (x < right) & (y > -top) & (y < bottom)
    return np.rint(np.clip(grey, 0.0, 1.0) * seen_part * 255.0).astype(np.uint8)
