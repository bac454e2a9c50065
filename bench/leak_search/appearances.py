"""Places and bits of released rows that may show raw rows.

Each gives raw and released rows as vectors of one length, float32. Rows are compared at no more than `SIDE` x `SIDE`
places, for what is hidden at a finer scale shows in the means too; whole rows of the raw shape also as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.rows.bit_planes import planes

SIDE = 16
LEAST = 4  # pixels of a window's side
CHANNELS = 4
LEVELS = 33


def appearances(raw: torch.Tensor, released: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Appearances: a name, raw rows (n, q) and released rows (m, q).

    Args:
        raw: (n, ...) float32.
        released: (m, ...) float32, of any shape.
    """
    if raw.shape[1:] == released.shape[1:]:
        yield "rows as they are", raw.flatten(1), released.flatten(1)
    yield "values in order", _levels(raw), _levels(released)
    images = raw.ndim == 4 and released.ndim == 4
    for plane, rows in planes(released):
        for place, a, b in _windows(raw, rows) if images else _stretches(raw.flatten(1), rows.flatten(1)):
            yield f"{plane}, {place}", a, b
    if images and released.shape[1] > 1:
        small = _pooled(raw.mean(dim=1, keepdim=True))
        for channel in range(min(released.shape[1], CHANNELS)):
            yield f"channel {channel}", small, _pooled(released[:, channel : channel + 1], like=small)


def _windows(raw: torch.Tensor, rows: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """The whole image, its corners and its middle, the channels' mean."""
    grey, shown = raw.mean(dim=1, keepdim=True), rows.mean(dim=1, keepdim=True)
    h, w = shown.shape[2:]
    spots = {"everywhere": (0, 0, h, w)}
    for part in (2, 4):
        height, width = h // part, w // part
        if min(height, width) < LEAST:
            continue
        for top in (0, h - height):
            for left in (0, w - width):
                spots[f"corner {top}.{left} of {height}x{width}"] = (top, left, height, width)
        if part == 2:
            spots["middle"] = (h // 4, w // 4, height, width)
    for place, (top, left, height, width) in spots.items():
        window = shown[:, :, top : top + height, left : left + width]
        small = _pooled(grey, most=(height, width))
        yield place, small, _pooled(window, like=small, of=grey)


def _stretches(raw: torch.Tensor, rows: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """The first, and the last, numbers of each longer row."""
    d = raw.shape[1]
    if rows.shape[1] == d:
        yield "everywhere", raw, rows
    elif rows.shape[1] > d:
        yield "first columns", raw, rows[:, :d]
        yield "last columns", raw, rows[:, -d:]


def _pooled(
    images: torch.Tensor,
    most: tuple[int, int] = (SIDE, SIDE),
    *,
    like: torch.Tensor | None = None,
    of: torch.Tensor | None = None,
) -> torch.Tensor:
    """Means (n, q) over SIDE x SIDE places, or as `like`."""
    h, w = (images if of is None else of).shape[2:]
    if like is not None and of is None:
        side = round(like.shape[1] ** 0.5)
        return torch.nn.functional.adaptive_avg_pool2d(images, (side, like.shape[1] // side)).flatten(1)
    if of is not None:
        most = (images.shape[2], images.shape[3])
    return torch.nn.functional.adaptive_avg_pool2d(images, (min(h, SIDE, most[0]), min(w, SIDE, most[1]))).flatten(1)


def _levels(rows: torch.Tensor) -> torch.Tensor:
    """Quantiles (n, LEVELS) of each row, which shuffling within rows leaves."""
    flat = rows.flatten(1).sort(dim=1).values
    places = torch.linspace(0, flat.shape[1] - 1, LEVELS).round().long().to(flat.device)
    return flat[:, places]
