"""Rows cut into pieces by layout, and read as tokens.

A reading is one way to take released rows apart. Encoders leave different readings usable, so an attack tries them on
keys of its own: `places` for encoders that keep a patch where it was, `sizes` for those that flip signs, `bags` for
those that shuffle the patches of each image, `unshuffled` for those that do so and mark each patch by its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

import numpy as np
import scipy
import torch

from bench.memory.rows import Rows, in_blocks, rows_at
from bench.nets.patches import cut, fitting_patch, patch_sizes

MOST_LOCATIONS = 1024
MOST_CHUNKS = 64

LEARNT_FROM = 256  # rows
STARTS = 3
ROUNDS = 10
ROWS = 128  # at a time: of 14 x 14 places a row has 38,416 products

Reading = Literal["places", "sizes", "bags", "unshuffled"]
READINGS: tuple[Reading, ...] = ("places", "sizes", "bags", "unshuffled")
MOST_POSITIONS = 64
MOST_AXES = 48


@dataclass(frozen=True)
class Layout:
    """One cut of a row into equal pieces, each at a location.

    Args:
        kind: "patches" are square and of all channels; "chunks" are runs of neighbouring numbers of the flattened row
            (lines of pixels, tokens of a code, a whole row); "channels" are all channels of one pixel.
        size: Side of a patch in pixels, or numbers a chunk; 0 for channels.
    """

    kind: Literal["patches", "chunks", "channels"]
    size: int

    def __str__(self) -> str:
        return self.kind if self.kind == "channels" else f"{self.kind} of {self.size}"

    def cut(self, rows: torch.Tensor) -> torch.Tensor:
        """Pieces (n, locations, numbers) of rows. Raises ValueError unless they fit."""
        if self.kind == "chunks":
            numbers = rows[0].numel()
            if numbers % self.size:
                raise ValueError(f"chunks must divide a row: got {self.size} for {numbers} numbers")
            return rows.reshape(len(rows), -1, self.size)
        if rows.ndim != 4:
            raise ValueError(f"{self.kind} are cut from images (n, c, h, w), got shape {tuple(rows.shape)}")
        return cut(rows, self.size) if self.kind == "patches" else rows.flatten(2).transpose(1, 2)


def layouts(shape: tuple[int, ...]) -> list[Layout]:
    """Layouts to try for shapes (c, h, w) or (d,), smallest first.

    A whole row is always among them. At most 1,024 locations, of chunks at most 64 (or the lines of an image).

    >>> [str(layout) for layout in layouts((1, 4, 8))]
    ['patches of 1', 'patches of 2', 'patches of 4', 'chunks of 8', 'chunks of 32']
    >>> [str(layout) for layout in layouts((3,))]
    ['chunks of 1', 'chunks of 3']
    """
    numbers = 1
    for side in shape:
        numbers *= side
    if len(shape) != 3:
        return [Layout("chunks", numbers // parts) for parts in range(min(MOST_CHUNKS, numbers), 0, -1)
                if numbers % parts == 0]  # fmt: skip
    c, h, w = shape
    cuts = [Layout("patches", size) for size in patch_sizes(h, w) if (h // size) * (w // size) <= MOST_LOCATIONS]
    if w < numbers // c and c * h <= MOST_LOCATIONS:
        cuts.append(Layout("chunks", w))
    if c > 1 and 1 < h * w <= MOST_LOCATIONS:
        cuts.append(Layout("channels", 0))
    whole = Layout("chunks", numbers)
    square = h == w  # then the largest patch is a whole row already
    return cuts if square else [*cuts, whole]


def unshuffled(parts: torch.Tensor) -> torch.Tensor:
    """The patches of each row by cluster, clusters that vary most first.

    Source: this project; constrained k-means (Bradley, Bennett and Demiriz 2000) with one patch of every row in every
    cluster. An encoder that marks each place by a secret vector (the positional embedding of NeuraCrypt) and then
    shuffles leaves the marks: the patches of all rows fall into as many clusters as there are places. Under four keys
    of NeuraCrypt (images of 64 pixels, patches of 16 or 8) all but a few in ten thousand come back to their place. The
    clusters do not name their places, but they vary unequally, and the order by variance identifies most of them.

    Args:
        parts: (m, t, q) patches, t of each row, in any order within a row; on disk if they do not fit.

    Returns:
        (m, t, q), the same patches.
    """
    step = -(-len(parts) // LEARNT_FROM)
    some = rows_at(parts, torch.arange(0, len(parts), step, device=parts.device))[:].double()
    by_length = some.square().sum(dim=(1, 2)).argsort()  # the order of rows, which a release changes, is to say nothing
    starts = some[by_length[[len(some) * (2 * number + 1) // (2 * STARTS) for number in range(STARTS)]]]
    _, centres = min((_clustered(some, start) for start in starts), key=lambda clusters: clusters[0])
    put_back = partial(_by_centres, centres=centres)
    return parts.map(put_back) if isinstance(parts, Rows) else put_back(parts)


def _clustered(parts: torch.Tensor, centres: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Sum of squares within clusters from `centres` (t, q), and sorted means."""
    order = None
    for _ in range(ROUNDS):
        better = _order(parts, centres)
        if order is not None and torch.equal(better, order):
            break
        order = better
        placed = parts.take_along_dim(order[:, :, None], dim=1)
        centres = placed.mean(dim=0)
    within = (placed - centres).square().sum(dim=(0, 2))
    return float(within.sum()), centres[within.argsort(descending=True)]


def _by_centres(parts: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    return parts.take_along_dim(_order(parts, centres)[:, :, None], dim=1)


def _order(parts: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Patch numbers (m, t) int64 for each centre, by the Hungarian method.

    Each patch and each centre goes somewhere, so that their lengths change no choice: inner products decide.
    """
    orders: list[np.ndarray] = []
    for _, some in in_blocks(parts, ROWS):
        products = torch.einsum("tq,msq->mts", centres, some.double()).cpu().numpy()
        orders += [scipy.optimize.linear_sum_assignment(row, maximize=True)[1] for row in products]
    return torch.from_numpy(np.stack(orders)).to(parts.device)


def tokens(
    rows: torch.Tensor, reading: Reading, locations: int, chosen: Sequence[int] | None = None
) -> Iterator[torch.Tensor]:
    """One centred matrix (m, q) float64 for each token, in turn.

    Args:
        rows: (m, c, h, w) or (m, d) released rows.
        reading: "places": each location by itself, and the whole row. "sizes": the same of absolute values.
            "bags": mean and second moments over the locations, which no order of the patches changes. "unshuffled": as
            "places", patches first put back (`unshuffled`).
        locations: Number of equal parts of a vector, if its length allows; images bring their own patches.
        chosen: Numbers of tokens, in ascending order; None for all.
    """
    chosen = range(token_count(rows, reading, locations)) if chosen is None else chosen
    parts = rows.map(partial(located, locations=locations)) if isinstance(rows, Rows) else located(rows, locations)
    if reading == "bags":
        bag = _bag(parts.double())
        matrices: Iterator[torch.Tensor] = iter([bag[number] for number in chosen])
    else:
        parts = unshuffled(parts) if reading == "unshuffled" else parts
        matrices = _each(
            parts, chosen, (lambda part: part.double().abs()) if reading == "sizes" else torch.Tensor.double
        )
    for token in matrices:
        yield token - token.mean(dim=0)


def _each(
    parts: torch.Tensor, chosen: Sequence[int], read: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[torch.Tensor]:
    """Chosen locations of parts (m, locations, q), then perhaps all, by `read`.

    Of rows that are read where they are used, as many locations are read at a time as fit.
    """
    m, locations, q = parts.shape
    alone = [number for number in chosen if number < locations]
    if not isinstance(parts, Rows):
        yield from (read(parts[:, location]) for location in alone)
    else:
        some = max(1, parts.budget.whole // 8 // max(1, m * q * torch.float64.itemsize))
        for first in range(0, len(alone), some):
            numbers = alone[first : first + some]
            group = torch.empty(len(numbers), m, q, dtype=torch.float64, device=parts.device)
            for place, block in parts.blocks():
                group[:, place] = read(block[:, numbers]).transpose(0, 1)
            yield from group
    if len(alone) < len(chosen):
        yield parts.map(lambda block: read(block.flatten(1))) if isinstance(parts, Rows) else read(parts.flatten(1))


def token_count(rows: torch.Tensor, reading: Reading, locations: int) -> int:
    """Number of matrices that `tokens` gives."""
    parts = located(rows[:1], locations).shape[1]
    return 2 if reading == "bags" else parts + 1 if parts > 1 else 1


def located(rows: torch.Tensor, locations: int) -> torch.Tensor:
    """Parts (m, locations, q): patches, positions of small images, or equal parts."""
    if rows.ndim != 4:
        rows = rows.flatten(1)
        return rows.reshape(len(rows), locations if rows.shape[1] % locations == 0 else 1, -1)
    c, h, w = rows.shape[1:]
    if h * w <= MOST_POSITIONS and c > 1:
        return rows.flatten(2).transpose(1, 2)
    patch_size = fitting_patch(h, w)
    return rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)


def _bag(parts: torch.Tensor) -> list[torch.Tensor]:
    """Mean token (m, q) and second moments along the r largest axes."""
    centred = parts - parts.mean(dim=(0, 1))
    flat = (block.flatten(0, 1) for _, block in in_blocks(centred))
    axes = torch.linalg.eigh(reduce(torch.add, (block.T @ block for block in flat)))[1][:, -MOST_AXES:]
    along = ((block @ axes) for _, block in in_blocks(centred))
    moments = torch.cat([block.transpose(1, 2) @ block for block in along])
    r = moments.shape[1]
    upper = torch.triu_indices(r, r, device=parts.device)
    # Inner products of second moments do not depend on the axes' signs or order, so keys compare; in them an entry off
    # the diagonal stands twice.
    twice = torch.where(upper[0] == upper[1], 1.0, 2.0**0.5).to(moments)
    return [centred.mean(dim=1), moments[:, upper[0], upper[1]] * twice]
