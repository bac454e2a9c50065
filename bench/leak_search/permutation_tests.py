"""Permutation tests of releases, of sets of rows, and of labels.

`sharing` tests a release without links. Some parts hold people of the release, the others as many rows of people who
were never released. If no person stands in a released row, it resembles what comes of the former no more than what
comes of the latter. Parts are exchanged as wholes: what comes of one may differ from all others by a training of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.leak_search.search import EQUAL
from bench.seeds import derive, generator

DRAWS = 9999
INSIDE, OUTSIDE = 12, 8
"""Parts of either kind: there are 125,970 ways to choose them, so that p can get far below what counts as rare."""
DIRECTIONS = 8
AT_ONCE = 500
RIDGE = 0.1


@dataclass(frozen=True)
class Sharing:
    """Its p, and the share of released rows beyond chance.

    p: of as many released rows nearest to a part with people of the release.
    """

    p: float
    excess: float


def sharing(
    released: torch.Tensor, inside: Sequence[torch.Tensor], outside: Sequence[torch.Tensor], seed: int
) -> Sharing:
    """Test released rows (m, ...) against those (q, ...) of parts."""
    random = generator(derive(seed, "ties"))
    fewest = min(map(len, (*inside, *outside)))
    rows = torch.cat([part[torch.randperm(len(part), generator=random)[:fewest]].flatten(1)
                      for part in (*inside, *outside)])  # fmt: skip
    part = torch.arange(len(inside) + len(outside)).repeat_interleave(fewest)
    order = torch.randperm(len(rows), generator=random)
    left, right = (
        torch.nn.functional.normalize(vectors - vectors.mean(dim=0), dim=1)
        for vectors in (released.flatten(1), rows[order])
    )
    near = part[order][(left @ right.T).mul(EQUAL).round().argmax(dim=1)]
    counts = torch.bincount(near, minlength=len(inside) + len(outside)).double()
    own = float(counts[: len(inside)].sum())
    chosen = torch.rand(DRAWS, len(counts), generator=random).argsort(dim=1)[:, : len(inside)]
    p = (1 + int((counts[chosen].sum(dim=1) >= own).sum())) / (1 + DRAWS)
    base = len(inside) / len(counts)
    covered = min(1.0, fewest * len(inside) / len(released))  # only so many can find themselves
    return Sharing(p, max(0.0, min(1.0, (own / len(released) - base) / (1 - base) / covered)))


def mixing(a: torch.Tensor, b: torch.Tensor, seed: int) -> tuple[float, float, float]:
    """Share of rows nearest to the other set; its two p.

    The first p is of a share so high under chance, the second of one so low.

    Chance exchanges rows between the sets. Two draws from one distribution mix by chance; sets that hold the same rows
    pair off (high), sets from two distributions keep apart (low). Of rows equally near one is chosen at random.

    Args:
        a, b: (n, d) and (m, d) float32.
        seed: For exchanges, and for rows equally near.
    """
    random = generator(seed)
    rows, first = torch.cat((a, b)), torch.arange(len(a) + len(b)) < len(a)
    order = torch.randperm(len(rows), generator=random)
    rows, first = rows[order], first[order]
    rows = rows - rows.mean(dim=0)
    distance = torch.cdist(rows, rows)
    distance.fill_diagonal_(torch.inf)
    near = distance.argmin(dim=1)
    own = int((first != first[near]).sum())
    draws = torch.stack([_crossing(first[torch.randperm(len(rows), generator=random)], near) for _ in range(DRAWS)])
    high, low = (int(part.sum()) for part in (draws >= own, draws <= own))
    return own / len(rows), (1 + high) / (1 + DRAWS), (1 + low) / (1 + DRAWS)


def _crossing(first: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    return (first != first[near]).sum()


def label_traces(raw: torch.Tensor, labels: torch.Tensor, released: torch.Tensor, seed: int) -> float:
    """p of a prediction of raw rows from released labels.

    A ridge regression from the digits of half of the released labels to the raw rows is tried on the other half; chance
    exchanges raw rows of equal raw labels, so that p is exact. 1 where labels are the same for all of them.

    Args:
        raw: (p, d) float32, the raw row behind each released row.
        labels: (p, k) its labels.
        released: (p, k') float32 released labels.
        seed: For halves and exchanges.
    """
    bits = torch.nan_to_num(labels, nan=-1.0)
    _, kind = torch.unique(bits, dim=0, return_inverse=True)
    digits = _within(_digits(released), kind)
    digits = digits[:, digits.abs().amax(dim=0) > 0]
    if not digits.shape[1]:
        return 1.0
    digits = digits / digits.std(dim=0)
    random = generator(seed)
    half = torch.randperm(len(raw), generator=random)
    train, test = half[::2], half[1::2]
    rows = _within(raw, kind)
    _, deviations, directions = torch.linalg.svd(rows[train], full_matrices=False)
    target = rows @ (directions[:DIRECTIONS].T / deviations[:DIRECTIONS].clamp_min(1e-12))
    inner = digits[train].T @ digits[train]
    inner.diagonal().add_(RIDGE * inner.diagonal().mean())
    guess = digits[test] @ torch.linalg.solve(inner, digits[train].T @ target[train])
    test_kind = kind[test]
    own, hits = float((guess * target[test]).sum()), 0
    order = test_kind.argsort(stable=True)
    for start in range(0, DRAWS, AT_ONCE):
        many = min(AT_ONCE, DRAWS - start)
        keys = (
            torch.rand(many, len(test), generator=random) + test_kind[order]
        )  # sorted, they are exchanged within a kind
        places = order[keys.argsort(dim=1)]
        sums = torch.einsum("ik,bik->b", guess[order], target[test][places])
        hits += int((sums >= own).sum())
    return (1 + hits) / (1 + DRAWS)


def _digits(labels: torch.Tensor) -> torch.Tensor:
    """Values and bytes (p, 5 k) float32 of labels."""
    pattern = labels.contiguous().view(torch.int32)
    bytes_ = [((pattern >> shift) & 255).float() for shift in (0, 8, 16, 24)]
    return torch.cat([torch.nan_to_num(labels, nan=-1.0), *bytes_], dim=1)


def _within(rows: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Rows less the mean of their kind."""
    many = int(kind.max()) + 1
    sums = torch.zeros(many, rows.shape[1]).index_add_(0, kind, rows)
    counts = torch.bincount(kind, minlength=many)[:, None]
    left = rows - (sums / counts)[kind]
    return torch.where(left.abs() > 1e-6 * rows.abs().amax().clamp_min(1e-30), left, 0.0)
