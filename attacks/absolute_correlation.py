"""Absolute correlation: compares sizes of numbers, which flipped signs do not hide.

Source: a mask of random signs leaves |x~| = |sum of weight_i x_i| (Carlini et al., "Is Private Learning Possible with
Instance Encoding?", 2021, which undoes InstaHide by comparing absolute values). If the candidates are known, finding
the weights is a sparse, non-negative phase retrieval: alternately guess the signs from the weights found so far and
find the weights by least squares (Gerchberg and Saxton 1972; Netrapalli et al. 2013).

Differences from Carlini et al.:
- They know none of the images and recover them from many mixtures. Here Eve, the attacker, holds the raw rows and asks
  which of them stand in a released row; no network is trained.
- First guess of the signs: those of the mean row, since X-rays are alike. A ridge regression
  on all candidates explains the rest of the row, the strongest few are refitted without negative weights, and their
  mixture gives the next signs (`bench.eve.unmixing`). A released row that is not explained to a ten-thousandth starts
  again from the signs of the candidate whose absolute values correlate best with it, and one explained by half from
  those of the next-best candidates.
- A score is the candidate's share of the weights times the explained share of the row, plus a small part of the cosine
  between the row, with the signs found, and the candidate's column of the ridge regression: it orders the rest.
- Rows may have been standardised before they were mixed. Eve tries them plain, by the public mean, and each row by its
  own mean and deviation, on a key of her own, and takes the reading under which its links stand foremost.

Candidates and a release that do not fit in memory are read in blocks, but the regression needs all candidates at once:
its Gram matrix has a row for each of them, or for each number of a row. If they take more than a sixteenth of what a
job may hold as float64, only as many numbers of a row are compared as fit, drawn by Eve's seed: signs are flipped
number by number, so that those left are a mixture just the same. The record's notes say how many. It weakens the
attack: of the links of 160 synthetic X-rays of 64 x 64 under `instahide[k=3]` it found .994 by all 4,096 numbers, .992
by 1,024, .988 by 256 and .904 by 128; of 400 made images of 32 x 32, on a key of Eve's own, all by 1,024 and 800, .990
by 400 and .969 by 200.

Beyond as many candidates as numbers a row, the regression cannot tell all of them apart and finds fewer.

It reads absolute values, so that an offset (1 - x, 1000 x + 5000) or a number that dwarfs the others of its row leaves
it next to nothing: top-1 .00 to .05 of 64 digits. Attacks that learn from releases of Eve's own see through those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.eve.gram_matching import log_rank
from bench.eve.own_releases import true_links
from bench.eve.unmixing import Dictionary, Effort, Explained, above_mean, build, explain
from bench.pairs.score_matrices import CosineScores, apart
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, NotApplicable, PairScores, Parameter, Release, Rows, View, by_blocks
from bench.validation import at_least

Reading = Literal["plain", "public", "row"]

READINGS: tuple[Reading, ...] = ("plain", "public", "row")
PROBE_ROWS = 256
ROWS_AT_ONCE = 256
PARTS = 4
"""Of the memory for rows that are brought together, one is for the candidates: some ten times as much is computed."""
REST = 0.05  # the part of the cosine in a score


@dataclass(frozen=True)
class AbsoluteCorrelation(Attack):
    """Finds candidates whose weighted sum has a released row's absolute values.

    Args:
        shortlist: Candidates that each regression hands on to the refit; more are slower and more thorough.
        rounds: Regressions from each first guess of the signs.
        restarts: Further first guesses for rows that are not explained.
    """

    name: ClassVar[str] = "absolute-correlation"
    source: ClassVar[str] = "Carlini et al. 2021 (InstaHide), with known candidates: sparse phase retrieval"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"restarts": 1}}

    shortlist: int = 16
    rounds: int = 4
    restarts: int = 3

    def __post_init__(self) -> None:
        at_least(1, shortlist=self.shortlist, rounds=self.rounds)
        at_least(0, restarts=self.restarts)

    def fit(self, view: View, seed: int) -> AbsoluteCorrelationAttacker:
        """Choose a reading. Raises NotApplicable for other shapes or missing links."""
        release = view.scheme.sample_key(Secret.of_seed(seed, "key")).release(view.candidates)
        probe = _some_of(release, seed)
        links = _comparable_links(view.candidates.samples, probe)
        shape = tuple(view.candidates.samples.shape[1:])
        compared = _compared((view.candidates.samples, release.samples), seed)
        best: tuple[float, AbsoluteCorrelationAttacker] | None = None
        for reading in READINGS if len(view.public) else (reading for reading in READINGS if reading != "public"):
            attacker = AbsoluteCorrelationAttacker(
                replace(self, restarts=0), reading, shape, compared, _dictionary(view, reading, compared)
            )
            grid = attacker.score(probe).block(slice(None), slice(None))
            rank = log_rank(grid, links)
            if best is None or rank < best[0]:
                best = rank, replace(attacker, attack=self, matched=_found(grid, links))
        if best is None:
            raise RuntimeError("no reading was tried")
        return best[1]


@dataclass(frozen=True, eq=False)
class AbsoluteCorrelationAttacker(Attacker):
    """The candidates under one reading.

    Args:
        shape: The shape of a raw row.
        compared: (c,) int64, the numbers of a row that are compared; None stands for all of them.
        matched: The share of links found.
    """

    attack: AbsoluteCorrelation
    reading: Reading
    shape: tuple[int, ...]
    compared: torch.Tensor | None
    dictionary: Dictionary
    matched: float = 0.0

    def score(self, sealed: Release) -> MixtureScores:
        """Shares of the mixture. Raises NotApplicable if the rows' shapes differ."""
        if tuple(sealed.samples.shape[1:]) != self.shape:
            raise NotApplicable(_differ(self.shape, tuple(sealed.samples.shape[1:])))
        parts = (_numbers(part[:], self.compared) for part in torch.split(sealed.samples, ROWS_AT_ONCE))
        effort = Effort(self.attack.shortlist, self.attack.rounds, self.attack.restarts)
        explained = [explain(self.dictionary, part.double().abs(), effort) for part in parts]
        chosen, weights = (
            torch.cat([part.chosen for part in explained]),
            torch.cat([part.weights for part in explained]),
        )
        left, signed = torch.cat([part.left for part in explained]), torch.cat([part.signed for part in explained])
        return MixtureScores(self.dictionary, Explained(chosen, weights, left, signed))

    def notes(self) -> Mapping[str, int | float | str]:
        """The reading, its success on Eve's own key, and the compared part."""
        notes = {"rows read": self.reading, "links found under a simulated key": round(self.matched, 4)}
        if self.compared is None:
            return notes
        many = f"{len(self.compared)} of {math.prod(self.shape)} numbers of a row: more would not fit in memory"
        return {**notes, "compared": many}


class MixtureScores(PairScores):
    """A candidate's share times the row's explained part, plus a little cosine."""

    def __init__(self, dictionary: Dictionary, explained: Explained) -> None:
        self.rest = CosineScores(*apart(dictionary.columns, above_mean(dictionary, explained.signed)))
        self.shape = self.rest.shape
        shares = explained.weights / explained.weights.sum(dim=1, keepdim=True).clamp_min(1e-300)
        self.chosen, self.shares = explained.chosen, shares * (1 - explained.left).clamp_min(0)[:, None]

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores (rows, cols) in [-0.05, 1.05], float64."""
        first, stop, _ = rows.indices(self.shape[0])
        scores = REST * self.rest.block(rows, cols)
        chosen, shares = self.chosen[cols], self.shares[cols]
        inside = (chosen >= first) & (chosen < stop)
        column = torch.arange(len(chosen), device=chosen.device)[:, None].expand_as(chosen)
        scores[chosen[inside] - first, column[inside]] += shares[inside]  # distinct places: nothing is added twice
        return scores


def _dictionary(view: View, reading: Reading, compared: torch.Tensor | None) -> Dictionary:
    public = view.public.samples

    def read(part: torch.Tensor) -> torch.Tensor:
        return _numbers(_read(part.double(), public, reading), compared)

    samples = view.candidates.samples
    return build(by_blocks(samples, read)[:] if isinstance(samples, Rows) else read(samples))


def _numbers(rows: torch.Tensor, compared: torch.Tensor | None) -> torch.Tensor:
    """Rows (n, ...) as vectors of those numbers."""
    flat = rows.flatten(1)
    return flat if compared is None else flat[:, compared.to(flat.device)]


def _compared(sides: tuple[torch.Tensor, torch.Tensor], seed: int) -> torch.Tensor | None:
    """Numbers that are compared, for rows of one shape; None for all."""
    budgets = [side.budget for side in sides if isinstance(side, Rows)]
    if not budgets:
        return None
    most, d = max(map(len, sides)), math.prod(sides[0].shape[1:])
    fitting = budgets[0].whole // (PARTS * 8 * most)
    if d <= fitting:
        return None
    if not fitting:
        budgets[0].check((most, 1), PARTS * 8 * most)
    return torch.randperm(d, generator=generator(derive(seed, "numbers")))[:fitting].sort().values


def _read(samples: torch.Tensor, public: torch.Tensor, reading: Reading) -> torch.Tensor:
    if reading == "plain":
        return samples
    if reading == "public":  # by channel, or by column of a table
        return samples - public.double().mean(dim=(0, 2, 3) if public.ndim == 4 else 0, keepdim=True).reshape(
            1, -1, *(1 for _ in samples.shape[2:])
        )
    std, mean = torch.std_mean(samples.flatten(1), dim=1, correction=0)
    shape = (-1, *(1 for _ in samples.shape[1:]))
    return (samples - mean.reshape(shape)) / std.clamp_min(1e-12).reshape(shape)


def _some_of(release: Release, seed: int) -> Release:
    """Some rows of a release under a key of Eve's own."""
    every = true_links(release, "absolute-correlation looks for raw rows", main=False)
    chosen = torch.randperm(len(release), generator=generator(derive(seed, "probe")))[:PROBE_ROWS]
    chosen = chosen.to(every.device)
    place = torch.full((len(release),), -1, dtype=torch.int64, device=chosen.device)
    place[chosen] = torch.arange(len(chosen), device=chosen.device)
    links = torch.stack((every[:, 0], place[every[:, 1]]), dim=1)
    return Release(release.samples[chosen], None, links[links[:, 1] >= 0])


def _found(grid: torch.Tensor, links: torch.Tensor) -> float:
    """Share of links (p, 2) among their released row's best-scored candidates."""
    linked = torch.zeros_like(grid, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    place = grid.argsort(dim=0, descending=True).argsort(dim=0)
    return float((linked & (place < linked.sum(dim=0))).sum() / linked.sum())


def _comparable_links(raw: torch.Tensor, release: Release) -> torch.Tensor:
    if raw.shape[1:] != release.samples.shape[1:]:
        raise NotApplicable(_differ(tuple(raw.shape[1:]), tuple(release.samples.shape[1:])))
    return true_links(release, "absolute-correlation looks for raw rows", main=False)


def _differ(raw: tuple[int, ...], released: tuple[int, ...]) -> str:
    return f"absolute-correlation compares rows of one shape: raw rows are {raw}, released ones {released}"
