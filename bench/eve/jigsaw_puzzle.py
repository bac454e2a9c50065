"""Jigsaw puzzles: images put together from moved, turned and negated blocks.

Sources: Gallagher 2012, "Jigsaw puzzles with pieces of unknown orientation" (pieces that change place and are turned,
put together greedily by the pixels at their borders); Chuman, Kurihara and Kiya 2017, "On the security of
block scrambling-based EtC systems against extended jigsaw puzzle solver attacks" (negated blocks as well).

A state is a piece in one of its forms: 8 turns and mirrors, times 2 for the negative, times c! orders of the channels.
If one key encrypts all images, the difference across a border is a mean over all images, which leaves little to chance;
if each has its own, it is that of one image.

Differences: pixels of both sides are extrapolated to the border, a half pixel away, along a straight line: of 96 NIH
images of 64 pixels, with a key each, 57 % were put together wholly, and 34 % by the outermost pixels themselves. The
grid is filled row by row from the upper left, once for each state that may stand there, and the arrangement with the
smallest sum counts. What is known of raw images in general may help: a piece is compared with their mean and deviation
at its place, with a weight. With weight 0 borders alone decide, and the mean tells up from down in the result, which no
border can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import torch

from bench.nets.patches import cut, fold, patch_grid
from bench.types import by_blocks

NUMBERS = 1 << 24
"""Of borders that are held at once."""
DIFFERENCES = 1 << 20
"""Between states, of the puzzles that are solved at once: more are slower."""
UPRIGHT = 1e-3
"""Weight of the mean image where it only tells which way up the result is."""
TRIED = 1 << 18
"""States looked at for a place of one puzzle: with more states, fewer starts are tried."""
FEWEST_STARTS = 16
MOST_ROWS = 4096
"""Images whose borders and means count, of many under one key."""
ROWS = 128


@dataclass(frozen=True, eq=False)
class Forms:
    """The forms of a square block.

    Args:
        numbers: (t, c * side^2) int64: the number of a block that stands at each place of a form.
        negative: (t,) bool: the form is the negative of it.
    """

    numbers: torch.Tensor
    negative: torch.Tensor

    @classmethod
    def of(cls, channels: int, side: int) -> Forms:
        """All forms: 16, times the orders of the channels."""
        places = torch.arange(channels * side**2).reshape(channels, side, side)
        turned = [torch.rot90(each, quarter, (1, 2)) for each in (places, places.flip(2)) for quarter in range(4)]
        coloured = [each[list(order)].flatten() for order in permutations(range(channels)) for each in turned]
        return cls(torch.stack(coloured * 2), torch.arange(2 * len(coloured)) >= len(coloured))

    def shown(self, blocks: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        """Forms (..., t, e) of blocks, at places `at` (e,) or all."""
        numbers = self.numbers if at is None else self.numbers[:, at]
        found = blocks[..., numbers.to(blocks.device)]
        return torch.where(self.negative[:, None].to(blocks.device), 1 - found, found)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Raw images in general, in blocks.

    Args:
        shape: (c, h, w).
        side: Of a block.
        mean, variance: (l, d) of each number of the blocks at each place.
        step: Mean squared difference across borders of blocks, both sides extrapolated to the border.
    """

    shape: tuple[int, int, int]
    side: int
    mean: torch.Tensor
    variance: torch.Tensor
    step: float

    @classmethod
    def of(cls, images: torch.Tensor, side: int) -> Knowledge:
        """From raw images (n, c, h, w) in [0, 1]."""
        c, h, w = images.shape[1:]
        blocks = cut(images.double(), side)
        variance, mean = torch.var_mean(blocks, dim=0, correction=0)
        ahead = 1.5 * images.double()
        steps = [
            (ahead[..., side - 1 : -1 : side, :] - images[..., side - 2 : -2 : side, :] / 2)
            - (ahead[..., side::side, :] - images[..., side + 1 :: side, :] / 2),
            (ahead[..., side - 1 : -1 : side] - images[..., side - 2 : -2 : side] / 2)
            - (ahead[..., side::side] - images[..., side + 1 :: side] / 2),
        ]
        step = sum(float(each.square().mean()) for each in steps) / len(steps)
        return cls((c, h, w), side, mean, variance + variance.mean() / 100 + 1e-12, step + 1e-12)

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks down and across."""
        return patch_grid(self.shape[1], self.shape[2], self.side)

    @property
    def states(self) -> int:
        """Pieces times forms."""
        return math.prod(self.grid) * len(Forms.of(self.shape[0], self.side).numbers)


def solve(images: torch.Tensor, known: Knowledge, *, one: bool, weight: float) -> torch.Tensor:
    """The images (n, c, h, w) with their blocks put back.

    Args:
        images: Encrypted, in [0, 1].
        known: Raw images in general.
        one: All images were encrypted by one key.
        weight: Of the mean image, against borders.
    """
    forms, side = Forms.of(known.shape[0], known.side), known.side
    if one:
        states = _states(cut(images[:MOST_ROWS], side)[None], forms, known, weight)

        def put(rows: torch.Tensor) -> torch.Tensor:
            return fold(_put(cut(rows, side), forms, states.expand(len(rows), -1)), known.shape, side)

        return by_blocks(images, put, ROWS)

    def each(rows: torch.Tensor) -> torch.Tensor:
        blocks = cut(rows, side)
        return fold(_put(blocks, forms, _states(blocks[:, None], forms, known, weight)), known.shape, side)

    return by_blocks(images, each, max(1, DIFFERENCES // known.states**2))


def _put(blocks: torch.Tensor, forms: Forms, states: torch.Tensor) -> torch.Tensor:
    """Blocks (n, p, d) in their states (n, l)."""
    t = len(forms.numbers)
    chosen = blocks.take_along_dim((states // t)[:, :, None], dim=1)
    put = chosen.take_along_dim(forms.numbers.to(blocks.device)[states % t], dim=2)
    return torch.where(forms.negative.to(blocks.device)[states % t][:, :, None], 1 - put, put)


def _states(blocks: torch.Tensor, forms: Forms, known: Knowledge, weight: float) -> torch.Tensor:
    """States (b, l) of puzzles (b, q, p, d), of q images."""
    c, side = known.shape[0], known.side
    b, _, p, _ = blocks.shape
    t = len(forms.numbers)
    few = blocks[:, : max(1, NUMBERS // (b * p * t * c * side))].double()
    places = torch.arange(c * side**2).reshape(c, side, side)
    right, left, lower, upper = (
        (1.5 * forms.shown(few, outer.flatten()) - 0.5 * forms.shown(few, inner.flatten()))
        .permute(0, 2, 3, 1, 4)
        .reshape(b, p * t, -1)
        for outer, inner in (
            (places[:, :, -1], places[:, :, -2]), (places[:, :, 0], places[:, :, 1]),
            (places[:, -1], places[:, -2]), (places[:, 0], places[:, 1]),
        )
    )  # fmt: skip
    across, down = _apart(right, left) / known.step, _apart(lower, upper) / known.step
    # A form's distance from the mean at each place: the mean of (x - m)^2 / v, without the forms of every image.
    first, second = blocks.double().mean(dim=1), blocks.double().square().mean(dim=1)
    turned, squares = forms.shown(first), second[..., forms.numbers.to(blocks.device)]
    negative = forms.negative.to(blocks.device)[:, None]
    squares = torch.where(negative, 1 - 2 * first[..., forms.numbers.to(blocks.device)] + squares, squares)
    inverse = 1 / known.variance.to(blocks.device)
    mean = known.mean.to(blocks.device)
    fits = squares @ inverse.T - 2 * turned @ (mean * inverse).T + (mean.square() * inverse).sum(dim=1)
    unlike = (fits / mean.shape[1]).reshape(b, p * t, -1).transpose(1, 2)
    return assemble(across, down, max(weight, UPRIGHT) * unlike, known.grid, t)


def _apart(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Mean squared differences (b, s, s) of rows (b, s, e)."""
    squares = first.square().sum(dim=2)[:, :, None] + second.square().sum(dim=2)[:, None]
    return (squares - 2 * first @ second.transpose(1, 2)).clamp_min(0) / first.shape[2]


def assemble(
    across: torch.Tensor, down: torch.Tensor, unlike: torch.Tensor, grid: tuple[int, int], forms: int
) -> torch.Tensor:
    """States (b, l) of b puzzles with a small sum of costs.

    Args:
        across: (b, s, s), of state j right of state i; s pieces times forms.
        down: The same of j below i.
        unlike: (b, l, s), of a state at a place.
        grid: Places down and across.
        forms: Of a piece.
    """
    b, s = across.shape[:2]
    starts = torch.arange(s, device=across.device).expand(b, -1)
    most = max(FEWEST_STARTS, TRIED // s)
    if s > most:
        starts = unlike[:, 0].argsort(dim=1)[:, :most]
    k, places = starts.shape[1], math.prod(grid)
    placed = torch.empty(b, k, places, dtype=torch.int64, device=across.device)
    placed[:, :, 0] = starts
    total = unlike[:, 0].gather(1, starts)
    used = torch.zeros(b, k, s // forms, dtype=torch.bool, device=across.device)
    puzzle = torch.arange(b, device=across.device)[:, None]
    for place in range(places):
        if place:
            cost = unlike[:, place][:, None].expand(-1, k, -1)
            if place % grid[1]:
                cost = cost + across[puzzle, placed[:, :, place - 1]]
            if place >= grid[1]:
                cost = cost + down[puzzle, placed[:, :, place - grid[1]]]
            free = cost.masked_fill(used.repeat_interleave(forms, dim=2), math.inf)
            least = free.min(dim=2)
            placed[:, :, place] = least.indices
            total = total + least.values
        used.scatter_(2, placed[:, :, place : place + 1] // forms, value=True)
    best = total.argmin(dim=1)
    return placed.take_along_dim(best[:, None, None], dim=1)[:, 0]
