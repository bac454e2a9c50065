"""Cross-fitted kernel ridge regression from raw to released rows, by location.

Rows too large for memory go through the same regressions in parts. The matched rows and the solved weights of every
location and fold are kept, on disk if they do not fit in memory. The matched rows at one location and the weights of
one fold are in memory at once. Predictions are made once and kept, so that a score has the same bits in every block.
The median distance is found digit by digit, exact to 2^-36 of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows, in_blocks, kept, rows_at

Kernel = Literal["linear", "gauss"]
RIDGES = (1e-3, 1e-1, 10.0)
FOLDS = 5
TINY = 1e-30

SIDE = 2048
"""Rows at a time."""
DIGIT = 16
"""Bits of a distance that are counted in one pass over the rows."""
DIGITS = 3
"""Passes: sign, exponent and 36 bits of the fraction of a float64."""


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
    products = measured(inputs, inputs[chosen], kernel)
    unit = inputs.square().sum(dim=1).mean() if kernel == "linear" else products.median()
    return raised(products, unit.clamp_min(TINY), kernel)


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


def predict_in_parts(
    raw: torch.Tensor, released: torch.Tensor, pairs: Pairs, kernel: Kernel
) -> tuple[torch.Tensor, torch.Tensor]:
    """`bench.eve.ridge.predict`, up to roundings, of rows that do not fit in memory.

    Args:
        raw: (n, locations, q) float64, each location centred.
        released: (m, locations, r) float64, each location centred.
        pairs: The matched rows to learn from.
        kernel: As there.

    Raises:
        TooLargeError: The pairs' rows at one location, raw or released, do not fit.
    """
    budget = next(rows.budget for rows in (raw, released) if isinstance(rows, Rows))
    anchors = _by_location(raw, pairs.raw, budget)
    units = _medians(raw, anchors, budget) if kernel == "gauss" else raw.square().mean(dim=(0, 2)) * raw.shape[2]
    sizes = released.square().mean(dim=(0, 2)).sqrt().clamp_min(TINY)
    answers = _by_location(released, pairs.released, budget)
    lessons = _Lessons(anchors, answers, units.clamp_min(TINY), sizes, pairs.fold[pairs.raw], kernel)
    settled = [lessons.settle(location) for location in range(len(anchors))]
    parts = (part for location, (ridge, _) in enumerate(settled) for part in lessons.weights(location, ridge))
    weights = kept((part[None] for part in parts), len(settled) * FOLDS, budget)
    squares = torch.zeros_like(sizes)

    def guesses() -> Iterator[torch.Tensor]:
        for place, block in _blocks(raw, budget, released[0].numel()):
            guess = lessons.predict(block, pairs.fold[place], weights)
            squares.add_(guess.square().sum(dim=(0, 2)))
            yield guess.flatten(1)

    a, r = kept(guesses(), len(raw), budget), released.shape[2]
    loud = torch.tensor([weight_of(fit) ** 0.5 for _, fit in settled], dtype=sizes.dtype, device=sizes.device)
    guessed = (squares / (len(raw) * r)).sqrt().clamp_min(TINY)
    return a * (loud / guessed).repeat_interleave(r), (released * (loud / sizes)[:, None]).flatten(1)


@dataclass(frozen=True, eq=False)
class _Lessons:
    """The t pairs, location by location.

    Args:
        anchors: (locations, t, q), the raw rows.
        answers: (locations, t, r), the released rows.
        units: (locations,) as `bench.eve.ridge.raised` takes them.
        sizes: (locations,) root mean squares of all released rows.
        fold: (t,) that of each raw row.
        kernel: As in `predict`.
    """

    anchors: torch.Tensor
    answers: torch.Tensor
    units: torch.Tensor
    sizes: torch.Tensor
    fold: torch.Tensor
    kernel: Kernel

    def settle(self, location: int) -> tuple[float, float]:
        """The best ridge for left-out folds, and its correlation with released rows."""
        products, targets = self._products(self.anchors[location], location), self._targets(location)
        fits = []
        for ridge in RIDGES:
            guess = torch.zeros_like(targets)
            for fold, solved in enumerate(self._solved(products, targets, ridge)):
                asked = (self.fold == fold).nonzero()[:, 0]
                guess[asked] = products[asked] @ solved
            fits.append(correlation(guess, targets))
        best = max(range(len(RIDGES)), key=fits.__getitem__)
        return RIDGES[best], fits[best]

    def weights(self, location: int, ridge: float) -> Iterator[torch.Tensor]:
        """Weights (t, r) for each fold, with zeros for that fold's pairs."""
        return self._solved(self._products(self.anchors[location], location), self._targets(location), ridge)

    def predict(self, rows: torch.Tensor, fold: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Predictions (b, locations, r) of raw rows, by weights of `fold` (b,)."""
        guess = rows.new_zeros(len(rows), len(self.anchors), weights.shape[2])
        asked = [(fold == number).nonzero()[:, 0] for number in range(FOLDS)]
        for location in range(len(self.anchors)):
            products = self._products(rows[:, location], location)
            for number, own in enumerate(asked):
                guess[own, location] = products[own] @ weights[location * FOLDS + number]
        return guess

    def _products(self, rows: torch.Tensor, location: int) -> torch.Tensor:
        products = measured(rows, self.anchors[location], self.kernel)
        return raised(products, self.units[location], self.kernel)

    def _targets(self, location: int) -> torch.Tensor:
        return self.answers[location] / self.sizes[location]

    def _solved(self, products: torch.Tensor, targets: torch.Tensor, ridge: float) -> Iterator[torch.Tensor]:
        for fold in range(FOLDS):
            weights = torch.zeros_like(targets)
            known = (self.fold != fold).nonzero()[:, 0]
            if len(known):
                weights[known] = solve(products[known][:, known], targets[known], ridge)
            yield weights


def _blocks(rows: torch.Tensor, budget: Budget, more: int = 0) -> Iterator[tuple[slice, torch.Tensor]]:
    """Blocks of rows with their places, sized for `more` numbers beside each."""
    wide = (rows[0].numel() + more) * rows.element_size()
    size = max(1, min(SIDE, budget.whole // 8 // max(wide, rows.wide if isinstance(rows, Rows) else 1)))
    return rows.blocks(size) if isinstance(rows, Rows) else in_blocks(rows, size)


def _by_location(rows: torch.Tensor, chosen: torch.Tensor, budget: Budget) -> torch.Tensor:
    """Some rows as (locations, t, q). Raises TooLargeError if none fits."""
    some, (locations, q) = rows_at(rows, chosen), rows.shape[1:]
    bytes_ = len(chosen) * q * rows.element_size()
    budget.check((len(chosen), q), bytes_)
    together = max(1, budget.whole // 8 // bytes_)

    def parts() -> Iterator[torch.Tensor]:
        for first in range(0, locations, together):
            own = slice(first, min(first + together, locations))
            group = torch.empty(own.stop - first, len(chosen), q, dtype=rows.dtype, device=rows.device)
            for place, block in _blocks(some, budget):
                group[:, place] = block[:, own].transpose(0, 1)
            yield group

    return kept(parts(), locations, budget)


def _medians(raw: torch.Tensor, anchors: torch.Tensor, budget: Budget) -> torch.Tensor:
    """Median squared distance (locations,) of rows from anchors, the lower middle."""
    locations, t = anchors.shape[:2]
    prefixes, rank = [0] * locations, [(len(raw) * t - 1) // 2] * locations
    for shift in (64 - DIGIT * (number + 1) for number in range(DIGITS)):
        counts = torch.zeros(locations, 1 << DIGIT, dtype=torch.int64, device=raw.device)
        for _, block in _blocks(raw, budget, t):
            for location in range(locations):
                distances = measured(block[:, location], anchors[location], "gauss").abs()  # no -0.0
                digits = (distances.view(torch.int64) >> shift) - (prefixes[location] << DIGIT)
                own = digits[(digits >= 0) & (digits < 1 << DIGIT)]
                counts[location] += torch.bincount(own, minlength=1 << DIGIT)
        below = counts.cpu().cumsum(dim=1)
        for location, up_to in enumerate(below):
            digit = int(torch.searchsorted(up_to, rank[location], right=True))
            rank[location] -= int(up_to[digit - 1]) if digit else 0
            prefixes[location] = (prefixes[location] << DIGIT) + digit
    bits = torch.tensor(prefixes, dtype=torch.int64) << (64 - DIGIT * DIGITS)
    return bits.view(torch.float64).to(raw.device)
