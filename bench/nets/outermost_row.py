"""The row with the largest sum of distances to all others, again and again while rows are taken away.

Few rows are ever measured against all others. For the rest a bound will do: m distances sum to at most the root of m
times the sum of their squares (Cauchy-Schwarz), and squares sum up in closed form, sum |x - y|^2 = m |x|^2 - 2 x s + q
with s the sum of the y and q that of their squares. Rows are put into groups of neighbours and the bounds of the groups
added, which is tight as far as distances to a group are alike. Whoever may lead by that bound is measured; the measured
rows' sums are then kept up to date, exactly, from their stored distances.

Where bounds say little (rows that tie, or the last few), every row's sum is measured once and then kept up to date.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

STORED = 512
"""Measured rows whose distances are kept."""
GROUPS = 16
CHUNK = 32
"""Rows measured at a time."""
SHARE = 0.7
"""When so few of the rows are left, the others are cleared away."""
BITS = 25
"""Coordinates are whole numbers whose rows are at most 2^25 long: squares of distances are below 2^53."""


class OutermostRow:
    """A search among rows (n, d) float64, finite.

    Rows are whole numbers on a grid, so that products in float64 are exact, and so are squared distances. Their roots
    are rounded to a multiple of a power of two so fine that sums of n of them are exact too.

    Attributes:
        rows: (s,) int64, the numbers of the rows that are stored, ascending.
        alive: (s,) bool, which of them are left.
        left: How many are left.
    """

    def __init__(self, points: Tensor) -> None:
        low, high = points.aminmax(dim=0)
        points = points - (low / 2 + high / 2)
        longest = float(torch.linalg.vector_norm(points, dim=1).amax())
        if longest:
            points.mul_(2.0 ** (BITS - math.ceil(math.log2(longest)))).round_()
        n = len(points)
        squares = points.square().sum(dim=1, keepdim=True)
        self._wide = torch.cat((points, torch.ones_like(squares), squares), dim=1)
        self._fine = 2.0 ** (52 - BITS - math.ceil(math.log2(n)))
        self.rows = torch.arange(n, device=points.device)
        self.alive = torch.ones(n, dtype=torch.bool, device=points.device)
        self.left = n
        self._bounds = points.new_full((n,), torch.inf)
        self._everyone = False  # whether the bounds are the sums themselves
        self._away = points.new_empty(n, min(n, STORED))
        self._front = torch.zeros(self._away.shape[1], dtype=torch.int64, device=points.device)
        # Sums of the measured rows in front; -1 where a place is free.
        self._sums = points.new_full((self._away.shape[1],), -1.0)
        self._limit = math.inf
        self._group()

    def find(self) -> Tensor:
        """Distances (s,) of the outermost row that is left: -1 to itself, infinite to rows that are gone."""
        if not self._everyone and float(self._sums.amax()) <= self._limit:
            self._refresh()
        if self._everyone:
            row = int(self._bounds.argmax())  # the first of equal ones
            away = self._measure(torch.tensor([row], device=self.rows.device))[:, 0]
        else:
            best = (self._sums == self._sums.amax()).nonzero()[:, 0]
            place = best[self._front[best].argmin()]
            row, away = int(self._front[place]), self._away[:, place].clone()
        away[row] = -1
        return away

    def remove(self, taken: Tensor) -> None:
        """Take away rows by their places among `rows`."""
        self.alive[taken] = False
        self.left -= len(taken)
        if self._everyone:
            self._bounds -= self._distances(taken).sum(dim=1)
            self._bounds[taken] = -1
            self._clear()
            return
        self._moments.index_add_(0, self._of[taken], self._turned(taken), alpha=-1)
        measured = (self._sums >= 0) & self.alive[self._front]
        self._sums = torch.where(measured, self._sums - self._away[taken].sum(dim=0), -1.0)
        self._away[taken] = torch.inf

    def _turned(self, which: Tensor) -> Tensor:
        """The stored rows `which` such that products with all rows are squared distances."""
        wide = self._wide[which]
        return torch.cat((-2 * wide[:, :-2], wide[:, -1:], wide[:, -2:-1]), dim=1)

    def _distances(self, which: Tensor) -> Tensor:
        """Distances (s, len(which)) of all stored rows to `which`."""
        return torch.mm(self._wide, self._turned(which).T).sqrt_().mul_(self._fine).round_()

    def _measure(self, which: Tensor) -> Tensor:
        """The same, infinite to rows that are gone."""
        return self._distances(which).masked_fill_(~self.alive[:, None], torch.inf)

    def _group(self) -> None:
        """Put every stored row, all of them alive, to the nearest of a few, and add the groups up."""
        some = torch.linspace(0, len(self._wide) - 1, GROUPS, device=self.rows.device).long()
        self._of = torch.mm(self._wide, self._turned(some).T).argmin(dim=1)
        self._moments = self._wide.new_zeros(GROUPS, self._wide.shape[1])
        for part in torch.split(torch.arange(len(self._wide), device=self.rows.device), STORED):
            self._moments.index_add_(0, self._of[part], self._turned(part))
        # The error of a sum of s squares, of taking some off again, and of a product with it; all terms are positive
        # but for one, and add up to at most 2^(2 BITS + 2) for each row of the group.
        terms = 2 * len(self._wide) + self._wide.shape[1] + 4
        self._margin = terms * 2.0 ** (2 * BITS + 2 - 53) * self._moments[:, -1:].T

    def _bound(self) -> Tensor:
        """(s,) sums of distances are at most this."""
        members = self._moments[:, -1]
        squares = torch.mm(self._wide, self._moments.T).clamp_(min=0).add_(self._margin)
        roots = squares.mul_(members * self._fine**2).sqrt_().sum(dim=1)
        return roots * (1 + 2.0**-40) + members.sum()  # every distance was rounded

    def _clear(self) -> None:
        """Forget the rows that are gone, once there are many."""
        if self.left >= SHARE * len(self.rows):
            return
        kept = self.alive.nonzero()[:, 0]
        place = self.alive.cumsum(dim=0) - 1
        self._wide, self.rows, self._bounds = self._wide[kept], self.rows[kept], self._bounds[kept]
        self.alive = self.alive[kept]
        if not self._everyone:
            self._front = torch.where(self._sums < 0, 0, place[self._front])
            self._away = self._away[kept]
            self._group()

    def _refresh(self) -> None:
        """Measure rows until one leads; and at least a few, so that the next rounds have their leaders too."""
        self._clear()
        self._bounds = torch.minimum(self._bounds, self._bound())
        used = self._sums >= 0
        self._bounds[self._front[used]] = self._sums[used]
        self._bounds[~self.alive] = -1
        hopes = self._bounds.index_fill(0, self._front[used], -1)
        order = hopes.sort(descending=True, stable=True).indices
        for start in range(0, len(order), CHUNK):
            some = order[start : start + CHUNK]
            some = some[hopes[some] >= (self._sums.amax().clamp(min=0) if start else 0)]
            if not len(some):
                break
            if 2 * (start + len(some)) > self.left:
                self._measure_everyone()
                return
            away = self._measure(some)
            place = self._sums.topk(len(some), largest=False).indices
            self._away[:, place], self._front[place] = away, some
            self._bounds[some] = self._sums[place] = away.masked_fill_(~self.alive[:, None], 0).sum(dim=0)
        self._limit = float(self._bounds.index_fill(0, self._front[self._sums >= 0], -1).amax())
        if float(self._sums.amax()) <= self._limit:  # more rows tie than are stored
            self._measure_everyone()

    def _measure_everyone(self) -> None:
        """The sums of all rows that are left."""
        self._everyone = True
        places = torch.arange(len(self.rows), device=self.rows.device)
        for part in torch.split(places, CHUNK):
            self._bounds[part] = self._distances(part).masked_fill_(~self.alive[:, None], 0).sum(dim=0)
        self._bounds[~self.alive] = -1
        self._away = self._away[:, :0]
