"""Matching of very many rows by landmarks that stand for all.

Source: landmark points of de Silva and Tenenbaum 2004 ("Sparse multidimensional scaling using landmark points"), here
for the matching of Gram matrices in `bench.eve.gram_matching`. All n candidates have n^2 inner products, and their
one-to-one matching takes cubic time; with a landmarks there are n a products, and a matching (a, m) in each round. The
rows that landmarks are matched to then score every pair. No array is larger than the table of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from bench.eve.gram_matching import (
    ROUNDS,
    SINKHORN_ROUNDS,
    assign,
    gram_columns,
    matching_ended,
    standardise,
)
from bench.pairs.score_blocks import split_evenly
from bench.types import PairScores

BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Inner products with landmarks that Eve, the attacker, expects.

    Args:
        rows: (a,) int64, candidates.
        known: (p, n, a) float32, mean Gram columns over keys, one matrix a token.
        weights: (p,) how much each token counts.
    """

    rows: torch.Tensor
    known: torch.Tensor
    weights: torch.Tensor

    def matched(
        self, seen: Sequence[torch.Tensor], start: torch.Tensor, blend: float,
        watch: Callable[[torch.Tensor], None] | None = None,
    ) -> Matched:  # fmt: skip
        """Match landmarks with released rows by matching and scoring in turn.

        Args:
            seen: For each token centred released rows (m, q) float32.
            start: (a, m) float64 scores of the landmarks that begin the matching.
            blend: Weight of the starting scores.
            watch: Called with the standardised start and the scores (a, m) of every round.
        """
        base = standardise(start)
        if watch is not None:
            watch(base)
        own = self.known[:, self.rows]
        found = assign(base)
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        for _ in range(ROUNDS):
            scores = standardise(_products(own, seen, self.weights, found).double()) + blend * base
            if watch is not None:
                watch(scores)
            before.append(found)
            found = assign(scores)
            if matching_ended(found, before):
                return Matched(self, seen, found, stayed=True)
        return Matched(self, seen, found, stayed=False)


@dataclass(frozen=True, eq=False)
class Matched:
    """Landmarks and the released rows that they are matched to.

    Args:
        landmarks: All landmarks.
        seen: As in `Landmarks.matched`.
        pairs: Numbers of landmarks and of released rows, int64, equally many.
        stayed: Whether the matching stayed.
    """

    landmarks: Landmarks
    seen: Sequence[torch.Tensor]
    pairs: tuple[torch.Tensor, torch.Tensor]
    stayed: bool

    def scores(self, start: PairScores, blend: float, cols: torch.Tensor | None = None) -> torch.Tensor:
        """Standardised scores (n, m) float32 of all candidates, columns at a time.

        Args:
            start: Scores (n, m) that began the matching, of these columns.
            blend: Their weight.
            cols: (m,) int64, the released rows that are scored; None for all.
        """
        rows, at = self.pairs
        known = [part[:, rows] for part in self.landmarks.known]
        columns = [gram_columns(part, at) for part in self.seen]
        columns = columns if cols is None else [part[cols] for part in columns]
        table = torch.empty(start.shape, device=rows.device)
        for part in split_evenly(start.shape[1], BLOCK):
            total = torch.zeros(len(table), part.stop - part.start, device=rows.device)
            for weight, ours, theirs in zip(self.landmarks.weights.tolist(), known, columns, strict=True):
                total += weight * (ours @ theirs[part].T)
            base = standardise(start.block(slice(None), part))
            table[:, part] = (standardise(total) + blend * base).float()
        return table


def standardised(start: PairScores, device: torch.device) -> torch.Tensor:
    """Scores (n, m) float32, standardised in every column, columns at a time."""
    table = torch.empty(start.shape, device=device)
    for part in split_evenly(start.shape[1], BLOCK):
        table[:, part] = standardise(start.block(slice(None), part)).float()
    return table


def _products(
    known: torch.Tensor, seen: Sequence[torch.Tensor], weights: torch.Tensor, pairs: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    rows, cols = pairs
    total = torch.zeros(known.shape[1], len(seen[0]), device=known.device)
    for weight, ours, theirs in zip(weights.tolist(), known, seen, strict=True):
        total += weight * (ours[:, rows] @ gram_columns(theirs, cols).T)
    return total


class BalancedScores(PairScores):
    """Log match probabilities from a float32 table; no second table exists.

    As `bench.eve.gram_matching.log_posterior`: softmax of `sharpness` times scores by column, and if n = m by row and
    column in turn (Sinkhorn), columns last. The table stays as it is, and offsets of rows and columns are kept.

    Args:
        table: (n, m) float32, finite.
        sharpness: Factor of the scores.
    """

    def __init__(self, table: torch.Tensor, sharpness: float) -> None:
        n, m = self.shape = (table.shape[0], table.shape[1])
        self.table, self.sharpness = table, sharpness
        self.of_row = torch.zeros(n, dtype=torch.float64, device=table.device)
        self.of_column = torch.zeros(m, dtype=torch.float64, device=table.device)
        for _ in range(SINKHORN_ROUNDS if n == m else 0):
            self._level_columns()
            for rows in split_evenly(n, BLOCK):
                self.of_row[rows] += self.block(rows, slice(None)).float().logsumexp(dim=1).double()
        self._level_columns()

    def _level_columns(self) -> None:
        for cols in split_evenly(self.shape[1], BLOCK):
            self.of_column[cols] += self.block(slice(None), cols).float().logsumexp(dim=0).double()

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Log probabilities (rows, cols), float64."""
        scores = self.table[rows, cols].double().mul_(self.sharpness)
        return scores.sub_(self.of_row[rows, None]).sub_(self.of_column[cols])
