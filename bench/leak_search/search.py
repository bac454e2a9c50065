"""Searches for raw rows in released rows declared not to show them.

Some people were in the release (`inside`), others of the same kind were not; the assignment is random. The released
rows that are asked are declared to show neither. If that holds, a released row resembles the former no more than the
latter, and each candidate that it resembles most is inside as often as a random candidate. Candidates count once a
group (a person, or equal rows), so that the number inside among the k strongest is hypergeometric, exactly, for any
resemblance.

The people are dealt to parts: the first `FOLDS` are private, the others were never released. Released rows that are
declared to show no person of a fold are asked whether they resemble people of the fold more than people never released:
as the rows are, by a map that the declared links teach, and in what the same key makes of a few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import scipy
import torch

from bench.leak_search.appearances import appearances
from bench.rows.bit_planes import planes
from bench.seeds import generator

COMPARED = 1 << 29
"""Bytes of rows up to which they are sorted themselves, which takes several times as many; by the data alone, so that a
judge's draws do not depend on a machine's memory."""
ROWS, DIGEST = 256, 32

STRONGEST = (1 / 16, 1 / 4, 1.0)
"""Shares of the claimed groups, the surest first, that are looked at: all, and few where only few rows are shown."""
FEWEST = 3
TINY = 1e-6
EXACT = 1e-4  # resemblances are cosines: rows nearer than this are the same row
EQUAL = 1e5  # resemblances that differ by less than a part in so many are equal
FOLDS = 3
FEWEST_PAIRS = 8
WHOLE = 0.01
"""Releases are not compared if those of people never released differ as wholes at this level."""
DIRECTIONS = 24
RIDGE = 0.1


def groups(samples: torch.Tensor, subjects: torch.Tensor | None) -> torch.Tensor:
    """(n,) int64 group numbers of rows (n, ...)."""
    n, same = len(samples), _equal(samples)
    if subjects is None:
        return torch.from_numpy(same.astype(np.int64))
    _, person = np.unique(subjects.cpu().numpy(), return_inverse=True)
    shape = (n, n)
    links = sum(_chain(number, shape) for number in (same, person.reshape(-1)))
    return torch.from_numpy(scipy.sparse.csgraph.connected_components(links, directed=False)[1].astype(np.int64))


def _equal(samples: torch.Tensor) -> np.ndarray:
    """Numbers (n,), the same for rows equal to the last bit."""
    if samples.numel() * samples.element_size() <= COMPARED:
        rows = samples.flatten(1).contiguous().cpu().numpy()
        kind = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
        return np.unique(rows.view(kind), return_inverse=True)[1].reshape(-1)
    digests = [
        blake2b(row.data, digest_size=DIGEST).digest()
        for part in torch.split(samples.flatten(1), ROWS)
        for row in part[:].contiguous().cpu().numpy()
    ]
    codes = np.frombuffer(b"".join(digests), dtype=np.dtype((np.void, DIGEST)))
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def _chain(number: np.ndarray, shape: tuple[int, int]) -> scipy.sparse.coo_array:
    """Each row joined to the next one of its number."""
    order = np.argsort(number, kind="stable")
    joined = number[order[1:]] == number[order[:-1]]
    return scipy.sparse.coo_array((np.ones(int(joined.sum())), (order[:-1][joined], order[1:][joined])), shape=shape)


def deal(group: torch.Tensor, parts: int, seed: int) -> torch.Tensor:
    """Part numbers (n,) int64 of rows: whole groups at random."""
    number = torch.unique(group, return_inverse=True)[1]
    many = int(number.max()) + 1
    part = torch.arange(many) % parts
    return part[torch.randperm(many, generator=generator(seed))][number]


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
    """The result of one search.

    Args:
        name: Of the search, for the record.
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
        """Share in [0, 1] of the claimed groups beyond chance."""
        return max(0.0, (self.hits / self.claimed - self.base) / (1 - self.base)) if self.claimed else 0.0


def search(name: str, table: torch.Tensor, among: Candidates) -> Search | None:
    """One search; None without rows to ask or groups to find.

    Args:
        name: For the record.
        table: (a, t) cosines of the released rows that are asked and of the candidates.
        among: The candidates.
    """
    sides = torch.unique(torch.stack((among.group, among.inside.long()), dim=1), dim=0)
    total, inside = len(sides), int(sides[:, 1].sum())
    if not len(table) or not 0 < inside < total:
        return None
    shuffled = torch.randperm(len(among.columns), generator=generator(0))  # equal resemblances favour no group
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
    tails = [(float(scipy.stats.hypergeom.sf(sum(ranked[:k]) - 1, total, inside, k)), k) for k in tries]
    p, k = min(tails)
    return Search(name, min(1.0, p * len(tries)), sum(ranked[:k]), k, inside / total)


def strongest(searches: Sequence[Search]) -> Search | None:
    """The search of least p, times their number (Bonferroni); None without searches."""
    if not searches:
        return None
    least = min(searches, key=lambda result: result.p)
    p = min(1.0, least.p * len(searches))
    return Search(least.name, p, least.hits, least.claimed, least.base)


def cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Cosines (a, t) of asked rows (a, q) and candidates (t, q).

    Each set is standardised by itself. No other rows may enter: the mean of a whole release holds people whom the
    asked rows must not show.
    """
    left, right = (
        torch.nn.functional.normalize((rows - rows.mean(dim=0)) / rows.std(dim=0, correction=0).clamp_min(TINY), dim=1)
        for rows in (a, b)
    )
    return left @ right.T


@dataclass(frozen=True, eq=False)
class Lineup:
    """The people that a search may find.

    Args:
        raw: (t, ...) float32 rows, private ones first.
        group: (t,) int64, see `groups`.
        part: (t,) int64: below FOLDS private, FOLDS and above never released.
    """

    raw: torch.Tensor
    group: torch.Tensor
    part: torch.Tensor

    def fold(self, number: int) -> Candidates:
        """The people of a fold among those who were never released."""
        columns = ((self.part == number) | (self.part >= FOLDS)).nonzero()[:, 0]
        return Candidates(columns, self.group[columns], self.part[columns] == number)

    @property
    def all(self) -> Candidates:
        """All private people among those who were never released."""
        return Candidates(torch.arange(len(self.part)), self.group, self.part < FOLDS)


def in_raw_rows(released: torch.Tensor, declared: torch.Tensor | None, lineup: Lineup) -> list[Search]:
    """Searches among the raw rows themselves, one an appearance and fold.

    Args:
        released: (m, ...) float32.
        declared: (m, FOLDS) bool: the folds a released row is declared to show; None if no row is declared to show any.
        lineup: The people that may be found.
    """
    searches = []
    for name, raw, rows in appearances(lineup.raw, released):
        if declared is None:
            among = lineup.all
            searches.append(search(name, cosine(rows, raw[among.columns]), among))
        else:
            searches += _by_fold(name, rows, raw, declared, lineup)
    return [result for result in searches if result is not None]


def by_what_links_teach(
    released: torch.Tensor, declared: torch.Tensor, pairs: torch.Tensor, lineup: Lineup, half: torch.Tensor
) -> list[Search]:
    """Searches by a map learned from half of the links.

    Args:
        released, declared, lineup: As in `in_raw_rows`.
        pairs: (p, 2) int64 declared links between rows of the line-up and released rows.
        half: (p,) bool: those to learn from.
    """
    searches = []
    raw = lineup.raw.flatten(1)
    learned_from = torch.zeros(len(released), dtype=torch.bool)
    learned_from[pairs[half, 1]] = True
    for name, rows in planes(released):
        if name not in ("values", "last byte"):
            continue
        for fold in range(FOLDS):
            known = pairs[half & (lineup.part[pairs[:, 0]] != fold) & ~declared[pairs[:, 1], fold]]
            if len(known) < FEWEST_PAIRS:
                continue
            among = lineup.fold(fold)
            guess = recovered(rows.flatten(1), raw, known, raw[among.columns])
            asked = ~declared[:, fold] & ~learned_from
            searches.append(search(f"learned from half of the links, {name}", guess[asked], among))
    return [result for result in searches if result is not None]


def in_releases(released: torch.Tensor, declared: torch.Tensor, again: Lineup) -> tuple[list[Search], float]:
    """Searches among each part's own release; p of whole differences.

    The same key released each part by itself. A release may differ as a whole from another (statistics of a batch):
    then the people in it are not exchangeable, which shows between two parts that were never released with the others.

    Args:
        released, declared: As in `in_raw_rows`.
        again: Released rows by part, with the group of the raw row that each is declared to show.
    """
    searches: list[Search | None] = []
    wholes: list[Search | None] = []
    for name, ordered in (("released again", False), ("released again, values in order", True)):
        left, right = (rows.flatten(1) for rows in (released, again.raw))
        if ordered:  # patches may be shuffled
            left, right = (rows.sort(dim=1).values for rows in (left, right))
        searches += _by_fold(name, left, right, declared, again)
        columns = (again.part >= FOLDS).nonzero()[:, 0]
        others = cosine(left, right[columns])
        for one in (FOLDS, FOLDS + 1):
            pair = Candidates(columns, again.group[columns], again.part[columns] == one)
            wholes.append(search(name, others, pair))
    whole = strongest([result for result in wholes if result is not None])
    return [result for result in searches if result is not None], 1.0 if whole is None else whole.p


def _by_fold(
    name: str, released: torch.Tensor, rows: torch.Tensor, declared: torch.Tensor, lineup: Lineup
) -> list[Search | None]:
    searches: list[Search | None] = []
    for fold in range(FOLDS):
        among, asked = lineup.fold(fold), released[~declared[:, fold]]
        searches.append(search(name, cosine(asked, rows[among.columns]), among) if len(asked) else None)
    return searches


def shown(links: torch.Tensor, part: torch.Tensor, released: torch.Tensor) -> torch.Tensor:
    """Folds (m, FOLDS) bool that each released row is declared to show.

    Released rows (m, ...) that are equal to the last bit show whom any of them is declared to show: under k-Same every
    person has a row of her own, the mean of her cluster, and stands in the rows of all its members.
    """
    declared = torch.zeros(len(released), FOLDS, dtype=torch.bool)
    fold = part[links[:, 0]]
    declared[links[:, 1], fold] = True
    equal = groups(released, None)
    shared = torch.zeros(int(equal.max()) + 1, FOLDS, dtype=torch.int64).index_add_(0, equal, declared.long())
    return shared[equal] > 0


def recovered(released: torch.Tensor, raw: torch.Tensor, pairs: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """Cosines (m, t) of candidates and of ridge predictions from released rows.

    Args:
        released: (m, q) float32.
        raw: (n, d) float32.
        pairs: (p, 2) int64 raw and released row, to learn from.
        candidates: (t, d) float32.
    """
    middle = raw.mean(dim=0)
    known = raw[pairs[:, 0]] - middle
    _, deviations, directions = torch.linalg.svd(known, full_matrices=False)
    rank = min(DIRECTIONS, int((deviations > 1e-6 * deviations[0].clamp_min(1e-30)).sum()))
    directions = directions[:rank].T / deviations[:rank] * len(known) ** 0.5
    rows = released - released[pairs[:, 1]].mean(dim=0)
    inner = rows[pairs[:, 1]] @ rows[pairs[:, 1]].T
    inner.diagonal().add_(RIDGE * inner.diagonal().mean().clamp_min(1e-30))
    solved = torch.linalg.solve(inner, known @ directions)
    guess = rows @ (rows[pairs[:, 1]].T @ solved)
    return (
        torch.nn.functional.normalize(guess, dim=1)
        @ torch.nn.functional.normalize((candidates - middle) @ directions, dim=1).T
    )
