"""What linear models read of released rows: the rows themselves, coarser, or what some hiding leaves in place.

Each view answers a way to hide. Means of squares of pixels outlive independent noise, and so much of a secret map that
is linear by patch as the L2 penalty needs. Magnitudes outlive random signs. Sorted patches outlive shuffling within
patches; bags of patches, a mean over patches of random features (Rahimi and Recht 2007), outlive shuffling of
patches. Whitened patches undo the unequal scales that secret maps give to what a patch holds (its principal parts).
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
"""A variance that is nothing."""
LARGEST = 2**28
"""Numbers that a view of all rows may have (1 GiB); larger ones are left out."""

View = Callable[[torch.Tensor], torch.nn.Module]
"""Makes, from released rows (m, ...), the module that turns rows (n, ...) into vectors (n, d)."""


class Pooled(torch.nn.Module):
    """Means of squares of `side` pixels, of the pixels or of their magnitudes, as vectors."""

    def __init__(self, side: int, *, magnitudes: bool = False) -> None:
        super().__init__()
        self.side, self.magnitudes = side, magnitudes

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, d); at the edges squares may be smaller."""
        seen = rows.abs() if self.magnitudes else rows
        return (seen if self.side == 1 else torch.nn.functional.avg_pool2d(seen, self.side, ceil_mode=True)).flatten(1)


class SortedPatches(torch.nn.Module):
    """The numbers of each patch of `side` pixels in ascending order."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c * h * w)."""
        return cut(rows, self.side).sort(dim=2).values.flatten(1)


class PatchBag(torch.nn.Module):
    """The mean, over an image's patches of `side` pixels, of random ReLU features of the standardised patch."""

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
    """Principal parts of the patches of each place, brought to nearly equal size (shrunk towards the mean variance)."""

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
    """The views that are worth a try on these released rows (m, c, h, w) or (m, d), by name."""
    found = every_view(samples)
    if samples.ndim == 2:
        return found
    signed = bool((samples < 0).any())  # else magnitudes are the pixels
    few = samples.numel() <= LARGEST
    return {
        name: view for name, view in found.items() if (signed or "magnitudes" not in name) and (few or "means" in name)
    }


def every_view(samples: torch.Tensor) -> Mapping[str, View]:
    """All views that rows of this shape have: one that was chosen under another key may be needed under this one."""
    if samples.ndim == 2:
        return {"columns": Standardise}
    made: dict[str, View] = {"pixels": lambda rows: Pooled(1)}
    height, across = samples.shape[2:]
    for side in POOLS:
        if min(height, across) >= 2 * side:
            made[f"{side}x{side} means"] = lambda rows, side=side: Pooled(side)  # type: ignore[misc]
    made["magnitudes"] = lambda rows: Pooled(1, magnitudes=True)
    if min(height, across) >= 2 * COARSE:
        made[f"{COARSE}x{COARSE} means of magnitudes"] = lambda rows: Pooled(COARSE, magnitudes=True)
    patch = fitting_patch(height, across)
    if patch is not None:
        half = fitting_patch(height, across, max(2, patch // 2)) or patch
        made[f"sorted {half}x{half} patches"] = lambda rows: SortedPatches(half)
        made[f"whitened {patch}x{patch} patches"] = lambda rows: WhitenedPatches(rows, patch)
        made[f"bag of {patch}x{patch} patches"] = lambda rows: PatchBag(rows, patch)
    return made
