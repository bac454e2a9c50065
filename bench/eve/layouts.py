"""Ways to cut a row into pieces, as encodings may have done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from bench.nets.patches import cut, patch_sizes

MOST_LOCATIONS = 1024
MOST_CHUNKS = 64


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
    found = [Layout("patches", size) for size in patch_sizes(h, w) if (h // size) * (w // size) <= MOST_LOCATIONS]
    if w < numbers // c and c * h <= MOST_LOCATIONS:
        found.append(Layout("chunks", w))
    if c > 1 and 1 < h * w <= MOST_LOCATIONS:
        found.append(Layout("channels", 0))
    whole = Layout("chunks", numbers)
    square = h == w  # then the largest patch is a whole row already
    return found if square else [*found, whole]
