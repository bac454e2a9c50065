"""Statistics of released rows that may reveal the input.

Some use the mechanism's own density, others work for any method. Each is learned on its own releases; others choose
among statistics, their direction and thresholds. So a statistic's direction need not be known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import torch

from bench.audit.game_plays import RowPlay, Statistic, Tosses
from bench.audit.rare_events import STEPS, bits, exact_values, seen_noise, turns
from bench.contract.mechanism import Mechanism
from bench.types import Dataset

TINY = 1e-6
ROUNDING = 1e-12  # of numbers
FINE = 1e-4  # of the spread: nearer values count as equal; grids are at least fifty of it
TRIED = 64  # elements searched for a grid
SPARE = 24  # fewest releases for a classifier
FOREST = 32
PROJECTIONS = 16
LEVELS = (0.0, 0.1, 0.5, 0.9, 1.0)

Read: TypeAlias = "Callable[[Tosses], torch.Tensor]"


def learn(play: RowPlay, training: Tosses, spare: Tosses, mechanism: Mechanism | None) -> list[Statistic]:
    """All statistics that apply to a play."""
    if play.known:
        seen = seen_noise(play, training, mechanism)
        return [] if seen is None else [seen]
    statistics = nearness(play, mechanism)
    if mechanism is not None:
        statistics.append(likelihood_ratio(mechanism, play))
    statistics.append(linear_discriminant("linear discriminant", _numbers, training))
    if training.release.labels is not None:  # raw labels are equal, so released ones should be
        statistics.append(linear_discriminant("released labels", _labels, training))
    if training.beside is not None:
        statistics.append(linear_discriminant("linear discriminant of differences", _apart, training))
        statistics.append(Statistic("distance from its neighbour", lambda tosses: _size(_apart(tosses)).log()))
    if training.release.samples[0].numel() > 1:
        # Clipped noise ends at a point that depends on the row.
        statistics.append(Statistic("least number", lambda tosses: _numbers(tosses).amin(dim=1)))
        statistics.append(Statistic("greatest number", lambda tosses: _numbers(tosses).amax(dim=1)))
        statistics.append(Statistic("spread within a row", lambda tosses: _spread(_numbers(tosses)).log()))
    statistics.append(exact_values(play))
    statistics.append(linear_discriminant("lowest bits", bits, training))
    for step in STEPS:
        name = f"fractions of a step of 1/{1 / step:g}"
        statistics.append(linear_discriminant(name, partial(turns, step=step), training))
    if (grid := grid_residue(training)) is not None:
        statistics.append(grid)
    if (forest := classifier(tuple(statistics), spare)) is not None:
        statistics.append(forest)
    return statistics


def nearness(play: RowPlay, mechanism: Mechanism | None) -> list[Statistic]:
    """Log ratio of a row's distances to the second and first input.

    By the nearest number and by all; numbers in which the inputs agree are left out. Values compare between plays.
    """
    first, second = play.pair.first, play.pair.second
    read: list[tuple[str, Read, torch.Tensor, torch.Tensor]] = [("number", _numbers, _raw(first), _raw(second))]
    if mechanism is not None and mechanism.exact:
        read.append((
            "code", lambda tosses: mechanism.observe(tosses.release).double(),
            mechanism.locate(first).double(), mechanism.locate(second).double(),
        ))  # fmt: skip
    statistics = []
    for name, values, low, high in read:
        differ = (low != high)[0]
        if not bool(differ.any()):
            continue
        ends = low[:, differ], high[:, differ]
        unit = float((ends[0] - ends[1]).abs().amax())
        statistics += [
            Statistic(f"nearest {name}", _nearer(values, differ, ends, unit, nearest=True)),
            Statistic(f"distance of {name}s", _nearer(values, differ, ends, unit, nearest=False)),
        ]
    return statistics


def _nearer(
    of: Read, differ: torch.Tensor, ends: tuple[torch.Tensor, torch.Tensor], unit: float, *, nearest: bool
) -> Read:
    def value(tosses: Tosses) -> torch.Tensor:
        rows = of(tosses)
        if rows.shape[1] != len(differ):
            return rows.new_zeros(len(rows))  # released rows have another size
        gaps = [(rows[:, differ] - end).abs() / unit for end in ends]
        sizes = [(gap.amin(dim=1) if nearest else gap.mean(dim=1)) + TINY for gap in gaps]
        return sizes[1].log() - sizes[0].log()

    return value


def likelihood_ratio(mechanism: Mechanism, play: RowPlay) -> Statistic:
    """Log density ratio of the inputs, the strongest test (Neyman and Pearson)."""
    located = torch.cat([mechanism.locate(row) for row in (play.pair.first, play.pair.second)])

    def of(tosses: Tosses) -> torch.Tensor:
        densities = mechanism.log_density(located, mechanism.observe(tosses.release))
        return densities[0].sub(densities[1])

    return Statistic("likelihood ratio", of)


def linear_discriminant(name: str, read: Read, training: Tosses) -> Statistic:
    """Fisher's linear discriminant, its covariance shrunk halfway to the identity."""
    rows = read(training)
    sides = [rows[training.first.to(rows.device)], rows[~training.first.to(rows.device)]]
    if min(len(side) for side in sides) < 2:
        return Statistic(name, lambda tosses: torch.zeros(len(tosses.first), dtype=torch.float64))
    gap = sides[0].mean(dim=0) - sides[1].mean(dim=0)
    within = torch.cat([side - side.mean(dim=0) for side in sides])
    spread = within.square().mean(dim=0).sqrt()
    # Equal numbers differ from their mean by rounding, which is neither gap nor spread.
    rounding = ROUNDING * rows.abs().amax(dim=0)
    gap, spread = (torch.where(size.abs() > rounding, size, 0.0) for size in (gap, spread))
    scale = torch.maximum(spread, TINY * gap.abs())
    scale = torch.where(scale > 0, scale, 1.0)  # constant numbers have weight 0 at any scale
    within, gap = within / scale, gap / scale
    products = within @ within.T
    products.diagonal().add_(len(within))
    weights = (gap - within.T @ torch.linalg.solve(products, within @ gap)) / scale
    return Statistic(name, lambda tosses: torch.mv(read(tosses), weights))


def grid_residue(training: Tosses) -> Statistic | None:
    """Position between the points of a coarse noise grid, if any.

    The grid is the common divisor of differences between releases of one input; fractions of raw numbers survive
    its noise.
    """
    rows = _numbers(training)
    sides = [rows[training.first.to(rows.device)], rows[~training.first.to(rows.device)]]
    if min(len(side) for side in sides) < 2:
        return None
    within = torch.cat([side - side.mean(dim=0) for side in sides])
    spread = float(within.square().mean().sqrt())
    places = torch.linspace(0, rows.shape[1] - 1, min(TRIED, rows.shape[1])).long()
    gaps = torch.cat([side[:, places].sort(dim=0).values.diff(dim=0).flatten() for side in sides])
    steps = gaps[gaps > FINE * spread].cpu().numpy()
    if not len(steps) or not spread > 0:
        return None
    step = _common(steps, FINE * spread)
    if step < 50 * FINE * spread:
        return None
    turns = [torch.exp(2j * torch.pi * side / step).mean(dim=0) for side in sides]
    if min(float(turn[places].abs().mean()) for turn in turns) < 0.99:
        return None
    weights = (turns[0] - turns[1]).conj()
    if float(weights.abs().amax()) < TINY:
        return None

    def of(tosses: Tosses) -> torch.Tensor:
        return (torch.exp(2j * torch.pi * _numbers(tosses) / step) * weights).real.sum(dim=1)

    return Statistic("fractions of a grid's step", of)


def _common(steps: np.ndarray[tuple[int], np.dtype[np.float64]], least: float) -> float:
    """Approximate greatest common divisor of `steps`; about `least` if none."""
    divisor = float(steps.min())
    for step in np.unique(steps.round(12))[:4096]:
        rest, whole = float(step), divisor
        while rest > least:
            whole, rest = rest, whole % rest
            rest = min(rest, whole - rest)
        divisor = whole
        if divisor < 50 * least:
            return divisor
    times = (steps / divisor).round()
    return float((steps * times).sum() / (times * times).sum())


def classifier(statistics: Sequence[Statistic], spare: Tosses) -> Statistic | None:
    """A random forest on statistics, projections and quantiles; None with few releases."""
    first = spare.first.cpu().numpy()
    if min(first.sum(), (~first).sum()) < SPARE // 2 or len(first) < SPARE:
        return None
    from sklearn.ensemble import ExtraTreesClassifier  # takes a second to import

    width = spare.release.samples[0].numel()
    random = torch.randn(width, PROJECTIONS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def features(tosses: Tosses) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        rows = _numbers(tosses)
        levels = torch.tensor(LEVELS, dtype=torch.float64, device=rows.device)
        parts = [
            torch.stack([statistic.of(tosses).to(rows.device) for statistic in statistics], dim=1),
            rows @ random.to(rows.device),
            torch.quantile(rows, levels, dim=1).T,
        ]
        numbers: np.ndarray[tuple[int, int], np.dtype[np.float32]] = (
            torch.cat(parts, dim=1).nan_to_num(nan=0.0, posinf=1e30, neginf=-1e30).clamp(-1e30, 1e30).cpu().numpy()
        ).astype(np.float32)
        return numbers

    forest = ExtraTreesClassifier(FOREST, min_samples_leaf=4, random_state=0, n_jobs=1)
    forest.fit(features(spare), first)

    def of(tosses: Tosses) -> torch.Tensor:
        return torch.from_numpy(forest.predict_proba(features(tosses))[:, 1].copy())

    return Statistic("learned classifier", of)


def _numbers(tosses: Tosses) -> torch.Tensor:
    return tosses.release.samples.flatten(1).double()


def _labels(tosses: Tosses) -> torch.Tensor:
    labels = tosses.release.labels
    assert labels is not None
    return torch.cat((labels.isnan(), labels.nan_to_num()), dim=1).double()


def _apart(tosses: Tosses) -> torch.Tensor:
    assert tosses.beside is not None
    return tosses.release.samples.flatten(1).double() - tosses.beside.flatten(1).double()


def _raw(row: Dataset) -> torch.Tensor:
    return row.samples.flatten(1).double()


def _size(rows: torch.Tensor) -> torch.Tensor:
    return rows.abs().mean(dim=1) + TINY**2


def _spread(rows: torch.Tensor) -> torch.Tensor:
    return rows.std(dim=1, correction=0) + TINY**2
