"""Noise on rows that another author's method encodes or classifies for Bob.

Test rows of public data sets could be looked up by the hash of their bytes. So images come with noise below half of an
8-bit level, from which a method that works on images of eight bits can round; columns of a table with as small a part
of their range. A method can still compare rows with those that it carries, and find a nearest neighbour.
"""

from __future__ import annotations

import torch

from bench.memory.rows import by_blocks, in_blocks
from bench.randomness import Secret

LEVEL = 1 / 255
WIDTH = 0.98
"""Of a level: the whole width of the uniform noise. At 1, sums in float32 could reach the middle between two levels."""


def noisy(samples: torch.Tensor, secret: Secret) -> torch.Tensor:
    """Rows (n, ...) with noise of their content and the secret.

    Args:
        samples: Images (n, c, h, w) in [0, 1], which stay in it, or a table (n, d).
        secret: The judge's.

    Returns:
        As many rows: images within 0.49 / 255 of those given, columns within 0.49 / 255 of their range.
    """
    if not len(samples):
        return samples
    stream, image = secret.bound_to(samples).stream("noise of queries"), samples.ndim == 4
    level = torch.tensor(LEVEL) if image else _range(samples) * LEVEL

    def change(rows: torch.Tensor) -> torch.Tensor:
        noise = (stream.uniform(*rows.shape).to(rows) - 0.5) * WIDTH * level.to(rows)
        return (rows + noise).clamp(0, 1) if image else rows + noise

    return by_blocks(samples, change, draws=True)


def _range(samples: torch.Tensor) -> torch.Tensor:
    """The range of each column."""
    ends = [torch.stack(part.aminmax(dim=0)) for _, part in in_blocks(samples)]
    return torch.stack([end[1] for end in ends]).amax(dim=0) - torch.stack([end[0] for end in ends]).amin(dim=0)
