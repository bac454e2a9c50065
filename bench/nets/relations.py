"""How a row stands to the others of its set: signatures of the Gram matrix, which no key needs to be known for.

A wide random network nearly keeps, or changes in a known way, the inner products of what it encodes: what is close
stays close. So the sorted inner products of an image's patch with the same patch of all other images say which image it
is, before and after the encoding, whatever the key. A network would have to discover this; here it is told.

Source: our own, after the kernels of wide random networks, which are nearly deterministic (Lee et al., Deep neural
networks as Gaussian processes, 2018).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.nets.ordered import ordered
from bench.nets.patches import cut, patch_grid

QUANTILES = 16
BLOCK = 2**25
SMALLEST_NORM = 1e-12
SMALLEST_DEVIATION = 1e-5


class Relations(nn.Module):
    """Rows of one set to embeddings (n, width) of their signatures.

    Args:
        shape: Of one row: (c, h, w), cut into patches, or (d,), a single patch.
        width: Of the embedding.
        patch_size: Side of a square patch in pixels; None makes one patch of a whole row.
    """

    def __init__(self, shape: tuple[int, ...], *, width: int, patch_size: int | None) -> None:
        super().__init__()
        self.patch_size = patch_size if len(shape) == 3 else None
        locations = 1 if self.patch_size is None else math.prod(patch_grid(shape[1], shape[2], self.patch_size)) + 1
        self.body = nn.Sequential(
            nn.Linear(locations * (2 * QUANTILES + 1), 2 * width), nn.SELU(), nn.Linear(2 * width, width)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows of one set, float32, to (n, width)."""
        with torch.autocast(rows.device.type, enabled=False):
            found = signatures(rows, self.patch_size).flatten(1)
        deviation, mean = torch.std_mean(found, dim=0, correction=0)
        out: Tensor = self.body((found - mean) / deviation.clamp_min(SMALLEST_DEVIATION))
        return out


def signatures(rows: Tensor, patch_size: int | None) -> Tensor:
    """(n, locations, 33) for each patch, centred over the set, and for the whole row where it has several patches.

    16 quantiles of the inner products with the other rows, 16 of the cosines, and the logarithm of the square norm.
    Memory grows with the rows, not with their square. A set of one row has no others: its quantiles are 0.

    Args:
        rows: (n, c, h, w) or (n, d), float32.
        patch_size: As of `Relations`.
    """
    patches = (rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)).transpose(0, 1)
    patches = patches - patches.mean(dim=1, keepdim=True)
    norms = _with_whole(patches.square().sum(dim=2)).clamp_min(SMALLEST_NORM)
    inverse, n = norms.rsqrt(), patches.shape[1]
    blocks = []
    for block in torch.split(torch.arange(n, device=rows.device), max(1, BLOCK // (n * len(norms)))):
        products = _with_whole(patches[:, block] @ patches.transpose(1, 2))
        cosines = products * inverse[:, block, None] * inverse[:, None, :]
        blocks.append(torch.cat((_quantiles(products, block), _quantiles(cosines, block)), dim=2))
    return torch.cat((torch.cat(blocks, dim=1), norms.log().unsqueeze(2)), dim=2).transpose(0, 1)


def _with_whole(parts: Tensor) -> Tensor:
    """Inner products of whole rows, the sum of those of their patches (first axis), as one patch more."""
    return parts if len(parts) == 1 else torch.cat((parts, parts.sum(dim=0, keepdim=True)))


def _quantiles(table: Tensor, block: Tensor) -> Tensor:
    """(locations, b, QUANTILES) over the columns of (locations, b, n), without each row's own column."""
    others = table.shape[2] - 1
    if not others:
        return table.new_zeros(*table.shape[:2], QUANTILES)
    own = block.view(1, -1, 1).expand(len(table), -1, 1)
    rising = ordered(table.scatter(2, own, -math.inf))[:, :, 1:]
    places = ((torch.arange(QUANTILES, device=table.device) + 0.5) / QUANTILES * others).long()
    return rising[:, :, places]
