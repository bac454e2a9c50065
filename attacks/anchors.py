"""Anchors: released rows are compared with released rows that Eve knows.

Source: landmarks of multidimensional scaling (de Silva and Tenenbaum 2004, "Sparse multidimensional scaling using
landmark points"), and kernel regression from known to all rows (Rasmussen and Williams 2006, "Gaussian processes for
machine learning", equation 2.25). Eve, the attacker, knows the released rows of k raw rows, the anchors, under the key
that she attacks: of people whom she knows (profile `known-pairs`), or of images that she had encoded (`oracle`). A
released row has k inner products with the released anchors. Rows of a wide random network have nearly the same ones
under every key, so that Eve knows them in advance: she releases the candidates and the anchors under keys of her own,
and takes the mean. Linear maps that keep angles are such a network, too.

Differences from landmarks of multidimensional scaling:
- Inner products are compared, part by part of a row (`bench.eve.tokens`), and no place in space is computed.
- The metric is chosen on further keys of Eve's own, by the ranks of their links: each product by itself, or the
  regression, whose prediction of a released row has with that row the products P G^-1 p (P, G: expected products of
  candidates with anchors and of anchors; p: the released row's), with a ridge of G.
- The reading of a row (patches in place, absolute values, bags of patches) is chosen in the same way.

One pair is enough to apply; it gives one number for each part of a row. Under `oracle` Eve asks for candidates, which a
deterministic encoder gives away, or for control rows, by which it is known like any pair (`ask`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.gram_matching import log_ranks
from bench.eve.outliers import tamed
from bench.eve.own_releases import true_links
from bench.eve.tokens import Reading, token_count, tokens
from bench.nets.patches import fitting_patch
from bench.pairs.score_blocks import all_products
from bench.pairs.score_matrices import CosineScores, apart
from bench.progress import report
from bench.randomness import Secret
from bench.rows.row_sets import joined
from bench.seeds import derive, drawn, generator
from bench.types import (
    Attack,
    Attacker,
    Dataset,
    NotApplicable,
    PairScores,
    Parameter,
    Release,
    Rows,
    View,
)
from bench.validation import at_least, one_of

READINGS: tuple[Reading, ...] = ("places", "sizes", "bags")
RIDGES = (0.01, 0.1, 1.0, None)
"""Of the regression, in mean squares of an anchor; None compares each product by itself."""
JUDGED = 2
TRIED = 2
LOCATIONS = 16
MOST_TOKENS = 65
TINY = 1e-12


@dataclass(frozen=True)
class Anchors(Attack):
    """Compares inner products with the pairs that Eve knows.

    Args:
        keys: Keys that Eve simulates for what she expects.
        ask: Under `oracle`, the images that she has encoded: candidates, or control rows.
    """

    name: ClassVar[str] = "anchors"
    source: ClassVar[str] = "landmark MDS (de Silva and Tenenbaum 2004) and kernel regression, on simulated keys"
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release, the scheme, and known pairs or an oracle; no key, no labels"
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"keys": 3},
        "standard": {"keys": 16},
        "paper": {"keys": 16},
    }

    keys: int = 8
    ask: Literal["candidates", "control"] = "candidates"

    def __post_init__(self) -> None:
        at_least(2, keys=self.keys)
        one_of(("candidates", "control"), ask=self.ask)

    def fit(self, view: View, seed: int) -> AnchorsAttacker:
        """Choose a reading and a metric.

        Raises NotApplicable without pairs, links or a second candidate.
        """
        n = len(view.candidates)
        if view.known is None and not view.queries:
            raise NotApplicable(f"anchors reads pairs that Eve knows, and the profile {view.profile} grants none")
        if n < 2:
            raise NotApplicable(f"anchors compares rows: needs at least 2 candidates, got {n}")
        chosen = _chosen(self, view, seed)
        raw = view.known if view.known is not None else chosen
        assert raw is not None
        simulated = _Simulated(view, raw, seed)
        tried = []
        for number, reading in enumerate(READINGS):
            expected = simulated.expected(reading, "tried", TRIED)
            tried.append((simulated.judged(expected, "judged", 1)[0], number))
        reading = READINGS[min(tried)[1]]
        expected = simulated.expected(reading, "key", self.keys)
        rank, ridge = simulated.judged(expected, "judged", JUDGED)
        return AnchorsAttacker(expected, ridge, rank, None if chosen is None else chosen.samples, self.keys)


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected products of candidates with anchors, part by part.

    Args:
        reading: The reading of rows.
        locations: Of the reading, as in `bench.eve.tokens.tokens`.
        products: (p, n, k) float64, means over Eve's keys.
        anchors: (p, k, k) float64, the same of the anchors.
        spread: (p, k) float64, deviations of a product from key to key.
    """

    reading: Reading
    locations: int
    products: torch.Tensor
    anchors: torch.Tensor
    spread: torch.Tensor

    def scores(self, released: torch.Tensor, known: torch.Tensor, ridge: float | None) -> CosineScores:
        """Cosines (n, m) of expected and released products, under a metric."""
        seen, _ = _products(released, known, self.reading, self.locations)
        sides = self.products, seen
        if ridge is None:
            sides = self.products / self.spread[:, None], seen / self.spread[:, None]
        else:
            k = self.anchors.shape[1]
            unit = self.anchors.diagonal(dim1=1, dim2=2).mean(dim=1).clamp_min(TINY)
            eye = torch.eye(k, dtype=self.anchors.dtype, device=self.anchors.device)
            factors = torch.linalg.cholesky(self.anchors / unit[:, None, None] + ridge * eye)
            sides = tuple(
                torch.linalg.solve_triangular(factors, side.mT, upper=False).mT / unit[:, None, None] for side in sides
            )
        a, b = (side.transpose(0, 1).flatten(1) for side in sides)
        return CosineScores(*apart(a - a.mean(dim=0), b - b.mean(dim=0)))


@dataclass(frozen=True, eq=False)
class AnchorsAttacker(Attacker):
    """Expected products, metric, its rank on own keys, and queries."""

    expected: Expected
    ridge: float | None
    rank: float
    chosen: torch.Tensor | None
    keys: int

    def score(self, sealed: Release) -> PairScores:
        """Raises NotApplicable: pairs come with the release."""
        raise NotApplicable("anchors reads pairs that Eve knows, and none came with the release")

    def score_knowing(self, sealed: Release, raw: Dataset, released: Release) -> CosineScores:
        """Cosines of products.

        Raises NotApplicable for pairs of another number or form than expected.
        """
        k = self.expected.anchors.shape[1]
        if len(released) != k or released.samples.shape[1:] != sealed.samples.shape[1:]:
            raise NotApplicable(
                f"anchors expects {k} known rows of shape {tuple(sealed.samples.shape[1:])}, got {len(released)} of "
                f"shape {tuple(released.samples.shape[1:])}"
            )
        return self.expected.scores(sealed.samples, released.samples, self.ridge)

    def queries(self, budget: int) -> torch.Tensor | None:
        """Candidates, or none of her own."""
        return self.chosen

    def notes(self) -> Mapping[str, int | float | str]:
        """The reading, the metric, and their ranks on own keys."""
        return {
            "reading": self.expected.reading,
            "metric": "each product by itself" if self.ridge is None else f"regression, ridge {self.ridge}",
            "anchors": self.expected.anchors.shape[1],
            "simulated keys": self.keys,
            "mean log2 rank on a simulated key": self.rank,
        }


@dataclass(frozen=True, eq=False)
class _Simulated:
    """Releases under Eve's own keys, with pairs as her profile grants them."""

    view: View
    raw: Dataset
    seed: int

    def releases(self, name: str, keys: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Released rows, links to candidates, and the anchors' released rows, by key."""
        n = len(self.view.candidates)
        for number in range(keys):
            key = self.view.scheme.sample_key(Secret.of_seed(self.seed, name, number))
            if self.view.known is None:
                release = key.release(self.view.candidates)
                yield release.samples, true_links(release, "anchors learns from links"), key.query(self.raw.samples)
                continue
            release = key.release(joined(self.view.candidates, self.raw))
            links = true_links(release, "anchors learns from links")
            place = torch.full((n + len(self.raw),), -1, device=links.device)
            place[links[:, 0]] = links[:, 1]
            if bool((place[n:] < 0).any()):
                raise NotApplicable("anchors compares known rows, and this method releases no row of some of them")
            yield release.samples, links[links[:, 0] < n], release.samples[place[n:]]

    def expected(self, reading: Reading, name: str, keys: int) -> Expected:
        """Means and spreads of products over keys."""
        n, total, squares, among = len(self.view.candidates), None, None, None
        locations = _locations(self.view.candidates.samples)
        for number, (samples, links, known) in enumerate(self.releases(name, keys)):
            seen, own = _products(samples, known, reading, locations)
            mine = seen.new_zeros(seen.shape[0], n, seen.shape[2])
            mine.index_add_(1, links[:, 0], seen[:, links[:, 1]])
            mine /= torch.bincount(links[:, 0], minlength=n).clamp_min(1)[None, :, None]
            total = mine if total is None else total + mine
            squares = mine.square() if squares is None else squares + mine.square()
            among = own if among is None else among + own
            report("anchors, simulated key", number + 1, keys)
        assert total is not None
        assert squares is not None
        assert among is not None
        mean = total / keys
        within = (squares / keys - mean.square()).clamp_min(0).mean(dim=1)
        between = mean.var(dim=1, correction=0)
        return Expected(reading, locations, mean, among / keys, (within + 1e-3 * between + TINY).sqrt())

    def judged(self, expected: Expected, name: str, keys: int) -> tuple[float, float | None]:
        """Least mean binary logarithm of links' ranks, and its metric."""
        ranks = torch.zeros(len(RIDGES), dtype=torch.float64)
        for samples, links, known in self.releases(name, keys):
            for number, ridge in enumerate(RIDGES):
                scores = expected.scores(samples, known, ridge).block(slice(None), slice(None))
                ranks[number] += log_ranks(scores, links).mean().cpu() / keys
        best = int(ranks.argmin())
        return round(float(ranks[best]), 3), RIDGES[best]


def _chosen(attack: Anchors, view: View, seed: int) -> Dataset | None:
    """The images that Eve has encoded; None if she may choose none."""
    if not view.queries:
        return None
    pool = view.candidates if attack.ask == "candidates" else view.control
    rows = drawn(len(pool), generator(derive(seed, "queries"), pool.samples.device), min(view.queries, len(pool)))
    return pool.nameless().take(rows)


def _products(
    released: torch.Tensor, known: torch.Tensor, reading: Reading, locations: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Products (p, m, k) with anchors, and (p, k, k) among anchors."""
    m, k = len(released), len(known)
    if isinstance(released, Rows):
        raise NotApplicable("anchors holds a release in memory, and this one does not fit: choose fewer rows")
    rows = tamed(torch.cat((released, known)))
    count = token_count(rows, reading, locations)
    step = -(-count // MOST_TOKENS)
    chosen = range(count - 1, -1, -step)[::-1]
    seen, own = [], []
    for token in tokens(rows, reading, locations, chosen):
        unit = token / token.square().sum(dim=1).mean().clamp_min(TINY).sqrt()
        products = all_products(unit, unit[m:])
        seen.append(products[:m])
        own.append(products[m:])
    assert k
    return torch.stack(seen), torch.stack(own)


def _locations(samples: torch.Tensor) -> int:
    """Parts of a released vector: patches of a raw image."""
    size = fitting_patch(samples.shape[2], samples.shape[3]) if samples.ndim == 4 else None
    return LOCATIONS if size is None else samples.shape[2] * samples.shape[3] // size**2
