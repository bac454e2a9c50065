"""Logistic regression with every strength of L2 penalty, from strong to weak: each model starts from the one before.

Rows are brought to coordinates in which the curvature of the loss is bounded by a diagonal matrix (Böhning and Lindsay
1988: at most a quarter of the rows' own second moments), where L-BFGS needs few steps. With fewer rows than columns
these are the principal parts of the rows, from their inner products. Where both are many, columns stay as they are and
the diagonal is that of their variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

STRENGTHS = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
"""Half the penalty of a squared weight, in mean square norms of a row, where losses are summed over rows."""
STEPS = 50
"""Of L-BFGS in principal parts, a model; columns as they are take `SLOWER` times as many."""
SLOWER = 4
FEW = 3000
"""Rows or columns, whichever are fewer, up to which principal parts are found."""
SMALL = 1 << 20
"""Numbers up to which the host works on coordinates: an accelerator would wait longer for each step than work."""
LEAST = 1e-7
"""Principal parts that small, beside the largest, are rounding."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """One model of a path: logits are rows @ weights + bias.

    Args:
        strength: Of its penalty.
        weights: (d, k) float32.
        bias: (k,) float32.
    """

    strength: float
    weights: torch.Tensor
    bias: torch.Tensor


def logistic_path(
    rows: torch.Tensor, labels: torch.Tensor, *, exclusive: bool, strengths: tuple[float, ...] = STRENGTHS
) -> list[LinearModel]:
    """A model for each strength, in their order.

    Args:
        rows: (m, d) float32.
        labels: (m, k) in [0, 1], soft or hard; NaN is unknown.
        exclusive: Whether each row has exactly one class (softmax over the k) or k findings of their own.
        strengths: Best from strong to weak.

    Raises:
        ValueError: No row has a known label.
    """
    known = ~labels.isnan()
    kept = (known.all(dim=1) if exclusive else known.any(dim=1)).nonzero()[:, 0]
    if not len(kept):
        raise ValueError("a linear model needs labels: every label of every row is NaN")
    mean = rows[kept].mean(dim=0)
    centred = rows[kept] - mean
    scale = float(centred.square().mean().sqrt().clamp_min(1e-30))
    centred /= scale
    basis = _basis(centred)
    where = basis.coordinates.device
    loss = _Loss(labels[kept].to(where, basis.dtype), exclusive)
    penalties = [strength * rows.shape[1] for strength in strengths]
    found = []
    weights = torch.zeros(basis.coordinates.shape[1], labels.shape[1], dtype=basis.dtype, device=where)
    bias = torch.zeros(labels.shape[1], dtype=basis.dtype, device=where)
    for strength, penalty in zip(strengths, penalties, strict=True):
        weights, bias = _solved(basis, loss, penalty, weights, bias)
        own = basis.back(weights.to(rows.device)).float() / scale
        found.append(LinearModel(strength, own, bias.to(rows.device).float() - mean @ own))
    return found


@dataclass(frozen=True, eq=False)
class _Basis:
    """Rows as `coordinates` (m, r), the sums of their `squares` (r,), and how weights come `back` to columns.

    The former two lie where the models are to be found, `back` where the rows are.
    """

    coordinates: torch.Tensor
    squares: torch.Tensor
    back: Callable[[torch.Tensor], torch.Tensor]
    steps: int = STEPS

    @property
    def dtype(self) -> torch.dtype:
        """Of the coordinates: float64 where they are few."""
        return self.coordinates.dtype


def _basis(rows: torch.Tensor) -> _Basis:
    m, d = rows.shape
    if min(m, d) > FEW:
        return _Basis(rows, rows.square().sum(dim=0), lambda weights: weights, SLOWER * STEPS)
    squares, parts = torch.linalg.eigh(((rows @ rows.T) if m <= d else (rows.T @ rows)).double())
    real = squares > LEAST * squares[-1].clamp_min(1e-30)
    squares, parts = squares[real], parts[:, real]
    sizes = squares.sqrt()
    coordinates = rows.double() @ parts if m > d else parts * sizes
    where = torch.device("cpu") if coordinates.numel() <= SMALL else rows.device

    def back(weights: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = parts @ weights if m > d else rows.T @ ((parts / sizes) @ weights).float()
        return found

    return _Basis(coordinates.to(where), squares.to(where), back)


class _Loss:
    """The summed loss of logits (m, k) and its gradient, (m, k); unknown labels count for nothing."""

    def __init__(self, labels: torch.Tensor, exclusive: bool) -> None:
        self.exclusive, self.known, self.labels = exclusive, ~labels.isnan(), labels.nan_to_num()

    def __call__(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.exclusive:
            logs = torch.nn.functional.log_softmax(logits, dim=1)
            return -(self.labels * logs).sum(), logs.exp() - self.labels
        losses = torch.nn.functional.softplus(logits) - self.labels * logits
        return (losses * self.known).sum(), (logits.sigmoid() - self.labels) * self.known


def _solved(
    basis: _Basis, loss: _Loss, penalty: float, weights: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rows = basis.coordinates
    widths = (basis.squares / 4 + penalty).rsqrt()[:, None]
    width = 2 / math.sqrt(len(rows))
    free, offset = (weights / widths).requires_grad_(), (bias / width).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [free, offset], max_iter=basis.steps, tolerance_grad=1e-3, tolerance_change=1e-6, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        with torch.no_grad():
            own = widths * free
            value, slope = loss(rows @ own + width * offset)
            free.grad = widths * (rows.T @ slope + penalty * own)
            offset.grad = width * slope.sum(dim=0)
            return value + penalty / 2 * own.square().sum()

    with torch.enable_grad():
        optimiser.step(closure)  # type: ignore[no-untyped-call]
    return (widths * free).detach(), (width * offset).detach()
