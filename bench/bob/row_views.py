"""Views of released rows for linear models.

Each view counters a way to hide. Means of squares of pixels survive independent noise, and reduce a secret map that is
linear by patch to what an L2 penalty can handle. Magnitudes survive random signs. Sorted patches survive shuffling
within patches; bags of patches, a mean over patches of random features (Rahimi and Recht 2007), survive shuffling of
patches. Whitened patches undo the unequal scales of a secret map's principal components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from bench.nets.classifier import Standardise
from bench.nets.patches import cut, fitting_patch
from bench.seeds import derive, generator

POOLS = (2, 4, 8)
COARSE = 4
BAG_FEATURES = 1024
SHRINKAGE = 0.05
SMALLEST = 1e-12
"""Lower clamp of a variance."""
LARGEST = 2**28
"""Most numbers of a view of all rows (1 GiB); larger views are left out."""

View = Callable[[torch.Tensor], torch.nn.Module]
"""From released rows (m, ...) to a module from rows (n, ...) to vectors (n, d)."""


class Pooled(torch.nn.Module):
    """Means of pixels, or of magnitudes, over squares of `side` pixels."""

    def __init__(self, side: int, *, magnitudes: bool = False) -> None:
        super().__init__()
        self.side, self.magnitudes = side, magnitudes

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, d), with smaller squares at edges."""
        values = rows.abs() if self.magnitudes else rows
        return (
            values if self.side == 1 else torch.nn.functional.avg_pool2d(values, self.side, ceil_mode=True)
        ).flatten(1)


class SortedPatches(torch.nn.Module):
    """The numbers of each patch of `side` pixels in ascending order."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c * h * w)."""
        return cut(rows, self.side).sort(dim=2).values.flatten(1)


class PatchBag(torch.nn.Module):
    """Mean random ReLU features of an image's standardised patches."""

    mean: torch.Tensor
    maps: torch.Tensor
    offsets: torch.Tensor

    def __init__(self, samples: torch.Tensor, side: int) -> None:
        super().__init__()
        self.side = side
        patches = cut(samples, side)
        random, width = generator(derive(0, "bag of patches")), patches.shape[2]
        self.register_buffer("mean", patches.mean(dim=(0, 1)))
        scale = (patches - self.mean).square().mean().sqrt().clamp_min(1e-30)
        maps = torch.randn(width, BAG_FEATURES, generator=random) / width**0.5
        self.register_buffer("maps", maps.to(samples) / scale)
        self.register_buffer("offsets", torch.randn(BAG_FEATURES, generator=random).to(samples))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, BAG_FEATURES)."""
        return torch.cat([self._bag(part) for part in torch.split(rows, 256)])

    def _bag(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.relu((cut(rows, self.side) - self.mean) @ self.maps + self.offsets).mean(dim=1)


class WhitenedPatches(torch.nn.Module):
    """Nearly equalised principal components of each place's patches, shrunk to mean variance."""

    mean: torch.Tensor
    maps: torch.Tensor

    def __init__(self, samples: torch.Tensor, side: int) -> None:
        super().__init__()
        self.side = side
        patches = cut(samples, side).transpose(0, 1).double()  # by place
        mean = patches.mean(dim=1, keepdim=True)
        centred = patches - mean
        sizes, parts = torch.linalg.eigh(centred.transpose(1, 2) @ centred / len(samples))
        floor = SHRINKAGE * sizes.mean(dim=1, keepdim=True)
        self.register_buffer("mean", mean.to(samples))
        maps = parts / (sizes.clamp_min(0) + floor).clamp_min(SMALLEST).sqrt()[:, None, :]
        self.register_buffer("maps", maps.to(samples))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c * h * w)."""
        places = (cut(rows, self.side).transpose(0, 1) - self.mean) @ self.maps
        return places.transpose(0, 1).flatten(1)


def views(samples: torch.Tensor) -> Mapping[str, View]:
    """Useful views of released images or vectors, by name."""
    candidates = every_view(samples)
    if samples.ndim == 2:
        return candidates
    signed = bool((samples < 0).any())  # else magnitudes are the pixels
    few = samples.numel() <= LARGEST
    return {
        name: view
        for name, view in candidates.items()
        if (signed or "magnitudes" not in name) and (few or "means" in name)
    }


def every_view(samples: torch.Tensor) -> Mapping[str, View]:
    """All views of rows of this shape, whichever another key chose."""
    if samples.ndim == 2:
        return {"columns": Standardise}
    named_views: dict[str, View] = {"pixels": lambda rows: Pooled(1)}
    height, across = samples.shape[2:]
    for side in POOLS:
        if min(height, across) >= 2 * side:
            named_views[f"{side}x{side} means"] = lambda rows, side=side: Pooled(side)  # type: ignore[misc]
    named_views["magnitudes"] = lambda rows: Pooled(1, magnitudes=True)
    if min(height, across) >= 2 * COARSE:
        named_views[f"{COARSE}x{COARSE} means of magnitudes"] = lambda rows: Pooled(COARSE, magnitudes=True)
    patch = fitting_patch(height, across)
    if patch is not None:
        half = fitting_patch(height, across, max(2, patch // 2)) or patch
        named_views[f"sorted {half}x{half} patches"] = lambda rows: SortedPatches(half)
        named_views[f"whitened {patch}x{patch} patches"] = lambda rows: WhitenedPatches(rows, patch)
        named_views[f"bag of {patch}x{patch} patches"] = lambda rows: PatchBag(rows, patch)
    return named_views
