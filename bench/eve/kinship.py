"""Signatures and Gram matrices that simulated keys predict for releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.eve.gram import gram, signature
from bench.eve.outliers import tamed
from bench.eve.tokens import Reading, token_count, tokens
from bench.seeds import generator
from bench.types import NotApplicable, Release
from bench.validation import at_least

REFERENCE_ROWS = 2048
FLOOR = 1e-3
TINY = 1e-30
LARGEST_AGREEMENT = 0.98


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
    """

    reading: Reading
    locations: int
    related: bool
    seed: int
    most: int | None = None
    signed: int | None = None

    def __call__(self, rows: torch.Tensor) -> Seen:
        """Signatures and Gram matrices of released rows (m, ...)."""
        rows, m = tamed(rows), len(rows)
        reference = torch.arange(m, device=rows.device)
        if m > REFERENCE_ROWS:
            reference = torch.randperm(m, generator=generator(self.seed))[:REFERENCE_ROWS].to(rows.device)
        found: list[torch.Tensor] = []
        count = token_count(rows, self.reading, self.locations)
        signed = _even_part(count, self.signed)
        related = _even_part(count, self.most) if self.related else []
        grams = torch.empty(len(related), m, m, device=rows.device)
        chosen = sorted({*signed, *related})
        for number, part in zip(chosen, tokens(rows, self.reading, self.locations, chosen), strict=True):
            if number in signed:
                found.append(signature(part, reference))
            if number in related:
                grams[related.index(number)] = gram(part)
        signatures = torch.cat(found, dim=1)
        of = (len(signed), count)
        return Seen(signatures - signatures.mean(dim=0), grams if self.related else None, of)


@dataclass(frozen=True, eq=False)
class Seen:
    """The result of a look at a release.

    Args:
        signatures: (m, f) float64, centred over the rows.
        grams: (p, m, m) float32; None if none were asked.
        of: Number of tokens with signatures, and of all tokens.
    """

    signatures: torch.Tensor
    grams: torch.Tensor | None
    of: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Kinship:
    """Average signatures and Gram matrices of releases, and their spread over keys.

    Args:
        look: The way to read releases.
        signatures: (n, f) float64, the mean over keys, in units of `spread`.
        spread: (f,) deviation of a signature from key to key.
        covariance: (f, f) of these deviations, 1 on the diagonal.
        grams: (p, n, n) float32, the mean over keys at mean square one; None if signatures must do.
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


def learn(look: Look, simulate: Callable[[int], Release], keys: int, n: int) -> Kinship:
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
    return Kinship(look, mean / spread, spread, covariance, grams, weights, of)


def _averaged(look: Look, release: Release, n: int) -> tuple[torch.Tensor, torch.Tensor | None, tuple[int, int]]:
    """Signatures (n, f), Gram matrices (p, n, n) and `Seen.of`, by row."""
    seen, links = look(release.samples), true_links(release)
    signatures = _gather(seen.signatures, links, n)
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


def true_links(release: Release) -> torch.Tensor:
    """Links (p, 2) of a simulation; for mixed rows, the main ones."""
    if release.links is None or not len(release.links):
        raise NotApplicable("relational matching pairs rows: no raw row stands in a row of this release")
    return release.links if release.primary is None else release.links[release.primary]


def _gather(rows: torch.Tensor, links: torch.Tensor, n: int) -> torch.Tensor:
    """Mean (n, f) of released rows by linked raw row; else 0."""
    total = torch.zeros(n, rows.shape[1], dtype=rows.dtype, device=rows.device)
    total.index_add_(0, links[:, 0], rows[links[:, 1]])
    share = torch.bincount(links[:, 0], minlength=n).clamp_min(1).to(rows.dtype)
    return total.div_(share[:, None])
