"""More rows from the same: images shifted by a few pixels and mirrored, where that leaves what they show."""

from __future__ import annotations

from functools import partial

import torch

SMOOTH = 0.5
FARTHEST = 16
"""A shift is at most a side over this."""


def bears_shifts(samples: torch.Tensor) -> bool:
    """Whether images (m, c, h, w) are smooth, so that a shift by a pixel leaves nearly the same image.

    They are where neighbouring pixels of a row correlate by more than a half, once the mean image is taken away. Under
    secret maps, shuffles, signs or strong noise by pixel they do not.
    """
    if samples.ndim != 4 or min(samples.shape[2:]) < FARTHEST:
        return False
    rest = samples - samples.mean(dim=0)
    both = (rest[..., 1:] * rest[..., :-1]).mean()
    alone = (rest[..., 1:].square().mean() * rest[..., :-1].square().mean()).sqrt()
    return bool(both > SMOOTH * alone)


def shifted(images: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Each image (b, c, h, w) at a random shift of its own, every other one mirrored; edges are repeated."""
    b, c, h, w = images.shape
    numbers = partial(torch.arange, device=images.device)
    indices = []
    for length in (h, w):
        reach = length // FARTHEST
        shift = torch.randint(-reach, reach + 1, (b, 1), generator=random, device=random.device)
        indices.append((numbers(length) + shift).clamp(0, length - 1))
    down, across = indices
    mirrored = torch.rand(b, 1, generator=random, device=random.device) < 0.5
    across = torch.where(mirrored, across.flip(1), across)
    place = numbers(b)[:, None, None, None], numbers(c)[None, :, None, None]
    return images[(*place, down[:, None, :, None], across[:, None, None, :])]
