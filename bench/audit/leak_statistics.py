"""Statistics of released rows that see leaks: what a mechanism says of itself, and what it does not say.

Each is learned from releases of its own; which counts, in what direction and from where on is chosen on others. What
is higher for the first input, or lower, need not be known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch

from bench.audit.game_plays import RowPlay, Statistic, Tosses
from bench.contract.mechanism import Mechanism
from bench.types import Dataset

TINY = 1e-6
FINE = 1e-4  # of the spread: values nearer to each other count as one, and coarser grids than fifty of it as grids
TRIED = 64  # elements in which a grid is looked for
SPARE = 24  # releases that a classifier needs at least
FOREST = 32
PROJECTIONS = 16
LEVELS = (0.0, 0.1, 0.5, 0.9, 1.0)

Read: TypeAlias = "Callable[[Tosses], torch.Tensor]"


def learn(play: RowPlay, seen: Tosses, spare: Tosses, mechanism: Mechanism | None) -> list[Statistic]:
    """All statistics that make sense for a play."""
    found = nearness(play, mechanism)
    if mechanism is not None:
        found.append(likelihood_ratio(mechanism, play))
    found.append(linear_discriminant("linear discriminant", _numbers, seen))
    if seen.release.labels is not None:  # those that go in are alike, so that those that come out should be
        found.append(linear_discriminant("released labels", _labels, seen))
    if seen.beside is not None:
        found.append(linear_discriminant("linear discriminant of differences", _apart, seen))
        found.append(Statistic("distance from its neighbour", lambda tosses: _size(_apart(tosses)).log()))
    if seen.release.samples[0].numel() > 1:
        # Noise that is cut off ends where the row says.
        found.append(Statistic("least number", lambda tosses: _numbers(tosses).amin(dim=1)))
        found.append(Statistic("greatest number", lambda tosses: _numbers(tosses).amax(dim=1)))
        found.append(Statistic("spread within a row", lambda tosses: _spread(_numbers(tosses)).log()))
    if (grid := grid_residue(seen)) is not None:
        found.append(grid)
    if (learned := classifier(tuple(found), spare)) is not None:
        found.append(learned)
    return found


def nearness(play: RowPlay, mechanism: Mechanism | None) -> list[Statistic]:
    """How much nearer a row lies to the first input than to the second: in its nearest number, and in all of them.

    Numbers in which the inputs agree are left out. Equality is nearness without end. Scales are the inputs' own, so
    that values of one statistic compare between plays.
    """
    first, second = play.pair.first, play.pair.second
    read: list[tuple[str, Read, torch.Tensor, torch.Tensor]] = [("number", _numbers, _raw(first), _raw(second))]
    if mechanism is not None and mechanism.exact:
        read.append((
            "code", lambda tosses: mechanism.observe(tosses.release).double(),
            mechanism.locate(first).double(), mechanism.locate(second).double(),
        ))  # fmt: skip
    found = []
    for name, of, one, other in read:
        differ = (one != other)[0]
        if not bool(differ.any()):
            continue
        ends = one[:, differ], other[:, differ]
        unit = float((ends[0] - ends[1]).abs().amax())
        found += [
            Statistic(f"nearest {name}", _nearer(of, differ, ends, unit, nearest=True)),
            Statistic(f"distance of {name}s", _nearer(of, differ, ends, unit, nearest=False)),
        ]
    return found


def _nearer(
    of: Read, differ: torch.Tensor, ends: tuple[torch.Tensor, torch.Tensor], unit: float, *, nearest: bool
) -> Read:
    def value(tosses: Tosses) -> torch.Tensor:
        rows = of(tosses)
        if rows.shape[1] != len(differ):
            return rows.new_zeros(len(rows))  # released rows of another size than raw ones
        gaps = [(rows[:, differ] - end).abs() / unit for end in ends]
        sizes = [(gap.amin(dim=1) if nearest else gap.mean(dim=1)) + TINY for gap in gaps]
        return sizes[1].log() - sizes[0].log()

    return value


def likelihood_ratio(mechanism: Mechanism, play: RowPlay) -> Statistic:
    """Log density under the first input minus that under the second: no test is stronger (Neyman and Pearson)."""
    located = torch.cat([mechanism.locate(row) for row in (play.pair.first, play.pair.second)])

    def of(tosses: Tosses) -> torch.Tensor:
        densities = mechanism.log_density(located, mechanism.observe(tosses.release))
        return densities[0].sub(densities[1])

    return Statistic("likelihood ratio", of)


def linear_discriminant(name: str, read: Read, seen: Tosses) -> Statistic:
    """Fisher's discriminant in released numbers, or in differences, for any method.

    Numbers are divided by their spread within an input; the covariance is that spread plus the average one (shrunk
    halfway), inverted through the products of the rows.
    """
    rows = read(seen)
    sides = [rows[seen.first.to(rows.device)], rows[~seen.first.to(rows.device)]]
    if min(len(side) for side in sides) < 2:
        return Statistic(name, lambda tosses: torch.zeros(len(tosses.first), dtype=torch.float64))
    gap = sides[0].mean(dim=0) - sides[1].mean(dim=0)
    within = torch.cat([side - side.mean(dim=0) for side in sides])
    spread = within.square().mean(dim=0).sqrt()
    scale = torch.maximum(spread, TINY * gap.abs())
    scale = torch.where(scale > 0, scale, 1.0)  # a number that never varies weighs nothing whatever its scale
    within, gap = within / scale, gap / scale
    products = within @ within.T
    products.diagonal().add_(len(within))
    weights = (gap - within.T @ torch.linalg.solve(products, within @ gap)) / scale
    return Statistic(name, lambda tosses: torch.mv(read(tosses), weights))


def grid_residue(seen: Tosses) -> Statistic | None:
    """Where numbers fall between the points of a coarse grid: noise drawn on one leaves raw fractions as they are.

    The grid is what differences of releases of one input have in common; None where they have nothing in common.
    """
    rows = _numbers(seen)
    sides = [rows[seen.first.to(rows.device)], rows[~seen.first.to(rows.device)]]
    if min(len(side) for side in sides) < 2:
        return None
    within = torch.cat([side - side.mean(dim=0) for side in sides])
    spread = float(within.square().mean().sqrt())
    places = torch.linspace(0, rows.shape[1] - 1, min(TRIED, rows.shape[1])).long()
    apart = torch.cat([side[:, places].sort(dim=0).values.diff(dim=0).flatten() for side in sides])
    steps = apart[apart > FINE * spread].cpu().numpy()
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
    """The greatest number of which all `steps` are multiples, nearly; about `least` where there is none."""
    found = float(steps.min())
    for step in np.unique(steps.round(12))[:4096]:
        rest, whole = float(step), found
        while rest > least:
            whole, rest = rest, whole % rest
            rest = min(rest, whole - rest)
        found = whole
        if found < 50 * least:
            return found
    times = (steps / found).round()
    return float((steps * times).sum() / (times * times).sum())


def classifier(statistics: Sequence[Statistic], spare: Tosses) -> Statistic | None:
    """A random forest on all statistics, some projections and quantiles; None where it has too little to learn from."""
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
