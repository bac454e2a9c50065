"""Released rows read as tokens: parts that are compared one by one.

A reading is one way to take rows apart. Encoders leave different readings usable, so an attack tries them on keys
of its own: `places` for encoders that keep a patch where it was, `sizes` for those that flip signs, `bags`
for those that shuffle the patches of each image, `unshuffled` for those that do so and mark each patch by its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Literal

import torch

from bench.eve.unshuffled import unshuffled
from bench.memory.rows import Rows, in_blocks
from bench.nets.patches import cut, fitting_patch

Reading = Literal["places", "sizes", "bags", "unshuffled"]
READINGS: tuple[Reading, ...] = ("places", "sizes", "bags", "unshuffled")
MOST_LOCATIONS = 64
MOST_AXES = 48


def tokens(
    rows: torch.Tensor, reading: Reading, locations: int, chosen: Sequence[int] | None = None
) -> Iterator[torch.Tensor]:
    """One centred matrix (m, q) float64 for each token, in turn.

    Args:
        rows: (m, c, h, w) or (m, d) released rows.
        reading: "places": each location by itself, and the whole row. "sizes": the same of absolute values.
            "bags": mean and second moments over the locations, which no order of the patches changes. "unshuffled": as
            "places", patches first put back (`bench.eve.unshuffled`).
        locations: Number of equal parts of a vector, if its length allows; images bring their own patches.
        chosen: Numbers of tokens, in ascending order; None for all.
    """
    chosen = range(token_count(rows, reading, locations)) if chosen is None else chosen
    parts = rows.map(partial(located, locations=locations)) if isinstance(rows, Rows) else located(rows, locations)
    if reading == "bags":
        bag = _bag(parts.double())
        found: Iterator[torch.Tensor] = iter([bag[number] for number in chosen])
    else:
        parts = unshuffled(parts) if reading == "unshuffled" else parts
        found = _each(parts, chosen, (lambda part: part.double().abs()) if reading == "sizes" else torch.Tensor.double)
    for token in found:
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
    if h * w <= MOST_LOCATIONS and c > 1:
        return rows.flatten(2).transpose(1, 2)
    patch_size = fitting_patch(h, w)
    return rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)


def _bag(parts: torch.Tensor) -> list[torch.Tensor]:
    """Mean token (m, q) and second moments along the r largest axes.

    Inner products of second moments do not depend on the axes' signs or order, so keys compare.
    """
    centred = parts - parts.mean(dim=(0, 1))
    flat = (block.flatten(0, 1) for _, block in in_blocks(centred))
    axes = torch.linalg.eigh(reduce(torch.add, (block.T @ block for block in flat)))[1][:, -MOST_AXES:]
    along = ((block @ axes) for _, block in in_blocks(centred))
    moments = torch.cat([block.transpose(1, 2) @ block for block in along])
    r = moments.shape[1]
    upper = torch.triu_indices(r, r, device=parts.device)
    # An entry off the diagonal stands twice in the inner product of two symmetric matrices.
    twice = torch.where(upper[0] == upper[1], 1.0, 2.0**0.5).to(moments)
    return [centred.mean(dim=1), moments[:, upper[0], upper[1]] * twice]
