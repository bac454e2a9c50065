"""Numbers of released rows that survive a change of key.

Eve learns from releases under keys of her own, and reads releases under keys that she has never seen. Pixels do not
mean the same under another key; these numbers do, or move alike. `statistics` describe a row alone: lengths, extremes,
quantiles. `geometry` describes a row among the others of its release: its principal coordinates and its distances. A
map that keeps inner products keeps these (Torgerson 1952, multidimensional scaling), up to the sign of each coordinate,
which is set by its skewness.
"""

from __future__ import annotations

import torch

from bench.nets.patches import cut, fitting_patch

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
TINY = 1e-30
ROWS_AT_ONCE = 1024

COORDINATES = 24
LEARNT_FROM = 1024
"""Rows of a release that its principal axes are taken from."""
NEIGHBOURS = (1, 3, 10, 30)


def statistics(samples: torch.Tensor) -> torch.Tensor:
    """(n, q) float64: the statistics of rows (n, ...)."""
    return torch.cat([_statistics(part) for part in torch.split(samples, ROWS_AT_ONCE)])


def _statistics(samples: torch.Tensor) -> torch.Tensor:
    rows = samples.flatten(1).double()
    sizes = rows.abs()
    powers = torch.stack([sizes.pow(power).mean(dim=1).pow(1 / power) for power in (1, 2, 4)], dim=1)
    deviation = rows.std(dim=1, correction=0)[:, None]
    quantiles = torch.quantile(rows, rows.new_tensor(QUANTILES), dim=1).T
    ends = torch.stack((rows.amin(dim=1), rows.amax(dim=1), rows.mean(dim=1)), dim=1)
    sized = torch.cat((powers, deviation), dim=1)
    columns = [ends, sized, sized.square(), sized.clamp_min(TINY).log(), quantiles]
    if samples.ndim == 4:
        images = samples.double()
        steps = [images.diff(dim=axis).abs().flatten(1).sum(dim=1) for axis in (2, 3)]
        columns.append(torch.stack(steps, dim=1))
        size = fitting_patch(samples.shape[2], samples.shape[3])
        if size is not None:
            columns.append(cut(samples, size).double().square().mean(dim=2).sqrt().sort(dim=1).values)
    return torch.cat(columns, dim=1)


def geometry(samples: torch.Tensor) -> torch.Tensor:
    """(n, q) float64: the place of each row among all.

    Principal coordinates in units of their deviation, turned to positive skewness, and their sizes; the logarithms of
    the root mean square distances from the mean and from the nearest 1, 3, 10 and 30 rows, over the release's mean
    distance. Columns that a small release lacks are 0, so that q is the same for all.

    >>> rows = torch.rand(40, 8, generator=torch.Generator().manual_seed(0))
    >>> turn = torch.linalg.qr(torch.rand(8, 8, generator=torch.Generator().manual_seed(1)))[0]
    >>> bool((geometry(rows) - geometry(rows @ turn)).abs().max() < 1e-3)
    True
    """
    rows = samples.flatten(1).double()
    chosen = torch.linspace(0, len(rows) - 1, min(len(rows), LEARNT_FROM), device=rows.device).long()
    some = rows[chosen]
    mean = some.mean(dim=0)
    some, rows = some - mean, rows - mean
    many = min(len(some) - 1, rows.shape[1], COORDINATES)
    places = rows.new_zeros(len(rows), COORDINATES)
    if many > 0:
        axes = _axes(some, many)
        coordinates = rows @ axes
        coordinates = coordinates / coordinates.std(dim=0, correction=0).clamp_min(TINY)
        turned = torch.where(coordinates.pow(3).mean(dim=0) < 0, -1.0, 1.0)
        places[:, :many] = coordinates * turned
    unit = some.square().sum(dim=1).mean().clamp_min(TINY)
    near = rows.new_zeros(len(rows), len(NEIGHBOURS))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        squares = part.square().sum(dim=1)[:, None] + some.square().sum(dim=1) - 2 * part @ some.T
        here = (chosen >= start) & (chosen < start + len(part))
        squares[chosen[here] - start, here.nonzero()[:, 0]] = torch.inf  # the row itself
        ordered = squares.clamp_min(0).sort(dim=1).values[:, : len(some) - 1]
        for column, count in enumerate(NEIGHBOURS):
            if ordered.shape[1] >= count:
                near[start : start + ROWS_AT_ONCE, column] = ordered[:, :count].mean(dim=1)
    lengths = torch.cat((rows.square().sum(dim=1)[:, None], near), dim=1)
    return torch.cat((places, places.abs(), (lengths / unit + 1e-12).log()), dim=1)


def _axes(rows: torch.Tensor, many: int) -> torch.Tensor:
    """The first principal axes (d, many) of centred rows, or 0."""
    if len(rows) > rows.shape[1]:
        _, parts = torch.linalg.eigh(rows.T @ rows)
        largest: torch.Tensor = parts[:, -many:].flip(1)
        return largest
    squares, parts = torch.linalg.eigh(rows @ rows.T)
    axes = rows.T @ parts[:, -many:].flip(1)
    real = squares[-many:].flip(0) > 1e-12 * squares[-1].clamp_min(TINY)
    return torch.where(real, axes / torch.linalg.vector_norm(axes, dim=0).clamp_min(TINY), 0.0)
