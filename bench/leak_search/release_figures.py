"""Figures of a release's numbers, kept raw rows and a learned attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.types import NotApplicable, Release

ROWS = 128
"""Most rows of a release that figures are computed on."""
COORDINATES, QUANTILES = 8, 16
RIDGE = 0.1
FEWEST = 8
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
LEARNED = "rows found by a learned attack"


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """Released rows (m, e); linked raw (p, d) and released (p, e)."""

    released: torch.Tensor
    rows: float
    linked: tuple[torch.Tensor, torch.Tensor] | None

    @classmethod
    def of(cls, raw: torch.Tensor, chosen: torch.Tensor, form: Release | NotApplicable) -> LinkedRows | None:
        """Rows `chosen` (q,) with raw rows `raw` (q, d); None for refusals."""
        if isinstance(form, NotApplicable):
            return None
        if form.links is None:
            return cls(flat(form.samples[:ROWS]), len(form), None)
        links = (form.links if form.primary is None else form.links[form.primary]).cpu().flip(0)
        at = torch.full((int(max(int(chosen.max()), int(links[:, 0].max()))) + 1,), -1)
        at[links[:, 0]] = links[:, 1]
        there = at[chosen] >= 0
        rows = flat(form.samples[at[chosen][there].to(form.samples.device)])
        return cls(rows, len(form), (raw[there], rows) if len(rows) >= FEWEST else None)

    def figures(self) -> dict[str, float]:
        """Figures of the numbers, and of what they keep of raw rows."""
        rows = self.released
        found = {"rows released": float(self.rows)}
        if not len(rows):
            return found
        numbers = rows.flatten()
        mean, deviation = float(numbers.mean()), float(numbers.std(correction=0))
        found |= {"mean": mean, "deviation": deviation, "least": float(numbers.min()), "greatest": float(numbers.max())}
        if deviation > 0:
            scaled = (numbers - mean) / deviation
            found |= {"skew": float(scaled.pow(3).mean()), "kurtosis": float(scaled.pow(4).mean())}
        ranked = numbers.sort().values
        found |= {f"quantile {at:g}": float(ranked[round(at * (len(ranked) - 1))]) for at in LEVELS}
        lengths = rows.norm(dim=1)
        found |= {"mean length": float(lengths.mean()), "spread of lengths": float(lengths.std(correction=0))}
        found["spread of row means"] = float(rows.mean(dim=1).std(correction=0))
        found["different numbers"] = float((ranked[1:] != ranked[:-1]).double().mean())
        energy = torch.linalg.eigvalsh(_gram(rows, unit=False)).clamp_min(0).flip(0)
        if float(energy.sum()) > 0:
            shares = energy / energy.sum()
            found |= {f"share of the first {count} axes": float(shares[:count].sum()) for count in (1, 2, 4, 8, 16)}
            found["entropy of axes"] = float(-(shares * shares.clamp_min(1e-12).log()).sum())
        return found | self.kept()

    def kept(self) -> dict[str, float]:
        """Figures of what released rows keep of their raw rows."""
        if self.linked is None:
            return {}
        raw, rows = self.linked
        of_raw, of_rows = _gram(raw), _gram(rows)
        apart = ~torch.eye(len(raw), dtype=torch.bool)
        found = {"agreement of angles": _correlation(of_raw[apart], of_rows[apart])}
        found["agreement of distances"] = _correlation(torch.cdist(raw, raw)[apart], torch.cdist(rows, rows)[apart])
        near = [(gram - 3 * torch.eye(len(gram))).argmax(dim=1) for gram in (of_raw, of_rows)]
        found["same neighbours"] = float((near[0] == near[1]).double().mean())
        found["rows found by angles"] = _top(_signature(of_raw), _signature(of_rows))
        if raw.shape == rows.shape:
            found["rows found by pixels"] = _top(raw - raw.mean(dim=0), rows - rows.mean(dim=0))
        half = len(raw) // 2
        axes = _coordinates(raw)
        guess = _ridge(axes[:half], rows[:half] - rows[:half].mean(dim=0), axes[half:])
        left = rows[half:] - rows[half:].mean(dim=0)
        found["predicted by raw rows"] = 1 - float((left - guess).square().sum() / left.square().sum().clamp_min(1e-12))
        return found


def add_attack(sides: Sequence[Sequence[LinkedRows | None]], figures: Sequence[Sequence[dict[str, float]]]) -> None:
    """Add the figure of an attack that learns from all other keys."""
    described = [
        [None if rows is None or rows.linked is None else _Described.of(*rows.linked) for rows in pair]
        for pair in sides
    ]
    everything = [one for pair in described for one in pair if one is not None]
    for pair, found in zip(described, figures, strict=True):
        own = [one for one in pair if one is not None]
        if len(own) == len(everything):
            continue
        inner = torch.stack([one.inner for one in everything if one not in own]).sum(dim=0)
        crossed = torch.stack([one.crossed for one in everything if one not in own]).sum(dim=0)
        for one, of in zip(pair, found, strict=True):
            if one is not None:
                of[LEARNED] = _top(one.raw, one.released @ _solved(inner, crossed))


@dataclass(frozen=True, eq=False)
class _Described:
    """Descriptions of raw (p, q), released (p, r), and their products."""

    raw: torch.Tensor
    released: torch.Tensor
    inner: torch.Tensor
    crossed: torch.Tensor

    @classmethod
    def of(cls, raw: torch.Tensor, rows: torch.Tensor) -> _Described:
        a, b = _coordinates(raw), _described(rows)
        return cls(a, b, b.T @ b, b.T @ a)


def flat(rows: torch.Tensor) -> torch.Tensor:
    """Rows (n, d) float64 on the CPU."""
    return rows[:].flatten(1).double().cpu()


def _gram(rows: torch.Tensor, *, unit: bool = True) -> torch.Tensor:
    """Inner products (n, n) of centred rows, of unit length if wanted."""
    rows = rows - rows.mean(dim=0)
    if unit:
        rows = torch.nn.functional.normalize(rows, dim=1)
    return rows @ rows.T


def _signature(gram: torch.Tensor) -> torch.Tensor:
    """Quantiles (n, 16) of each Gram row, standardised over rows."""
    found = gram.sort(dim=1).values[:, torch.linspace(0, len(gram) - 1, QUANTILES).round().long()]
    return (found - found.mean(dim=0)) / found.std(dim=0, correction=0).clamp_min(1e-9)


def _described(rows: torch.Tensor) -> torch.Tensor:
    """Descriptions without a key: angles to other rows, length, moments."""
    centred = rows - rows.mean(dim=0)
    size = centred.square().mean().sqrt().clamp_min(1e-12)
    moments = torch.stack([(centred / size).pow(power).mean(dim=1) for power in (1, 2, 3, 4)], dim=1)
    moments = (moments - moments.mean(dim=0)) / moments.std(dim=0, correction=0).clamp_min(1e-9)
    return torch.cat((_signature(_gram(rows)), moments), dim=1)


def _coordinates(raw: torch.Tensor) -> torch.Tensor:
    """Coordinates (n, 8) along the first axes, of unit spread."""
    centred = raw - raw.mean(dim=0)
    left: torch.Tensor = torch.linalg.svd(centred, full_matrices=False)[0][:, :COORDINATES]
    sign = left.gather(0, left.abs().argmax(dim=0, keepdim=True)).sign()
    scaled: torch.Tensor = left * (sign * len(raw) ** 0.5)
    return scaled


def _ridge(known: torch.Tensor, target: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return new @ _solved(known.T @ known, known.T @ target)


def _solved(inner: torch.Tensor, crossed: torch.Tensor) -> torch.Tensor:
    """Weights of a ridge regression."""
    ridge = RIDGE * inner.diagonal().mean().clamp_min(1e-12)
    weights: torch.Tensor = torch.linalg.solve(inner + ridge * torch.eye(len(inner), dtype=inner.dtype), crossed)
    return weights


def _top(a: torch.Tensor, b: torch.Tensor) -> float:
    """Mean share (0 to 1) of rows farther than the true one."""
    distance = torch.cdist(a, b)
    own = distance.diagonal()
    beaten = (distance > own).double() + 0.5 * (distance == own).double()
    return float((beaten.sum(dim=0) - 0.5).mean()) / max(1, len(a) - 1)


def _correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-12))
