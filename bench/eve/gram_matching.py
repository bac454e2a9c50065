"""Matching of rows by Gram matrices and signatures that simulated keys predict.

A wide network with random weights has a nearly deterministic kernel: the inner products of its outputs are known to an
attacker who knows the inputs, and so are functions of the Gram matrix that follow the rows when they are permuted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import scipy
import torch

from bench.eve.outliers import tamed
from bench.eve.own_releases import true_links
from bench.eve.tokens import Reading, token_count, tokens
from bench.memory.rows import in_blocks, rows_at
from bench.nets import contrastive_towers
from bench.pairs.score_blocks import all_products
from bench.seeds import derive, generator
from bench.types import Release
from bench.validation import at_least

QUANTILES = 17
RIDGES = tuple(10.0**power for power in range(-6, 2))
LARGEST_SOLVED = 1024
BLOCK = 1024
SMALLEST = 1e-12

ROUNDS = 20
SINKHORN_ROUNDS = 10

REFERENCE_ROWS = 2048
FLOOR = 1e-3
TINY = 1e-30
LARGEST_AGREEMENT = 0.98


def log_rank(grid: torch.Tensor, links: torch.Tensor) -> float:
    """Mean binary logarithm of each link's rank among candidates; 0: all first.

    Under noise next to no link ranks first, and how many do is chance: shares and reciprocal ranks rest on those few,
    logarithms on all.

    Args:
        grid: (n, m) scores of candidates by released rows.
        links: (p, 2) int64, the candidates (raw rows) in released rows.
    """
    linked = torch.zeros_like(grid, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    others = grid.masked_fill(linked, -torch.inf)
    ahead = torch.stack([(others[:, row] >= grid[raw, row]).sum() for raw, row in links.tolist()])
    return float((1 + ahead).double().log2().mean())


def log_ranks(grid: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
    """Binary logarithms (p,) float64 of links' ranks, ties averaged."""
    own, others = grid[links[:, 0], links[:, 1]], grid[:, links[:, 1]]
    return (1 + (others > own).sum(dim=0) + ((others == own).sum(dim=0) - 1) / 2).double().log2()


def gram(token: torch.Tensor) -> torch.Tensor:
    """Inner products (m, m) float32 of centred rows (m, q), without diagonal.

    The diagonal is left out, and each row is centred over its other entries: a row's product with itself is large
    whatever it is matched to, and would hold every matching in place.
    """
    m = len(token)
    products = all_products(token, token).fill_diagonal_(0)
    products -= products.sum(dim=1, keepdim=True) / max(m - 1, 1)
    products.fill_diagonal_(0)
    size = products.square().mean().sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return (products / size).float()


def gram_columns(rows: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Columns (m, a) float32 of `gram`, of the rows `at` (a,).

    Each of the centred rows (m, q) is centred over those other than itself.
    """
    products = all_products(rows.float(), rows_at(rows, at)[:].float())
    itself = (at, torch.arange(len(at), device=at.device))
    products[itself] = 0
    others = len(at) - torch.bincount(at, minlength=len(rows))
    products -= products.sum(dim=1, keepdim=True) / others.clamp_min(1)[:, None]
    products[itself] = 0
    return products / products.square().mean().sqrt().clamp_min(torch.finfo(torch.float32).tiny)


def signature(token: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Signatures (m, f) float64 of rows, computed without any row's name.

    The logarithm of its length; quantiles of its inner products with the reference rows, in units of their root mean
    square; and, for up to `LARGEST_SOLVED` columns, the logarithm of its leverage x (C + r I)^-1 x for ridges r from a
    millionth to ten times the mean eigenvalue of the covariance C (at r = 0 no invertible linear map changes it).

    Args:
        token: (m, q) float64, centred.
        reference: (s,) int64, the rows whose inner products count; all of them, or a random part of a large set.
    """
    m, q = token.shape
    size = token.square().sum(dim=1).mean().clamp_min(torch.finfo(torch.float64).tiny)
    unit = token / size.sqrt()
    columns = [unit.square().sum(dim=1, keepdim=True).clamp_min(SMALLEST).log(), _quantiles(unit, reference)]
    if q <= LARGEST_SOLVED:
        products = reduce(torch.add, (part.T @ part for _, part in in_blocks(unit)))
        values, axes = torch.linalg.eigh(products / m)
        along = (unit @ axes).square()
        ridges = torch.tensor(RIDGES, dtype=token.dtype, device=token.device) * values.mean().clamp_min(SMALLEST)
        columns.append((along @ (1 / (values.clamp_min(0)[:, None] + ridges))).clamp_min(SMALLEST).log())
    return torch.cat(columns, dim=1)


def _quantiles(unit: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    places = torch.linspace(0, len(reference) - 1, QUANTILES, device=unit.device).round().long()
    others = unit[reference]

    def read(part: torch.Tensor) -> torch.Tensor:
        # Sorting takes most of the time, and single precision half of that; the products are exact to double.
        return contrastive_towers.ordered(all_products(part, others).float())[:, places].double()

    quantiles = torch.cat([read(part) for _, part in in_blocks(unit, BLOCK)])
    return quantiles / quantiles.square().mean().sqrt().clamp_min(SMALLEST)


def assign(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The one-to-one matching of largest sum: rows and columns int64, min(n, m)."""
    rows, cols = scipy.optimize.linear_sum_assignment(scores.double().cpu().numpy(), maximize=True)
    return torch.from_numpy(rows).to(scores.device), torch.from_numpy(cols).to(scores.device)


def standardise(scores: torch.Tensor) -> torch.Tensor:
    """Scores (n, m) with mean zero and deviation one in every column."""
    centred = scores - scores.mean(dim=0)
    return centred / centred.std(dim=0, correction=0).clamp_min(torch.finfo(scores.dtype).tiny)


@dataclass(frozen=True, eq=False)
class Refined:
    """The last round's scores (n, m) float64; if the matching stayed."""

    scores: torch.Tensor
    stayed: bool


def refine(
    known: torch.Tensor,
    seen: torch.Tensor,
    weights: torch.Tensor,
    start: torch.Tensor,
    blend: float,
    watch: Callable[[torch.Tensor], None] | None = None,
) -> Refined:
    """Scores by matching and scoring in turn, at most `ROUNDS` times.

    A candidate's score for a released row is the inner product of their Gram rows, the columns being matched as they
    are now, summed over tokens; to it `blend` times the starting scores are added.

    Args:
        known: (p, n, n) float32, the candidates' Gram matrices, one a token.
        seen: (p, m, m) float32, those of the release.
        weights: (p,) how much each token counts.
        start: (n, m) float64 scores that begin the matching.
        blend: Weight of the starting scores.
        watch: Called with the standardised start and the scores of every round.
    """
    base = standardise(start)
    if watch is not None:
        watch(base)
    rows, cols = assign(base)
    seen_before: list[tuple[torch.Tensor, torch.Tensor]] = []
    for _ in range(ROUNDS):
        total = torch.zeros_like(start, dtype=torch.float32)
        for weight, ours, theirs in zip(weights.tolist(), known, seen, strict=True):
            total += weight * (ours[:, rows] @ theirs[cols])
        scores = standardise(total.double()) + blend * base
        if watch is not None:
            watch(scores)
        seen_before.append((rows, cols))
        rows, cols = assign(scores)
        if matching_ended((rows, cols), seen_before):
            return Refined(scores, True)
    return Refined(scores, False)


def matching_ended(
    found: tuple[torch.Tensor, torch.Tensor], before: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> bool:
    """True for a matching seen before: a fixed point or cycle."""
    return any(torch.equal(found[0], old[0]) and torch.equal(found[1], old[1]) for old in before)


def log_posterior(scores: torch.Tensor, sharpness: float) -> torch.Tensor:
    """Log match probabilities (n, m): softmax of `sharpness` times scores by column.

    If n = m, every candidate stands in one released row too: rows and columns are normalised in turn (Sinkhorn),
    columns last.
    """
    logits = sharpness * scores
    for _ in range(SINKHORN_ROUNDS if scores.shape[0] == scores.shape[1] else 0):
        logits = logits.log_softmax(dim=0).log_softmax(dim=1)
    return logits.log_softmax(dim=0)


def likelihood(scores: torch.Tensor, links: torch.Tensor, sharpness: float) -> float:
    """Mean log probability of links (p, 2) in nats, by column softmax."""
    logits = sharpness * scores
    return float((logits[links[:, 0], links[:, 1]] - logits.logsumexp(dim=0)[links[:, 1]]).mean())


@dataclass(frozen=True)
class Look:
    """A way for Eve, the attacker, to read a release.

    Args:
        reading: As in `bench.eve.tokens`.
        locations: Of the reading, as in `bench.eve.tokens.tokens`.
        related: Compute Gram matrices; without, signatures only.
        seed: Draws the reference rows of large sets.
        most: Gram matrices at most: of more tokens, an even part has one, the whole row always. None for no bound.
        signed: Tokens with signatures at most, chosen in the same way.
        landmarks: Candidates whose columns of the Gram matrices are compared, drawn by `seed`; None for all.
    """

    reading: Reading
    locations: int
    related: bool
    seed: int
    most: int | None = None
    signed: int | None = None
    landmarks: int | None = None

    def chosen(self, n: int) -> torch.Tensor:
        """(a,) int64: the landmarks among n candidates, ascending."""
        return torch.randperm(n, generator=generator(derive(self.seed, "landmarks")))[: self.landmarks].sort().values

    def __call__(self, rows: torch.Tensor) -> Seen:
        """Signatures and Gram matrices of released rows (m, ...)."""
        rows, m = tamed(rows), len(rows)
        reference = torch.arange(m, device=rows.device)
        if m > REFERENCE_ROWS:
            reference = torch.randperm(m, generator=generator(self.seed))[:REFERENCE_ROWS].to(rows.device)
        columns: list[torch.Tensor] = []
        count = token_count(rows, self.reading, self.locations)
        signed = _even_part(count, self.signed)
        related = _even_part(count, self.most) if self.related else []
        whole = self.landmarks is None
        grams = torch.empty(len(related), m, m, device=rows.device) if whole else None
        parts: list[torch.Tensor] = []
        chosen = sorted({*signed, *related})
        for number, part in zip(chosen, tokens(rows, self.reading, self.locations, chosen), strict=True):
            if number in signed:
                columns.append(signature(part, reference))
            if number not in related:
                continue
            if grams is None:
                parts.append(part.float())
            else:
                grams[related.index(number)] = gram(part)
        signatures = torch.cat(columns, dim=1)
        of = (len(signed), count)
        return Seen(signatures - signatures.mean(dim=0), grams if self.related else None, of, parts)


@dataclass(frozen=True, eq=False)
class Seen:
    """The result of a look at a release.

    Args:
        signatures: (m, f) float64, centred over the rows.
        grams: (p, m, m) float32; None if none were asked, or landmarks stand for all rows.
        of: Number of tokens with signatures, and of all tokens.
        parts: With landmarks, p centred tokens (m, q) float32; else empty.
    """

    signatures: torch.Tensor
    grams: torch.Tensor | None
    of: tuple[int, int]
    parts: Sequence[torch.Tensor] = ()


@dataclass(frozen=True, eq=False)
class KeyStatistics:
    """Average signatures and Gram matrices of releases, and their spread over keys.

    Args:
        look: The way to read releases.
        signatures: (n, f) float64, the mean over keys, in units of `spread`.
        spread: (f,) deviation of a signature from key to key.
        covariance: (f, f) of these deviations, 1 on the diagonal.
        grams: (p, n, n), with landmarks (p, n, a), float32, the mean over keys at mean square one; None if signatures
            must do.
        weights: (p,) how well the Gram matrix of each token survives a change of key: r / (1 - r^2), r the correlation
            of one key's with the mean of the others'.
        of: Number of tokens with signatures, and of all tokens.
    """

    look: Look
    signatures: torch.Tensor
    spread: torch.Tensor
    covariance: torch.Tensor
    grams: torch.Tensor | None
    weights: torch.Tensor
    of: tuple[int, int]

    def factors(self, seen: Seen, own: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Whitened signatures (n, f) of candidates and (m, f) of a release.

        Args:
            seen: The release.
            own: Share of the identity in the covariance; 1 takes the features as independent.
        """
        blended = (1 - own) * self.covariance
        blended.diagonal().add_(own)
        turn = torch.linalg.inv(torch.linalg.cholesky(blended)).T
        a, b = self.signatures @ turn, (seen.signatures / self.spread) @ turn
        return a - a.mean(dim=0), b - b.mean(dim=0)


def _even_part(count: int, most: int | None) -> list[int]:
    """Numbers of `most` tokens evenly apart, the last included; None for all.

    >>> _even_part(4, None), _even_part(9, 4), _even_part(9, 1)
    ([0, 1, 2, 3], [0, 2, 5, 8], [8])
    """
    if most is None or count <= most:
        return list(range(count))
    return [*((count - 1) * number // (most - 1) for number in range(most - 1)), count - 1]


def learn(look: Look, simulate: Callable[[int], Release], keys: int, n: int) -> KeyStatistics:
    """Learn from releases `simulate(0)` ... `simulate(keys - 1)`; at least two keys."""
    at_least(2, keys=keys)
    total, grams, of = _averaged(look, simulate(0), n)
    products = total.T @ total
    last = grams
    for number in range(1, keys):
        ours, last, _ = _averaged(look, simulate(number), n)
        total, products = total + ours, products + ours.T @ ours
        if grams is not None and last is not None and number + 1 < keys:
            grams += last
    mean = total / keys
    within = (products / keys - mean.T @ mean) / n * keys / (keys - 1)
    between = mean.square().mean(dim=0)
    spread = (within.diagonal().clamp_min(0) + FLOOR**2 * between + FLOOR**4).sqrt()
    covariance = within / spread / spread[:, None]
    covariance.diagonal().fill_(1.0)
    weights = torch.ones(0)
    if grams is not None and last is not None:
        # The last key is held against the mean of the others, then added to it.
        weights = _weights(grams, last)
        grams += last
        grams /= grams.square().mean(dim=(1, 2), keepdim=True).sqrt().clamp_min(TINY)
    return KeyStatistics(look, mean / spread, spread, covariance, grams, weights, of)


def of_one(statistics: KeyStatistics, release: Release, n: int) -> KeyStatistics:
    """The statistics, with one release in place of the mean."""
    signatures, grams, of = _averaged(statistics.look, release, n)
    return replace(statistics, signatures=signatures / statistics.spread, grams=grams, of=of)


def _averaged(look: Look, release: Release, n: int) -> tuple[torch.Tensor, torch.Tensor | None, tuple[int, int]]:
    """Signatures (n, f), Gram matrices or their columns, `Seen.of`, by row."""
    seen, links = look(release.samples), true_links(release, "relational matching pairs rows")
    signatures = _gather(seen.signatures, links, n)
    if seen.parts:
        stands = links.new_full((n,), -1).scatter_reduce(0, links[:, 0], links[:, 1], "amax")
        at = stands[look.chosen(n).to(links.device)]
        columns = [gram_columns(part, at.clamp_min(0)).masked_fill_(at < 0, 0) for part in seen.parts]
        return signatures, torch.stack([_gather(part, links, n) for part in columns]), seen.of
    if seen.grams is None:
        return signatures, None, seen.of
    grams = seen.grams if len(seen.grams[0]) == n else seen.grams.new_empty(len(seen.grams), n, n)
    for number, one in enumerate(seen.grams):
        grams[number] = _gather(_gather(one, links, n).T, links, n).fill_diagonal_(0)
    return signatures, grams, seen.of


def _weights(grams: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Weights (p,) r / (1 - r^2), r Gram correlations; else 1."""
    sizes = torch.linalg.vector_norm(grams, dim=(1, 2)) * torch.linalg.vector_norm(others, dim=(1, 2))
    agreement = ((grams * others).sum(dim=(1, 2)) / sizes.clamp_min(TINY)).clamp(0, LARGEST_AGREEMENT)
    weights = agreement / (1 - agreement.square())
    return torch.where(weights.sum() > 0, weights, torch.ones_like(weights))


def _gather(rows: torch.Tensor, links: torch.Tensor, n: int) -> torch.Tensor:
    """Mean (n, f) of released rows by linked raw row; else 0."""
    total = torch.zeros(n, rows.shape[1], dtype=rows.dtype, device=rows.device)
    total.index_add_(0, links[:, 0], rows[links[:, 1]])
    share = torch.bincount(links[:, 0], minlength=n).clamp_min(1).to(rows.dtype)
    return total.div_(share[:, None])
