"""Cross-fitted kernel ridge regression from raw to released rows, by location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

Kernel = Literal["linear", "gauss"]
RIDGES = (1e-3, 1e-1, 10.0)
FOLDS = 5
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Pairs:
    """Matched rows `raw`, `released` (t,) int64, and each raw row's `fold` (n,)."""

    raw: torch.Tensor
    released: torch.Tensor
    fold: torch.Tensor


def predict(
    raw: list[torch.Tensor], released: list[torch.Tensor], pairs: Pairs, kernel: Kernel
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors (n, d), (m, d) float64: cosines of predicted and released rows.

    Every raw row is predicted by regressions on the pairs of the other folds. A location's ridge is the one whose
    predictions correlate best with the released rows of the pairs left out; locations count by that correlation.

    Args:
        raw: One (n, q) float64 a location, centred.
        released: One (m, r) float64 a location, centred; as many locations as `raw`.
        pairs: The matched rows to learn from.
        kernel: "linear", or "gauss" (a Gaussian of the median distance).
    """
    a, b = [], []
    for inputs, outputs in zip(raw, released, strict=True):
        targets = outputs / outputs.square().mean().sqrt().clamp_min(TINY)
        products = _kernel(inputs, pairs.raw, kernel)
        tried = [_out_of_fold(products, targets, pairs, ridge) for ridge in RIDGES]
        fits = [correlation(guess[pairs.raw], targets[pairs.released]) for guess in tried]
        best = max(range(len(RIDGES)), key=fits.__getitem__)
        weight = weight_of(fits[best])
        size = tried[best].square().mean().sqrt().clamp_min(TINY)
        a.append(tried[best] / size * weight**0.5)
        b.append(targets * weight**0.5)
    return torch.cat(a, dim=1), torch.cat(b, dim=1)


def measured(inputs: torch.Tensor, anchors: torch.Tensor, kernel: Kernel) -> torch.Tensor:
    """Inner products (b, t) with anchors; for "gauss" squared distances."""
    if kernel == "linear":
        return inputs @ anchors.T
    squares = inputs.square().sum(dim=1)[:, None] + anchors.square().sum(dim=1) - 2 * inputs @ anchors.T
    return squares.clamp_min(0)


def raised(measured: torch.Tensor, unit: torch.Tensor, kernel: Kernel) -> torch.Tensor:
    """Kernel of mean diagonal 1; `unit`: mean square or ("gauss") median distance."""
    return measured / unit if kernel == "linear" else (-measured / unit).exp()


def solve(products: torch.Tensor, targets: torch.Tensor, ridge: float) -> torch.Tensor:
    """Weights (t, r) of anchors for `targets`; overwrites `products` (t, t)."""
    products.diagonal().add_(ridge)
    return torch.cholesky_solve(targets, torch.linalg.cholesky(products))


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """The cosine of two matrices, each as one vector."""
    sizes = torch.linalg.vector_norm(a) * torch.linalg.vector_norm(b)
    return float((a * b).sum() / sizes.clamp_min(TINY))


def weight_of(fit: float) -> float:
    """Weight of a location whose predictions correlate by `fit`."""
    return max(fit, 0.0) / (1 - min(fit, 0.99) ** 2)


def _kernel(inputs: torch.Tensor, chosen: torch.Tensor, kernel: Kernel) -> torch.Tensor:
    """(n, t) kernel of all rows with the chosen rows."""
    found = measured(inputs, inputs[chosen], kernel)
    unit = inputs.square().sum(dim=1).mean() if kernel == "linear" else found.median()
    return raised(found, unit.clamp_min(TINY), kernel)


def _out_of_fold(products: torch.Tensor, targets: torch.Tensor, pairs: Pairs, ridge: float) -> torch.Tensor:
    """Predictions (n, r) of raw rows from pairs of the other folds."""
    guess = torch.zeros(len(products), targets.shape[1], dtype=targets.dtype, device=targets.device)
    for fold in range(FOLDS):
        known = (pairs.fold[pairs.raw] != fold).nonzero()[:, 0]
        asked = (pairs.fold == fold).nonzero()[:, 0]
        if not len(known):
            continue
        solved = solve(products[pairs.raw[known]][:, known], targets[pairs.released[known]], ridge)
        guess[asked] = products[asked][:, known] @ solved
    return guess
