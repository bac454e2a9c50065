"""Clusters of one size, formed from the outermost row inwards (k-Same).

Source: Newton et al., Preserving Privacy by De-identifying Face Images (2005), in the form of the CVAE authors' code
(Di Salvo et al. 2024): the seed is the unassigned row with the largest sum of Euclidean distances to the rows that are
unassigned too; it takes its k - 1 nearest of them; repeat.

That code keeps the matrix of all distances in float32 and adds it up anew in every round. Here only rows that may lead
are measured against all others, with memory linear in n, and distances are exact: rows are first rounded to a grid of
2^-26 of the longest row's distance from the middle, about as fine as float32 holds that row, on which float64 products
have no error. So the clusters are those of a rescan over the same distances, bit by bit, whatever is computed in which
blocks, and but for ties whatever the order of rows.

The search for the outermost row is repeated, with rows taken away in between. Few rows are ever measured against all
others. For the rest a bound will do: m distances sum to at most the root of m times the sum of their squares
(Cauchy-Schwarz), and squares sum up in closed form, sum |x - y|^2 = m |x|^2 - 2 x s + q with s the sum of the y and q
that of their squares. Rows are put into groups of neighbours and the bounds of the groups added, which is tight as far
as distances to a group are alike. Rows that may lead by that bound are measured; the measured rows' sums are then kept
up to date, exactly, from their stored distances. One product of all rows renews the bounds and measures the rows that
led by the bounds before: reading the rows costs as much as multiplying them.

If bounds say little (rows that tie, or the last few), every row's sum is measured once and then kept up to date.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

import torch

from bench.memory.rows import Rows
from bench.pairs.score_blocks import split_evenly

STORED = 512
"""Measured rows whose distances are kept."""
GROUPS = 8
CHUNK = 16
"""Rows measured at a time."""
SHARE = 0.7
"""When so few of the rows are left, the others are cleared away."""
ROWS = 256
"""Rows read or moved at a time."""
CACHED = 4 << 20
"""Bytes of rows that are float64 at a time."""
BITS = 25
"""Coordinates are whole numbers whose rows are at most 2^25 long: squares of distances are below 2^53."""


class OutermostRow:
    """A search among finite rows (n, ...); `which` (s,) int64 selects them.

    Rows are whole numbers on a grid, so that products in float64 are exact, and so are squared distances. Their roots
    are rounded to a multiple of a power of two so fine that sums of n of them are exact too. Rows that do not fit
    (`bench.memory.rows.Rows`) are kept as int32: half of what float64 takes, and up to a third slower.

    Attributes:
        rows: (s,) int64, the places in `which` of the rows that are stored, ascending.
        alive: (s,) bool, which of them are left.
        left: How many are left.
    """

    def __init__(self, rows: torch.Tensor, which: torch.Tensor) -> None:
        n, device = len(which), rows.device
        self.rows = torch.arange(n, device=device)
        self._grid, self._squares = _on_grid(rows, which)
        # Squares are below 2^51, so a root that is rounded once still tells which whole number it is the root of.
        self._fine = 2.0 ** (52 - BITS - math.ceil(math.log2(n)))
        self.alive = torch.ones(n, dtype=torch.bool, device=device)
        self.left = n
        self._everyone = False  # whether the bounds are the sums themselves
        self._away = self._squares.new_empty(n, min(n, STORED))
        self._front = torch.zeros(self._away.shape[1], dtype=torch.int64, device=device)
        # Sums of the measured rows in front; -1 if a place is free.
        self._sums = self._squares.new_full((self._away.shape[1],), -1.0)
        self._limit = math.inf
        self._group()
        self._bounds = self._bound(self._products(self._moments))

    def find(self) -> torch.Tensor:
        """Distances (s,) of the outermost row; itself -1, gone rows infinite."""
        if not self._everyone and float(self._sums.amax()) <= self._limit:
            self._refresh()
        if self._everyone:
            row = int(self._bounds.argmax())  # the first of equal ones
            away = self._distances(torch.tensor([row], device=self.rows.device))[:, 0]
        else:
            best = (self._sums == self._sums.amax()).nonzero()[:, 0]
            place = best[self._front[best].argmin()]
            row, away = int(self._front[place]), self._away[:, place]
        away = away.masked_fill(~self.alive, torch.inf)
        away[row] = -1
        return away

    def remove(self, taken: torch.Tensor) -> None:
        """Take away rows by their places among `rows`."""
        self.alive[taken] = False
        self.left -= len(taken)
        if self._everyone:
            self._bounds -= self._distances(taken).sum(dim=1)
            self._bounds[taken] = -1
            self._clear()
            return
        measured = (self._sums >= 0) & self.alive[self._front]
        self._sums = torch.where(measured, self._sums - self._away[taken].sum(dim=0), -1.0)

    def _distances(self, which: torch.Tensor) -> torch.Tensor:
        """Distances (s, len(which)) of all stored rows, alive or not, to `which`."""
        return self._rounded_roots(self._products(self._wide(which)))

    def _wide(self, which: torch.Tensor) -> torch.Tensor:
        """Rows (len(which), d + 2) float64: a row, 1, its square."""
        wide = self._squares.new_ones(len(which), self._grid.shape[1] + 2)
        wide[:, :-2], wide[:, -1] = self._grid[which], self._squares[which]
        return wide

    def _products(self, wide: torch.Tensor) -> torch.Tensor:
        """Sums (s, w) of squared distances to wide rows, sums of rows."""
        turned, out = -2 * wide[:, :-2].T, self._squares.new_empty(len(self._grid), len(wide))
        for part in self._parts():
            torch.mm(self._grid[part].double(), turned, out=out[part])
        out.addcmul_(self._squares[:, None], wide[:, -2])
        return out.add_(wide[:, -1])

    def _parts(self) -> list[slice]:
        """Parts of stored rows; an int32 part fits the cache as float64."""
        n, d = self._grid.shape
        return split_evenly(n, n if self._grid.dtype == torch.float64 else max(1, CACHED // (8 * d)))

    def _rounded_roots(self, squares: torch.Tensor) -> torch.Tensor:
        return squares.sqrt_().mul_(self._fine).round_()

    def _group(self) -> None:
        """Group all rows by the nearest of a few; sum each group."""
        n, d = self._grid.shape
        some = torch.linspace(0, n - 1, GROUPS, device=self.rows.device).long()
        self._of = self._products(self._wide(some)).argmin(dim=1)
        members = torch.nn.functional.one_hot(self._of, GROUPS).double().T
        sums = reduce(torch.add, (members[:, part] @ self._grid[part].double() for part in self._parts()))
        self._moments = torch.cat((sums, members.sum(dim=1)[:, None], (members @ self._squares)[:, None]), dim=1)
        self._counted = self.alive.clone()  # rows that the moments are the sums of
        # The error of a sum of n squares, of taking some off again, and of a product with it; all terms are positive
        # but for one, and add up to at most 2^(2 BITS + 2) for each row of the group.
        self._margin = (2 * n + d + 6) * 2.0 ** (2 * BITS + 2 - 53) * self._moments[:, -2]

    def _count_out(self) -> None:
        """Take rows that are gone out of the moments."""
        gone = (self._counted & ~self.alive).nonzero()[:, 0]
        self._moments.index_add_(0, self._of[gone], self._wide(gone), alpha=-1)
        self._counted[gone] = False

    def _bound(self, squares: torch.Tensor) -> torch.Tensor:
        """(s,) bounds of sums of distances, from products (s, GROUPS)."""
        members = self._moments[:, -2]
        roots = squares.clamp(min=0).add_(self._margin).mul_(members * self._fine**2).sqrt_().sum(dim=1)
        return roots * (1 + 2.0**-40) + members.sum()  # every distance was rounded

    def _clear(self) -> None:
        """Forget the rows that are gone, once there are many."""
        if self.left >= SHARE * len(self.rows):
            return
        places = self.alive.nonzero()[:, 0]
        if not self._everyone:
            self._count_out()
            place = self.alive.cumsum(dim=0) - 1
            self._front = torch.where(self._sums < 0, 0, place[self._front])
            self._away = _moved_forward(self._away, places)
            self._of, self._counted = self._of[places], self._counted[places]
        self._grid = _moved_forward(self._grid, places)
        self._squares, self.rows, self._bounds = self._squares[places], self.rows[places], self._bounds[places]
        self.alive = self.alive[places]

    def _hopes(self) -> torch.Tensor:
        """(s,) bounds of the rows that are not measured, else -1."""
        measured = self._sums >= 0
        self._bounds[self._front[measured]] = self._sums[measured]
        self._bounds[~self.alive] = -1
        return self._bounds.index_fill(0, self._front[measured], -1)

    def _refresh(self) -> None:
        """Measure a few rows, the next leaders, and more until one leads."""
        self._clear()
        self._count_out()
        alive, groups, measured = self.alive.double(), self._moments, 0
        while True:
            best, some = self._hopes().topk(min(CHUNK, self.left))
            if not len(groups):  # the bounds are new
                self._limit = float(best[0])
                if float(self._sums.amax()) > self._limit:
                    return
            some = some[best >= 0]
            measured += len(some)
            if 2 * measured > self.left or measured > len(self._sums):  # more rows tie than are stored
                self._measure_everyone()
                return
            products = self._products(torch.cat((self._wide(some), groups)))
            if len(groups):
                self._bounds = torch.minimum(self._bounds, self._bound(products[:, len(some) :]))
                groups = groups[:0]
            away = self._rounded_roots(products[:, : len(some)])
            place = self._sums.topk(len(some), largest=False).indices
            self._away.index_copy_(1, place, away)
            self._front[place], self._sums[place] = some, torch.mv(away.T, alive)

    def _measure_everyone(self) -> None:
        """The sums of all rows that are left."""
        self._everyone = True
        places, alive = torch.arange(len(self.rows), device=self.rows.device), self.alive.double()
        for part in torch.split(places, CHUNK):
            self._bounds[part] = torch.mv(self._distances(part).T, alive)
        self._bounds[~self.alive] = -1
        self._away = self._away[:, :0]


def _on_grid(rows: torch.Tensor, which: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows `which` as centred whole numbers (s, d), and squares (s,)."""

    def read() -> Iterator[tuple[slice, torch.Tensor]]:
        for part in split_evenly(len(which), ROWS):
            yield part, rows[which[part]].flatten(1).double()

    least = torch.stack([part.amin(dim=0) for _, part in read()]).amin(dim=0)
    most = torch.stack([part.amax(dim=0) for _, part in read()]).amax(dim=0)
    middle = least / 2 + most / 2
    longest = max(float(torch.linalg.vector_norm(part - middle, dim=1).amax()) for _, part in read())
    unit = 2.0 ** (BITS - math.ceil(math.log2(longest))) if longest else 1.0
    kind = torch.int32 if isinstance(rows, Rows) else torch.float64
    grid, squares = middle.new_empty(len(which), len(middle), dtype=kind), middle.new_empty(len(which))
    for place, part in read():
        whole = part.sub_(middle).mul_(unit).round_()
        grid[place], squares[place] = whole, torch.linalg.vector_norm(whole, dim=1).square_().round_()
    return grid, squares


def _moved_forward(stored: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The rows `kept` (ascending), moved forward in place, in parts."""
    for part in split_evenly(len(places), ROWS):
        stored[part] = stored[places[part]]  # nothing is written over that is still to be read
    return stored[: len(places)]


def same_size_clusters(rows: torch.Tensor, k: int, which: torch.Tensor | None = None) -> torch.Tensor:
    """The cluster of every row; each has k rows, the last more.

    The last one takes the n % k rows that are left over as well. Of equal distances or sums the row with the lower
    number comes first.

    Args:
        rows: (n, ...) finite, in the units that distances are to be measured in; read a few at a time.
        k: At least 1.
        which: (s,) int64, ascending: the rows that are put into clusters; None stands for all of them.

    Returns:
        (s,) int64 on the device of the rows, in the order in which the clusters were formed.

    Raises:
        ValueError: Fewer rows than k; a row that is not finite (it is named).
        TooLargeError: Rows that are read where they are used, and are too large to be searched in memory.

    >>> same_size_clusters(torch.tensor([[0.0], [0.1], [5.0], [9.0], [9.2]]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    which = torch.arange(len(rows), device=rows.device) if which is None else which
    if not 1 <= k <= len(which):
        raise ValueError(f"clusters need k from 1 to the number of rows, {len(which)}, got {k}")
    if isinstance(rows, Rows):
        rows.budget.check((len(which), *rows.shape[1:]), len(which) * rows.shape[1:].numel() * torch.int32.itemsize)
    finite = [
        torch.linalg.vector_norm(rows[part].flatten(1).double(), dim=1).isfinite() for part in torch.split(which, ROWS)
    ]
    bad = which[~torch.cat(finite)]
    if len(bad):
        raise ValueError(f"clusters need finite rows: row {int(bad[0])} is not ({len(bad)} such rows)")
    cluster = torch.full((len(which),), -1, dtype=torch.int64, device=rows.device)
    search = OutermostRow(rows, which)
    number = 0
    while search.left >= 2 * k:
        away = search.find()
        last = away.kthvalue(k).values
        nearer, as_far = (away < last).nonzero()[:, 0], (away == last).nonzero()[:, 0]
        taken = torch.cat((nearer, as_far[: k - len(nearer)]))
        cluster[search.rows[taken]] = number
        search.remove(taken)
        number += 1
    cluster[search.rows[search.alive]] = number
    return cluster
