"""Released rows read as tokens: parts of a row that are compared part by part, whatever shape a release has.

A reading is one way to take rows apart. Which one an encoder leaves readable depends on the encoder, so an attack tries
them on keys of its own: `places` for encoders that keep a patch where it was, `sizes` for those that flip signs, `bags`
for those that shuffle the patches of each image.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from bench.nets.patches import cut, fitting_patch

Reading = Literal["places", "sizes", "bags"]
READINGS: tuple[Reading, ...] = ("places", "sizes", "bags")
MOST_LOCATIONS = 64
MOST_AXES = 48


def tokens(rows: Tensor, reading: Reading, locations: int) -> list[Tensor]:
    """One matrix (m, q) float64 a token; every matrix is centred over the rows.

    Args:
        rows: (m, c, h, w) or (m, d) released rows.
        reading: "places": each location by itself, and the whole row. "sizes": the same of absolute values.
            "bags": mean and second moments over the locations, which no order of the patches changes.
        locations: How many equal parts a vector is cut into, if its length allows; images bring their own patches.
    """
    parts = located(rows.double(), locations)
    if reading == "bags":
        found = _bag(parts)
    else:
        parts = parts.abs() if reading == "sizes" else parts
        found = [*parts.unbind(dim=1), parts.flatten(1)] if parts.shape[1] > 1 else [parts[:, 0]]
    return [token - token.mean(dim=0) for token in found]


def located(rows: Tensor, locations: int) -> Tensor:
    """(m, locations, q): patches of images, positions of small many-channel images, equal parts of vectors."""
    if rows.ndim != 4:
        rows = rows.flatten(1)
        return rows.reshape(len(rows), locations if rows.shape[1] % locations == 0 else 1, -1)
    c, h, w = rows.shape[1:]
    if h * w <= MOST_LOCATIONS and c > 1:
        return rows.flatten(2).transpose(1, 2)
    patch_size = fitting_patch(h, w)
    return rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)


def _bag(parts: Tensor) -> list[Tensor]:
    """The mean token (m, q) and the second moments (m, r (r + 1) / 2) along the r largest axes of all tokens.

    Inner products of second moments do not depend on the axes' signs or order, so keys compare.
    """
    centred = parts - parts.mean(dim=(0, 1))
    flat = centred.flatten(0, 1)
    axes = torch.linalg.eigh(flat.T @ flat)[1][:, -MOST_AXES:]
    along = centred @ axes
    moments = along.transpose(1, 2) @ along
    r = moments.shape[1]
    upper = torch.triu_indices(r, r, device=parts.device)
    # An entry off the diagonal stands twice in the inner product of two symmetric matrices.
    twice = torch.where(upper[0] == upper[1], 1.0, 2.0**0.5).to(moments)
    return [centred.mean(dim=1), moments[:, upper[0], upper[1]] * twice]
