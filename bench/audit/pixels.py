"""All pixels of an image at once: every pixel is dark or bright by a coin of its own.

For claims per pixel: a release that hides each pixel hides each coin, whatever the others are, so that one release
counts as many coins as it has pixels (Steinke et al. 2023, theorem 5.1). A single pixel without noise shows among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from bench.audit.play import NUMBERS, SET, Owner, Play, Statistic, Tosses, gathered, released
from bench.progress import report
from bench.types import Dataset, NotApplicable

MOST = 4 * NUMBERS  # released numbers of a half
TINY = 1e-6


@dataclass(frozen=True, eq=False)
class PixelPlay(Play):
    """Images of which every pixel is a coin; `row` gives their shape and labels."""

    owner: Owner
    row: Dataset

    name = "every pixel dark or bright"

    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        """`count` images, fewer where they are large."""
        shape = self.row.samples.shape[1:]
        count = max(8, min(count, MOST // shape.numel()))
        first = self.owner.coins(count * shape[1] * shape[2], purpose).view(count, 1, *shape[1:])
        yield from gathered(self._sets(first, purpose))

    def _sets(self, first: torch.Tensor, purpose: str) -> Iterator[Tosses]:
        channels = self.row.samples.shape[1]
        for start in range(0, len(first), SET):
            report(purpose, start, len(first))
            part = first[start : start + SET]
            samples = (~part).float().expand(-1, channels, -1, -1).contiguous().to(self.row.samples)
            labels = None if self.row.labels is None else self.row.labels.expand(len(part), -1)
            rows = replace(self.row, samples=samples, labels=labels, subjects=None)
            release = released(self.owner.key(purpose, start), rows)
            if release.samples.shape[2:] != samples.shape[2:]:
                raise NotApplicable("a released image has other pixels than the raw one")
            yield Tosses(part.flatten(), release)

    def learn(self, seen: Tosses, spare: Tosses) -> list[Statistic]:
        """What a pixel's own number says, as it is and beside its image's mean; equality with what it was."""
        return [
            pixel_discriminant("pixel discriminant", seen, centred=False),
            pixel_discriminant("pixel discriminant beside the image's mean", seen, centred=True),
            Statistic("nearness of a pixel", _nearness),
        ]


def pixel_discriminant(name: str, seen: Tosses, *, centred: bool) -> Statistic:
    """Each pixel's own discriminant, (number - middle) x gap / variance summed over channels: place by place."""
    rows = _rows(seen, centred=centred)
    first = _coins(seen, rows)
    share = first.double().sum(dim=0).clamp_min(1), (~first).double().sum(dim=0).clamp_min(1)
    means = [(rows * side).sum(dim=0) / count for side, count in zip((first, ~first), share, strict=True)]
    gap, middle = means[0] - means[1], (means[0] + means[1]) / 2
    within = rows - torch.where(first, means[0], means[1])
    spread = torch.maximum(within.square().mean(dim=0).sqrt(), TINY * gap.abs())
    weights = torch.where(spread > 0, gap / torch.where(spread > 0, spread, 1.0).square(), 0.0)
    return Statistic(name, lambda tosses: ((_rows(tosses, centred=centred) - middle) * weights).sum(dim=1).flatten())


def _nearness(tosses: Tosses) -> torch.Tensor:
    """How much nearer a pixel lies to what the first input has there, 0, than to the second's 1."""
    rows = tosses.release.samples.double()
    gaps = [(rows - end).abs().amin(dim=1) + TINY for end in (0.0, 1.0)]
    return (gaps[1].log() - gaps[0].log()).flatten()


def _rows(tosses: Tosses, *, centred: bool) -> torch.Tensor:
    rows = tosses.release.samples.double()
    return rows - rows.mean(dim=(2, 3), keepdim=True) if centred else rows


def _coins(tosses: Tosses, rows: torch.Tensor) -> torch.Tensor:
    """(images, 1, h, w) bool."""
    return tosses.first.to(rows.device).view(len(rows), 1, *rows.shape[2:])
