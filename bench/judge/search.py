"""Whether released rows single out raw rows that they have no business with, more often than chance lets them.

Some people were in the release (`inside`), others of the same kind were not; who was drawn for which is chance. The
released rows that are asked are declared to show neither. If that is so, a released row has no reason to resemble the
former more than the latter, and each candidate that it resembles most is inside as often as a candidate drawn blindly.
Candidates are counted once a group (a person, or equal rows), so that the number inside among the k strongest is
hypergeometric, exactly, for any resemblance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import scipy
import torch

from bench.seeds import generator

STRONGEST = (1 / 16, 1 / 4, 1.0)
"""Shares of the claimed groups, the surest first, that are looked at: all, and few where only few rows are shown."""
FEWEST = 3
TINY = 1e-6
EXACT = 1e-4  # resemblances are cosines: rows nearer than this are the same row
EQUAL = 1e5  # resemblances that differ by less than a part in so many are equal


@dataclass(frozen=True)
class Candidates:
    """Rows that may be found, by number in the table of resemblances.

    Args:
        columns: (t,) int64, their rows.
        group: (t,) int64; rows of one group are counted once.
        inside: (t,) bool, the same for all rows of a group.
    """

    columns: torch.Tensor
    group: torch.Tensor
    inside: torch.Tensor


@dataclass(frozen=True)
class Search:
    """What one search found.

    Args:
        name: How it looked.
        p: Probability of as many hits under chance, allowing for the shares of the strongest that are looked at.
        hits: Groups inside among the `claimed` strongest.
        claimed: How many groups these are.
        base: Share of all groups that are inside.
    """

    name: str
    p: float
    hits: int
    claimed: int
    base: float

    @property
    def excess(self) -> float:
        """The share of the claimed groups that chance does not explain, in [0, 1]."""
        return max(0.0, (self.hits / self.claimed - self.base) / (1 - self.base)) if self.claimed else 0.0


def search(name: str, table: torch.Tensor, among: Candidates) -> Search | None:
    """One search; None where there is nobody to ask or nobody to find.

    Args:
        name: For the record.
        table: (a, t) cosines of the released rows that are asked and of the candidates.
        among: The candidates.
    """
    sides = torch.unique(torch.stack((among.group, among.inside.long()), dim=1), dim=0)
    total, inside = len(sides), int(sides[:, 1].sum())
    if not len(table) or not 0 < inside < total:
        return None
    shuffled = torch.randperm(len(among.columns), generator=generator(0))  # equal resemblances favour nobody
    group, member = among.group[shuffled], among.inside[shuffled]
    table = table[:, shuffled].mul(EQUAL).round()
    top = table.topk(2, dim=1)
    best, second = (EXACT + 1 - top.values[:, place] / EQUAL for place in (0, 1))
    sure = (second / best).log()  # how much farther the second is: nothing is surer than the same row
    nearest = top.indices[:, 0]
    order = sure.argsort(descending=True, stable=True)
    claimed = group[nearest[order]].tolist()
    hit = member[nearest[order]].tolist()
    firsts = dict(zip(reversed(claimed), reversed(hit), strict=True))
    ranked = [firsts[group] for group in dict.fromkeys(claimed)]
    tries = sorted({max(min(FEWEST, len(ranked)), round(share * len(ranked))) for share in STRONGEST})
    found = [(float(scipy.stats.hypergeom.sf(sum(ranked[:k]) - 1, total, inside, k)), k) for k in tries]
    p, k = min(found)
    return Search(name, min(1.0, p * len(tries)), sum(ranked[:k]), k, inside / total)


def strongest(found: Sequence[Search]) -> Search | None:
    """The search with the least p, which allows for the number of searches (Bonferroni); None of none."""
    if not found:
        return None
    least = min(found, key=lambda each: each.p)
    p = min(1.0, least.p * len(found))
    return Search(least.name, p, least.hits, least.claimed, least.base)


def cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(a, t) cosines of the rows that are asked (a, q) and of the candidates (t, q), each set standardised by itself.

    Nothing but these rows may enter: the mean of a whole release holds those whom the asked rows are not to show.
    """
    left, right = (
        torch.nn.functional.normalize((rows - rows.mean(dim=0)) / rows.std(dim=0, correction=0).clamp_min(TINY), dim=1)
        for rows in (a, b)
    )
    return left @ right.T
