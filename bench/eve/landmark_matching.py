"""Matching of very many rows by landmarks that stand for all.

Source: landmark points of de Silva and Tenenbaum 2004 ("Sparse multidimensional scaling using landmark points"), here
for the matching of Gram matrices in `bench.eve.gram_matching`. All n candidates have n^2 inner products, and their
one-to-one matching takes cubic time; with a landmarks there are n a products, and a matching (a, m) in each round. The
rows that landmarks are matched to then score every pair. No array is larger than the table of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from bench.eve.gram_matching import (
    ROUNDS,
    SINKHORN_ROUNDS,
    assign,
    matching_ended,
    standardise,
)
from bench.memory.rows import in_blocks, rows_at
from bench.pairs.score_blocks import split_evenly
from bench.types import PairScores

BLOCK = 1024
STRIP = 1 << 20  # numbers of a table that stay in a processor's cache
LEAST = 1e-30


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
        squares = [_squares(part) for part in seen]
        found = assign(base)
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        for _ in range(ROUNDS):
            total = torch.zeros(base.shape, device=base.device)
            for weight, ours, part, products in zip(self.weights.tolist(), own, seen, squares, strict=True):
                MatchedColumns(part, found[1], products).add(total, ours[:, found[0]], weight)
            scores = standardise(total.double()).add_(base, alpha=blend)
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
        columns = [MatchedColumns(part, at, _squares(part)) for part in self.seen]
        known = [part[:, rows] for part in self.landmarks.known]
        along = [ours @ theirs.matched for ours, theirs in zip(known, columns, strict=True)]
        every = torch.arange(len(self.seen[0]), device=rows.device) if cols is None else cols
        table = torch.empty(start.shape, device=rows.device)
        for part in split_evenly(start.shape[1], BLOCK):
            total = torch.zeros(len(table), part.stop - part.start, device=rows.device)
            for weight, ours, left, theirs in zip(self.landmarks.weights.tolist(), known, along, columns, strict=True):
                theirs.add(total, ours, weight, left=left, cols=every[part])
            base = standardise(start.block(slice(None), part))
            table[:, part] = (standardise(total) + blend * base).float()
        return table


class MatchedColumns:
    """Columns of `gram_columns` that are multiplied but never formed.

    K (b, a) times their transpose takes b q m products of numbers in place of (b + q) a m.

    Args:
        rows: (m, q) float32, one token of the released rows, centred.
        at: (a,) int64, distinct: the columns' rows.
        squares: (q, q), `rows.T @ rows`.
    """

    def __init__(self, rows: torch.Tensor, at: torch.Tensor, squares: torch.Tensor) -> None:
        self.rows, self.matched = rows, rows_at(rows, at)[:]
        self.own = self.matched.square().sum(dim=1)
        m, a = len(rows), len(at)
        self.place = at.new_full((m,), -1)
        self.place[at] = torch.arange(a, device=at.device)
        sums = torch.cat([part @ self.matched.sum(dim=0) for _, part in in_blocks(rows)])
        sums[at] -= self.own
        others = torch.full_like(sums, a)
        others[at] -= 1
        self.mean = sums / others.clamp_min(1)
        total = (squares.double() * (self.matched.T @ self.matched)).sum() - self.own.double().square().sum()
        total = (total - (others * self.mean.double().square()).sum()) / (m * a)
        self.size = float(total.clamp_min(0).sqrt().clamp_min(torch.finfo(torch.float32).tiny))

    def add(
        self, total: torch.Tensor, known: torch.Tensor, weight: float, *, left: torch.Tensor | None = None,
        cols: torch.Tensor | None = None,
    ) -> None:  # fmt: skip
        """Add `weight` times the products of known columns and these.

        Args:
            total: (b, c) float32, written to.
            known: (b, a) float32.
            weight: Of this token.
            left: (b, q), `known @ matched` if it is at hand.
            cols: (c,) int64, the released rows asked for; None for all.
        """
        left = known @ self.matched if left is None else left
        alpha = weight / self.size
        rows = self.rows if cols is None else rows_at(self.rows, cols)
        mean, place = (each if cols is None else each[cols] for each in (self.mean, self.place))
        for part, some in in_blocks(rows):
            total[:, part].addmm_(left, some.T, alpha=alpha)
        total.addr_(known.sum(dim=1), mean, alpha=-alpha)
        among = (place >= 0).nonzero()[:, 0]
        column = place[among]
        total.index_add_(1, among, known[:, column] * (self.own[column] - mean[among]), alpha=-alpha)


def _squares(rows: torch.Tensor) -> torch.Tensor:
    return reduce(torch.add, (part.T @ part for _, part in in_blocks(rows)))


def standardised(start: PairScores, device: torch.device) -> torch.Tensor:
    """Scores (n, m) float32, standardised in every column, columns at a time."""
    table = torch.empty(start.shape, device=device)
    for part in split_evenly(start.shape[1], BLOCK):
        table[:, part] = standardise(start.block(slice(None), part)).float()
    return table


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
        for cols in split_evenly(m, BLOCK):
            self.of_column[cols] += self._float32(slice(None), cols).logsumexp(dim=0).double()
        for _ in range(SINKHORN_ROUNDS if n == m else 0):
            self._level_both()

    def _level_both(self) -> None:
        """Rows, then columns, in one reading.

        Columns are level before: no chance exceeds 1, and each column has one of at least 1 / n, which the rows divide
        by m at most. Rows may be too small for float32; their sums are taken in logarithms.
        """
        sums = torch.zeros_like(self.of_column)
        for rows in split_evenly(self.shape[0], max(1, STRIP // self.shape[1])):
            scores = self._float32(rows, slice(None))
            chances = scores.exp()
            total = chances.sum(dim=1)
            lost = (total < LEAST).nonzero()[:, 0]
            logs, shares = total.log(), 1 / total
            if len(lost):
                logs[lost], shares[lost] = scores[lost].logsumexp(dim=1), 1.0
                chances[lost] = (scores[lost] - logs[lost, None]).exp()
            self.of_row[rows] += logs.double()
            sums += (shares @ chances).double()
        self.of_column += sums.log()

    def _float32(self, rows: slice, cols: slice) -> torch.Tensor:
        scores = self.table[rows, cols] * self.sharpness
        return scores.sub_(self.of_row[rows, None].float()).sub_(self.of_column[cols].float())

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Log probabilities (rows, cols), float64."""
        scores = self.table[rows, cols].double().mul_(self.sharpness)
        return scores.sub_(self.of_row[rows, None]).sub_(self.of_column[cols])
