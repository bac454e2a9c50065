"""How far numbers are from a Laplace distribution."""

from __future__ import annotations

import numpy as np


def laplace_distance(numbers: np.ndarray, scale: float = 1.0) -> float:
    """Kolmogorov's distance between numbers (n,) and the Laplace distribution about 0 of that scale."""
    numbers = np.sort(numbers)
    cdf = np.where(numbers < 0, 0.5 * np.exp(numbers / scale), 1 - 0.5 * np.exp(-numbers / scale))
    steps = np.arange(len(numbers) + 1) / len(numbers)
    return float(max(np.abs(cdf - steps[1:]).max(), np.abs(cdf - steps[:-1]).max()))
