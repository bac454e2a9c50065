"""Leverage: invertible linear maps of a location leave each row's leverage unchanged.

Source: leverage scores, h = diag(X (X^T X)^+ X^T) of the centred rows X at a location (Hoaglin and Welsch 1978). With
X A for X and any invertible A, h stays the same, so that one secret linear map a patch (Dauntless) does not hide it.
Ridge leverage scores, diag(X (X^T X + c I)^-1 X^T) (Alaoui and Mahoney 2015), are not invariant, but after a wide
random map they hardly depend on its key.

Differences from comparing the leverage scores of raw and released rows:
- Eve, the attacker, compares a release with her expectation: she encodes her candidates under keys of her own and
  averages the scores of each. For linear maps that is the leverage of the raw row. Random layers change it in the same
  way under every key.
- Three scores a location: the plain one and two ridges, 0.001 and 0.1 of the mean squared singular value. The plain one
  takes more rows than numbers a piece (with fewer, all are equal); the ridges go on where it ends.
- Scores become ranks within their set, since several rows share outliers. Ranks are compared by the cosine of their
  difference (as an angle, so that the whole range is half a turn), and locations are weighed by the precision of the
  ranks over Eve's keys.
- The pieces of a release are unknown to the attack: she tries every layout on two keys and takes the one by which a
  third key's release is matched best.
- Singular values below `tolerance` of a location's largest count as zero: X-rays have constant borders, and releases
  are float32. Everything is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench.eve.gram_matching import log_rank
from bench.eve.outliers import tamed
from bench.eve.own_releases import own_rows, some_released, true_links
from bench.eve.tokens import Layout, layouts
from bench.pairs.score_matrices import CosineScores, apart
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import renumbered
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, Rows, Scheme, View
from bench.validation import at_least, between

RIDGES = (1e-3, 1e-1)
PROBE_ROWS = 512
LARGEST_SIDE = 4096  # of the smaller Gram matrix of a location; its decomposition is cubic


@dataclass(frozen=True)
class Leverage(Attack):
    """Compares leverages, location by location, with those that simulated keys predict.

    Args:
        keys: Keys that Eve simulates for what she expects.
        tolerance: Singular values below this share of the largest count as zero.
    """

    name: ClassVar[str] = "leverage"
    source: ClassVar[str] = "leverage scores (Hoaglin and Welsch 1978), invariant under invertible linear maps"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    relinks: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"keys": 3},
        "standard": {"keys": 16},
        "paper": {"keys": 16},
    }

    keys: int = 8
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        at_least(2, keys=self.keys)
        between(0, 1, tolerance=self.tolerance)

    def fit(self, view: View, seed: int) -> LeverageAttacker:
        """Choose a layout and simulate keys. Raises NotApplicable for releases without links."""
        if len(view.candidates) < 2:
            raise NotApplicable(f"leverage compares rows: needs at least 2 candidates, got {len(view.candidates)}")
        raw = own_rows(view) if view.relinks else view.candidates
        layout, rank = _choose(self, view.scheme, raw, seed)
        expected = _expect(self, view.scheme, raw, layout, keys=self.keys, seed=derive(seed, "expected"))
        if view.relinks:  # the earlier release says what to expect; Eve's own rows, how far each score may be trusted
            angles = _angles(view.candidates.samples, layout, self.tolerance)
            if angles.shape[1] != len(expected.weight):
                raise NotApplicable(f"leverage needs more than {len(raw)} rows of Eve's own to weigh scores by")
            expected = replace(expected, cosine=angles.cos(), sine=angles.sin())
        return LeverageAttacker(self, layout, expected, rank)


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected angles of each candidate, in [0, pi].

    Args:
        cosine, sine: (n, f) float64, means over keys of the angles' cosines and sines.
        weight: (f,) float64, of each score, sum 1.
        signal: Share of the angles' variance that candidates explain and keys do not, in [0, 1], weighted.
    """

    cosine: torch.Tensor
    sine: torch.Tensor
    weight: torch.Tensor
    signal: float

    def scores(self, angles: torch.Tensor) -> CosineScores:
        """Weighted mean cosine of expected angles less the angles (m, f) released.

        If Eve holds fewer rows than were released, or more, one of the two sets may have too few for the plain score:
        the ridges, which stand last, are then compared alone.
        """
        shared = min(len(self.weight), angles.shape[1])
        cosine, sine, weight, angles = (each[..., -shared:] for each in (self.cosine, self.sine, self.weight, angles))
        scale = (weight / weight.sum()).sqrt() if shared < len(self.weight) else weight.sqrt()
        length = torch.hypot(cosine, sine).clamp_min(torch.finfo(torch.float64).tiny)
        raw = torch.cat((cosine / length * scale, sine / length * scale), dim=1)
        return CosineScores(*apart(raw, torch.cat((angles.cos() * scale, angles.sin() * scale), dim=1)))


@dataclass(frozen=True, eq=False)
class LeverageAttacker(Attacker):
    """Layout, expectations, and `rank`, the mean log rank of the chosen layout."""

    attack: Leverage
    layout: Layout
    expected: Expected
    rank: float

    def score(self, sealed: Release) -> CosineScores:
        """Cosines of angles; 1: as expected. Raises NotApplicable for a single row."""
        if len(sealed) < 2:
            raise NotApplicable("leverage says how a released row differs from others: needs at least 2")
        return self.expected.scores(_angles(sealed.samples, self.layout, self.attack.tolerance))

    def notes(self) -> Mapping[str, int | float | str]:
        """The layout, and how it did on Eve's own keys."""
        return {
            "layout": str(self.layout),
            "simulated keys": self.attack.keys,
            "mean log2 rank on a simulated key": self.rank,
            "variance explained by candidates": round(self.expected.signal, 4),
        }


def leverage_scores(rows: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Plain and ridge leverage scores of the centred rows at each location.

    Args:
        rows: (locations, n, numbers) float64.
        tolerance: Singular values below this share of a location's largest count as zero.

    Returns:
        (scores, locations, n) float64 in [0, 1]: the plain score if n exceeds the numbers by 2, then the ridges.
    """
    n, numbers = rows.shape[1:]
    centred = rows - rows.mean(dim=1, keepdim=True)
    if numbers >= n:  # the small Gram matrix squares the condition, which the ridges do not notice
        values, directions = torch.linalg.eigh(centred @ centred.mT)
        squares = values.clamp_min(0)
    else:
        directions, values, _ = torch.linalg.svd(centred, full_matrices=False)
        squares = values.square()
    nonzero = squares > tolerance**2 * squares.amax(dim=1, keepdim=True)
    parts = directions.square()
    mean = squares.sum(dim=1, keepdim=True) / nonzero.sum(dim=1, keepdim=True).clamp_min(1)
    shares = [nonzero.to(rows.dtype)] if n > numbers + 1 else []
    shares += [torch.where(nonzero, squares / (squares + ridge * mean), 0) for ridge in RIDGES]
    return torch.stack([(parts @ share.nan_to_num()[:, :, None])[:, :, 0] for share in shares])


def ranks(scores: torch.Tensor) -> torch.Tensor:
    """Mid-ranks in (0, 1) over the last dimension; ties share the mean.

    >>> ranks(torch.tensor([3.0, 1.0, 1.0, 2.0]))
    tensor([0.8750, 0.2500, 0.2500, 0.6250], dtype=torch.float64)
    """
    ordered = scores.contiguous().sort(dim=-1).values
    low = torch.searchsorted(ordered, scores.contiguous())
    high = torch.searchsorted(ordered, scores.contiguous(), right=True)
    return (low + high).to(torch.float64) / (2 * scores.shape[-1])


def _angles(samples: torch.Tensor, layout: Layout, tolerance: float) -> torch.Tensor:
    """Angles (m, f) float64 in (0, pi), computed location by location."""
    parts = []
    for pieces in _by_location(layout.cut(tamed(samples))):
        size = max(1, PROBE_ROWS * 1024 // pieces[0].numel())
        parts += [ranks(leverage_scores(part.double(), tolerance)) for part in torch.split(pieces, size)]
    return math.pi * torch.cat(parts, dim=1).flatten(0, 1).T


def _by_location(pieces: torch.Tensor) -> Iterator[torch.Tensor]:
    """Pieces (m, locations, numbers) as (locations, m, numbers); `Rows` come in parts."""
    if not isinstance(pieces, Rows):
        yield pieces.transpose(0, 1)
        return
    size = max(1, pieces.budget.whole * pieces.shape[1] // max(1, pieces.bytes_of(len(pieces))))
    for some in torch.split(torch.arange(pieces.shape[1]), size):
        yield pieces[:, some[0] : some[-1] + 1][:].transpose(0, 1)


def _simulate(scheme: Scheme, rows: Dataset, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A release under Eve's own key, shuffled against ties; its links."""
    release = scheme.sample_key(Secret.of_seed(seed, "key")).release(rows)
    links = true_links(release, "leverage learns from links")
    order = torch.randperm(len(release), generator=generator(derive(seed, "order"))).to(links.device)
    return release.samples[order], renumbered(links, released=order.argsort())


def _expect(attack: Leverage, scheme: Scheme, rows: Dataset, layout: Layout, *, keys: int, seed: int) -> Expected:
    """Expectations from `keys` simulated releases."""
    totals, counts = None, torch.zeros(len(rows), 1, dtype=torch.float64, device=rows.samples.device)
    for number in range(keys):
        samples, links = _simulate(scheme, rows, derive(seed, number))
        angles = _angles(samples, layout, attack.tolerance)[links[:, 1]]
        if totals is None:
            totals = torch.zeros(3, len(rows), angles.shape[1], dtype=torch.float64, device=angles.device)
        for total, value in zip(totals, (angles.cos(), angles.sin(), angles.square()), strict=True):
            total.index_add_(0, links[:, 0], value)
        counts.index_add_(0, links[:, 0], torch.ones_like(links[:, :1], dtype=torch.float64))
        if keys > 2:
            report("leverage, simulated key", number + 1, keys)
    if totals is None:
        raise ValueError(f"keys must be at least 1, got {keys}")
    return _weighed(*(totals / counts.clamp_min(1)), resolution=math.pi / (2 * len(rows)))


def _weighed(cosine: torch.Tensor, sine: torch.Tensor, square: torch.Tensor, *, resolution: float) -> Expected:
    """Weights: 1 / (spread over keys, at least half a rank step)."""
    middle = torch.atan2(sine, cosine)
    within = (square - middle.square()).clamp_min(0).mean(dim=0)
    between = middle.var(dim=0, correction=0)
    precision = 1 / (within + resolution**2)
    weight = torch.where(between > 0, precision, torch.finfo(torch.float64).tiny)
    weight = weight / weight.sum()
    signal = float((weight * between / (between + within).clamp_min(resolution**2)).sum())
    return Expected(cosine, sine, weight, signal)


def _choose(attack: Leverage, scheme: Scheme, candidates: Dataset, seed: int) -> tuple[Layout, float]:
    """Layout that ranks a third key's links best, and its mean log-rank."""
    probe = torch.randperm(len(candidates), generator=generator(derive(seed, "probe")))[:PROBE_ROWS]
    rows, _ = some_released(scheme, candidates, probe.to(candidates.samples.device), seed, "probe")
    samples, links = _simulate(scheme, rows, derive(seed, "third"))
    best: tuple[float, float, Layout] | None = None
    for layout in layouts(tuple(samples.shape[1:])):
        numbers = layout.cut(samples[:1]).shape[2]
        if min(len(candidates), numbers) > LARGEST_SIDE:
            continue
        expected = _expect(attack, scheme, rows, layout, keys=2, seed=derive(seed, "probe"))
        scores = expected.scores(_angles(samples, layout, attack.tolerance)).block(slice(None), slice(None))
        rank = round(log_rank(scores, links), 2)
        if best is None or (rank, -expected.signal) < best[:2]:
            best = rank, -expected.signal, layout
    if best is None:
        raise NotApplicable(
            f"leverage decomposes matrices of at most {LARGEST_SIDE}: rows of shape {tuple(samples.shape[1:])} have no "
            f"such pieces"
        )
    return best[2], best[0]
