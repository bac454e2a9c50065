"""Readings of rows for the verifier: numbers, restored images, relations.

"Restored" images are released ones as the linear Wiener filter sees them (Wiener 1949; Pratt 1972, "Generalized Wiener
filtering computation techniques"): on the principal axes of raw rows, each released coordinate is multiplied by the
factor that predicts the raw coordinate best. Factors are learned on rows that Eve, the attacker, released under keys of
her own, and axes that show no correlation beyond chance are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from bench.eve.gram_matching import Look
from bench.eve.patch_moments import Reading, moments, usual_layout
from bench.eve.verifier import Parts
from bench.memory.rows import rows_at
from bench.seeds import generator
from bench.types import by_blocks

PIXELS, COARSE = 32, 8
"""Sides at which images are compared by their numbers: means over 8 x 8 areas still show under noise."""
SHIFT, BRIGHTNESS = 0.05, 0.15
LOCATIONS = 16
AXES, LEARNED_FROM = 200, 1000  # of restored images, and the raw rows that the filter is learned from
ROWS_AT_ONCE = 256
SURELY = 4.0  # standard errors of a correlation at chance
RESTORED = 0.01  # least share of the raw rows' squares that a release predicts linearly
INTACT = 1e-4  # of the raw rows' squares: smaller changes leave nothing to restore


def augmented(samples: torch.Tensor, seed: int) -> torch.Tensor:
    """Images, each second one flipped, all shifted and of another brightness.

    Args:
        samples: (n, c, h, w).
        seed: Draws who is flipped, shifts up to `SHIFT` of a side, and factors 1 +- `BRIGHTNESS`.
    """
    random, n = generator(seed), len(samples)
    flip = torch.where(torch.rand(n, generator=random) < 0.5, -1.0, 1.0)
    shift = (2 * torch.rand(n, 2, generator=random) - 1) * 2 * SHIFT
    bright = 1 + BRIGHTNESS * (2 * torch.rand(n, 1, 1, 1, generator=random) - 1)
    move = torch.zeros(n, 2, 3)
    move[:, 0, 0], move[:, 1, 1], move[:, :, 2] = flip, 1.0, shift
    grid = torch.nn.functional.affine_grid(move, list(samples.shape), align_corners=False).to(samples.device)
    moved = torch.nn.functional.grid_sample(samples[:], grid, padding_mode="border", align_corners=False)
    return moved * bright.to(samples.device)


def numbers(samples: torch.Tensor, side: int = PIXELS) -> Parts:
    """The numbers of rows; larger images as means over areas.

    There are `side` x `side` areas.
    """
    if samples.ndim == 4 and max(samples.shape[2:]) > side:
        samples = torch.nn.functional.adaptive_avg_pool2d(samples[:], side)
    return (samples[:].flatten(1).float(),)


def related(way: Literal["places", "bags"], seed: int, released: torch.Tensor) -> Parts:
    """Features (m, f) of released rows by their relations, float32.

    Signatures as `relational` reads them, with the ridge leverages, and moments of patches, in place or as a set.
    """
    places = way == "places"
    signatures = Look("places" if places else "bags", LOCATIONS, related=False, seed=seed)(released).signatures
    by_piece = moments(Reading(usual_layout(released), places), released)
    if not places:
        by_piece = by_piece.sort(dim=1).values
    return signatures.float(), by_piece.flatten(1).float()


@dataclass(frozen=True, eq=False)
class Restorer:
    """The Wiener filter of a release.

    Args:
        raw, released: (d,) means of raw and of released rows.
        axes: (q, d) principal axes of raw rows.
        factors: (q,) of coordinates.
    """

    raw: torch.Tensor
    released: torch.Tensor
    axes: torch.Tensor
    factors: torch.Tensor

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        """Rows of the same shape, restored."""

        def restored(part: torch.Tensor) -> torch.Tensor:
            seen = (part.flatten(1).double() - self.released) @ self.axes.T
            return (self.raw + (seen * self.factors) @ self.axes).float().view_as(part)

        return by_blocks(samples, restored, ROWS_AT_ONCE)


def restorer(raw: torch.Tensor, shown: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Restorer | None:
    """The filter learned from releases; None if it is of no use.

    Args:
        raw: (n, ...) rows.
        shown: Releases of them under keys of Eve's own: rows (m, ...), and the raw row (m,) in each.
    """
    step = -(-len(raw) // LEARNED_FROM)
    rows = rows_at(raw, torch.arange(0, len(raw), step, device=raw.device))[:].flatten(1).double()
    mean = rows.mean(dim=0)
    _, sizes, axes = torch.linalg.svd(rows - mean, full_matrices=False)
    axes = axes[: min(AXES, int((sizes > 1e-6 * sizes[:1]).sum()))]
    known, found = (rows - mean) @ axes.T, list[tuple[torch.Tensor, torch.Tensor]]()
    released, changed = rows.new_zeros(rows.shape[1]), 0.0
    for part, made_of in shown:
        chosen = (made_of % step == 0).nonzero()[:, 0]
        if not len(chosen):
            continue
        theirs, seen = made_of[chosen] // step, rows_at(part, chosen)[:].flatten(1).double()
        released += seen.mean(dim=0)
        changed += float((seen - rows[theirs]).square().sum(dim=1).mean())
        found.append((seen @ axes.T, known[theirs]))
    whole = float((rows - mean).square().sum(dim=1).mean())
    if not len(axes) or not found or changed < INTACT * whole * len(found):
        return None
    released /= len(found)
    seen, theirs = torch.cat([each for each, _ in found]) - released @ axes.T, torch.cat([each for _, each in found])
    products, squares, seen_squares = (each.mean(dim=0) for each in (seen * theirs, theirs.square(), seen.square()))
    correlation = products / (squares * seen_squares).clamp_min(1e-300).sqrt()
    # Rows of one image under several keys are no more images than the pool has.
    sure = correlation.abs() > SURELY / math.sqrt(len(rows))
    predicted = float((correlation.square() * squares)[sure].sum())
    if predicted < RESTORED * whole:
        return None
    factors = torch.where(sure, products / seen_squares.clamp_min(1e-300), 0.0)
    return Restorer(mean, released, axes, factors)
