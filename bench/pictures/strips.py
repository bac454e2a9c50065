"""Strips of raw and released images as a picture beside a record."""

from __future__ import annotations

import io

import torch
from PIL import Image

from bench.contract.seal import Sealed

SHOWN = 8
MOST = 16
"""Images of a sheet: of films of people no more may be published."""
MARGIN = 0.25


def draw(strips: list[torch.Tensor]) -> bytes:
    """A PNG of image strips, one below the other.

    Args:
        strips: (b, c, h, w) each, b the same in all; of three channels or more the first three are shown, and of
            each strip as many first images as make `MOST` in all.
    """
    strips = [strip[: max(MOST // len(strips), 1)] for strip in strips[:MOST]]
    sized = [
        torch.nn.functional.interpolate(visible(strip), size=strips[0].shape[2:], mode="nearest") for strip in strips
    ]
    framed = [torch.nn.functional.pad(strip, (1, 1, 1, 1), value=1.0) for strip in sized]
    channels = max((strip.shape[1] for strip in framed), default=1)
    rows = [torch.cat(list(strip.expand(-1, channels, -1, -1)), dim=2) for strip in framed]
    pixels = (torch.cat(rows, dim=1).permute(1, 2, 0) * 255).round().byte().cpu().numpy()
    stream = io.BytesIO()
    Image.fromarray(pixels if channels > 1 else pixels[..., 0]).save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def visible(strip: torch.Tensor) -> torch.Tensor:
    """Images (b, c, h, w) as grey or colour in [0, 1].

    A strip whose 1-99 % range leaves [0, 1] by more than `MARGIN` is in other units: that range is stretched over
    black to white. Any other is cut at black and white.
    """
    strip = strip[:, :3] if strip.shape[1] >= 3 else strip[:, :1]
    if not len(strip):
        return strip
    low, high = _range(strip)
    if low < -MARGIN or high > 1 + MARGIN:
        strip = (strip - low) / max(high - low, 1e-12)
    return strip.clamp(0, 1)


def _range(strip: torch.Tensor) -> tuple[float, float]:
    ordered = strip.flatten().sort().values  # torch.quantile takes 16 million numbers at most
    last = len(ordered) - 1
    return float(ordered[round(0.01 * last)]), float(ordered[round(0.99 * last)])


def before_and_after(raw: torch.Tensor, sealed: Sealed) -> bytes | None:
    """The first released raw images above their released rows; None if undrawable."""
    released = sealed.release.samples
    if sealed.links is None or raw.ndim != 4 or released.ndim != 4:
        return None
    places = stands(sealed.links, sealed.primary, n=len(raw), m=len(released))
    rows = (places < len(released)).nonzero()[:SHOWN, 0]
    return draw([raw[rows], released[places[rows]]])


def stands(links: torch.Tensor, primary: torch.Tensor | None, *, n: int, m: int) -> torch.Tensor:
    """(n,) int64: first released row of each raw row, or m.

    If rows are mixed, only the primary links count.

    Args:
        links, primary: As in `bench.types.Release`.
        n, m: Raw and released rows.

    >>> stands(torch.tensor([[0, 2], [2, 1], [2, 0]]), None, n=3, m=3).tolist()
    [2, 3, 0]
    """
    chosen = links if primary is None else links[primary]
    places = torch.full((n,), m, dtype=torch.int64, device=links.device)
    return places.scatter_reduce_(0, chosen[:, 0], chosen[:, 1], "amin")
