"""Images cut into square patches and put back together."""

from __future__ import annotations

import math

import torch

from bench.types import Dataset, NotApplicable

SHRUNK = "numbers of a patch for one of its token"
"""The note of schemes that say how much of a patch is left: above 1 some of it is lost before anything is hidden."""


def patch_grid(height: int, width: int, patch_size: int) -> tuple[int, int]:
    """Patches per column and per row of an image.

    Raises ValueError if the patch does not divide both sides.

    >>> patch_grid(64, 64, 16)
    (4, 4)
    """
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(
            f"patch_size must divide both sides of the image: got {patch_size} for {height}x{width}; "
            f"sizes that do: {', '.join(map(str, patch_sizes(height, width)))}"
        )
    return height // patch_size, width // patch_size


def patch_sizes(height: int, width: int) -> list[int]:
    """The patch sizes that divide both sides, small to large.

    >>> patch_sizes(28, 28)
    [1, 2, 4, 7, 14, 28]
    """
    side = math.gcd(height, width)
    return [size for size in range(1, side + 1) if side % size == 0]


def patched_shape(method: str, public: Dataset, patch_size: int) -> tuple[int, int, int]:
    """The shape (c, h, w) of images whose sides the patch divides.

    Raises NotApplicable, with the method's name, for tables and for other sides.
    """
    if public.samples.ndim != 4:
        raise NotApplicable(f"{method} cuts images into patches: {public.name} is a table")
    c, h, w = public.samples.shape[1:]
    sizes = patch_sizes(h, w)
    if patch_size not in sizes:
        raise NotApplicable(
            f"{method} needs a patch that divides the image: {patch_size} does not divide {h}x{w}; "
            f"set patch_size to one of {', '.join(map(str, sizes))}"
        )
    return c, h, w


def fitting_patch(height: int, width: int, largest: int = 16) -> int | None:
    """Largest patch up to `largest` with two patches a side.

    None if only 1 would do.

    >>> fitting_patch(64, 64), fitting_patch(28, 28), fitting_patch(8, 8), fitting_patch(31, 31)
    (16, 14, 4, None)
    """
    sizes = [size for size in patch_sizes(height, width) if 1 < size <= min(largest, height // 2, width // 2)]
    return max(sizes, default=None)


def cut(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Patches (n, locations, c * patch_size^2), row by row; ValueError as `patch_grid`."""
    n, c, h, w = images.shape
    down, across = patch_grid(h, w, patch_size)
    tiles = images.reshape(n, c, down, patch_size, across, patch_size).permute(0, 2, 4, 1, 3, 5)
    return tiles.reshape(n, down * across, c * patch_size * patch_size)


def fold(patches: torch.Tensor, shape: tuple[int, int, int], patch_size: int) -> torch.Tensor:
    """Images (n, c, h, w) of `shape` from `cut` patches."""
    c, h, w = shape
    down, across = patch_grid(h, w, patch_size)
    tiles = patches.reshape(len(patches), down, across, c, patch_size, patch_size).permute(0, 3, 1, 4, 2, 5)
    return tiles.reshape(len(patches), c, h, w)
