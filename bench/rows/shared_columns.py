"""Columns of released rows that hold a column of raw rows.

A released column is compared with all raw columns by what no order of rows changes. Four kinds of agreement count:
- "order": the pattern of ties among the sorted numbers is the same, from either end: any rising or falling function of
  a raw column keeps it. Patterns of less than `BITS` bits agree by chance, and do not count.
- "counts": the numbers' counts are the same: any renaming of the numbers keeps them, such as a substitution cipher or a
  mask that all rows share. Numbers that occur equally often stay one level.
- "affine": the sorted numbers of columns without ties are the same after standardisation, up to their sign.
- "values": most numbers of the released column are numbers of that raw column, as often; rows may be missing or hidden.
A released column that fits several raw columns fits none, unless the one in its own place is among them.

Sorting and hashing: 4,096 by 4,096 columns of 600 rows take about a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

BITS = 48.0
EXACT = 1e-5  # of a column's deviation, besides the rounding of float32
SKETCH = 16
MOST = 0.5  # of a column's numbers that must be those of the raw column
LEVELS = 1024
GROUPS, NEAREST = 16, 8
APART = 0.5  # the best raw column misses at most this share of what the next one misses
NEARLY = 0.02  # missed by a column in its own place, if others miss as little
TOGETHER = 1 << 24  # numbers that are sorted at a time
ABSENT = -1


@dataclass(frozen=True, eq=False)
class SharedColumn:
    """One raw column in a released one.

    Args:
        raw, released: Their numbers.
        raw_level: (n,) int64, the level of each raw number.
        released_level: (m,) int64, equal where the numbers agree; `ABSENT` for numbers that the raw column lacks.
        bits: Entropy of the raw column's levels.
        kind: "order", "counts", "affine" or "values".
    """

    raw: int
    released: int
    raw_level: torch.Tensor
    released_level: torch.Tensor
    bits: float
    kind: str


def shared_columns(raw: torch.Tensor, released: torch.Tensor, most: int | None = None) -> list[SharedColumn]:
    """Released columns that hold a raw column, those with most bits first.

    Args:
        raw: (n, d) numbers of any kind, on the CPU.
        released: (m, q), their rows in any order, and other rows possibly.
        most: As many at most; None for all.
    """
    a, b = raw.numpy(), released.numpy()
    found = _by_pattern(a, b) if len(a) == len(b) else {}
    for column, match in _by_values(a, b, set(found)).items():
        found.setdefault(column, match)
    bits = {
        column: _entropy(_counted(a[:, match]) if kind == "counts" else a[:, match])
        for column, (match, kind) in found.items()
    }
    chosen = sorted(found, key=lambda column: (-bits[column], column))[:most]
    return [
        _shared(a, b, found[column][0], column, found[column][1], bits[column]) for column in chosen if bits[column]
    ]


def _by_pattern(a: np.ndarray, b: np.ndarray) -> dict[int, tuple[int, str]]:
    """Raw column and kind ("order", "-order", "counts", "affine", "-affine") by released column."""
    ties, counts, plain = dict[bytes, list[int]](), dict[bytes, list[int]](), list[int]()
    for column, pattern, levels in _patterns(a):
        if levels == len(a):
            plain.append(column)
        elif _pattern_bits(len(a), levels) >= BITS:
            ties.setdefault(np.packbits(pattern).tobytes(), []).append(column)
            counts.setdefault(_profile(pattern), []).append(column)
    found: dict[int, tuple[int, str]] = {}
    distinct: list[int] = []
    for column, pattern, levels in _patterns(b):
        if levels == len(b):
            distinct.append(column)
            continue
        for kind, shown in (("order", pattern), ("-order", pattern[::-1])):
            match = _only(ties.get(np.packbits(shown).tobytes(), []), column)
            if match is not None and column not in found:
                found[column] = match, kind
        match = _only(counts.get(_profile(pattern), []), column)
        if match is not None:
            found.setdefault(column, (match, "counts"))
    if plain and distinct:
        found |= _by_standard(a, b, plain, distinct)
    return found


def _only(matches: list[int], column: int) -> int | None:
    if len(matches) == 1:
        return matches[0]
    return column if column in matches else None


def _profile(pattern: np.ndarray) -> bytes:
    """The sorted lengths of the runs of ties."""
    ends = np.flatnonzero(np.concatenate(([True], pattern, [True])))
    return np.sort(np.diff(ends)).tobytes()


def _counted(column: np.ndarray) -> np.ndarray:
    """The number of times that each number stands in its column."""
    _, level, counts = np.unique(column, return_inverse=True, return_counts=True)
    return counts[level]


def _pattern_bits(rows: int, levels: int) -> float:
    ways = math.lgamma(rows) - math.lgamma(levels) - math.lgamma(rows - levels + 1)
    return ways / math.log(2)


def _patterns(table: np.ndarray) -> Iterator[tuple[int, np.ndarray, int]]:
    """Column, rises (n - 1,) bool of its sorted numbers, and levels."""
    for start in range(0, table.shape[1], size := max(1, TOGETHER // max(1, len(table)))):
        part = np.sort(table[:, start : start + size].T, axis=1)
        rises = part[:, 1:] != part[:, :-1]
        levels = rises.sum(axis=1) + 1
        for offset, (pattern, count) in enumerate(zip(rises, levels.tolist(), strict=True)):
            yield start + offset, pattern, count


def _by_standard(a: np.ndarray, b: np.ndarray, plain: list[int], distinct: list[int]) -> dict[int, tuple[int, str]]:
    found: dict[int, tuple[int, str]] = {}
    places = np.linspace(0, len(a) - 1, SKETCH).round().astype(int)
    ours, _ = _standard(a[:, plain])
    known = torch.from_numpy(ours[:, places])
    for start in range(0, len(distinct), size := max(1, TOGETHER // max(1, len(b)))):
        some = distinct[start : start + size]
        theirs, rounding = _standard(b[:, some])
        for kind, shown in (("affine", theirs), ("-affine", -theirs[:, ::-1])):
            sketch = torch.from_numpy(np.ascontiguousarray(shown[:, places]))
            nearest = torch.cdist(sketch, known).argmin(dim=1).numpy()
            apart = np.abs(shown - ours[nearest]).max(axis=1)
            for offset in np.flatnonzero(apart <= EXACT + rounding).tolist():
                found.setdefault(some[offset], (plain[int(nearest[offset])], kind))
    return found


def _standard(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted standardised columns (q, n) float64, and their float32 rounding."""
    rows = np.sort(table.T.astype(np.float64), axis=1)
    size = np.abs(rows).max(axis=1)
    rows -= rows.mean(axis=1, keepdims=True)
    deviation = np.maximum(rows.std(axis=1), 1e-300)
    return rows / deviation[:, None], 4 * np.finfo(np.float32).eps * size / deviation


def _by_values(a: np.ndarray, b: np.ndarray, known: set[int]) -> dict[int, tuple[int, str]]:
    """Raw columns by common numbers, for released columns not yet known."""
    values, spread = np.unique(a, return_inverse=True)
    place = np.searchsorted(values, b).clip(max=len(values) - 1)
    held = values[place] == b
    asked = [column for column in np.flatnonzero(held.mean(axis=0) >= MOST).tolist() if column not in known]
    if not asked or len(values) < 2:
        return {}
    if len(values) > LEVELS:
        return _by_votes(spread.reshape(a.shape), len(values), place, held, asked)
    fewest = min(len(a), len(b))
    # Levels in a few groups miss no more than levels themselves, and choose the raw columns to compare.
    groups = torch.nn.functional.one_hot(torch.from_numpy(np.random.default_rng(0).permutation(len(values))) % GROUPS)
    ours = torch.from_numpy(_counts(spread.reshape(a.shape), None, len(values)))
    few = ours @ groups.float()
    found: dict[int, tuple[int, str]] = {}
    for start in range(0, len(asked), size := max(1, TOGETHER // max(len(values), a.shape[1]))):
        some = asked[start : start + size]
        theirs = torch.from_numpy(_counts(place[:, some], held[:, some], len(values)))
        near = torch.cdist(theirs @ groups.float(), few, p=1).topk(min(NEAREST, len(few)), dim=1, largest=False)
        for column, count, matches in zip(some, theirs, near.indices, strict=True):
            if column < len(few) and column not in matches:
                matches = torch.cat((matches, torch.tensor([column])))
            missed = 1 - torch.minimum(ours[matches], count).sum(dim=1) / fewest
            least, *rest = missed.sort().values.tolist()
            match, alone = int(matches[missed.argmin()]), not rest or least < APART * rest[0]
            if least <= NEARLY and column in matches and float(missed[matches == column]) <= least:
                match, alone = column, True
            if least <= 1 - MOST and alone:
                found[column] = match, "values"
    return found


def _by_votes(
    spread: np.ndarray, levels: int, place: np.ndarray, held: np.ndarray, asked: list[int]
) -> dict[int, tuple[int, str]]:
    """The raw column that most numbers of a released column come from."""
    home = np.full(levels, ABSENT)
    counts = np.bincount(spread.ravel(), minlength=levels)
    home[spread.ravel()] = np.broadcast_to(np.arange(spread.shape[1]), spread.shape).ravel()
    home[counts > 1] = ABSENT
    found: dict[int, tuple[int, str]] = {}
    for column in asked:
        votes = home[place[held[:, column], column]]
        votes = votes[votes != ABSENT]
        if len(votes) >= MOST * len(place):
            match = int(np.bincount(votes).argmax())
            if (votes == match).mean() > MOST:
                found[column] = match, "values"
    return found


def _counts(codes: np.ndarray, held: np.ndarray | None, levels: int) -> np.ndarray:
    """(q, levels) float32: how often each level is in each column."""
    shifted = codes + np.arange(codes.shape[1]) * levels
    chosen = shifted if held is None else shifted[held]
    return np.bincount(chosen.ravel(), minlength=codes.shape[1] * levels).reshape(-1, levels).astype(np.float32)


def _entropy(column: np.ndarray) -> float:
    share = np.unique(column, return_counts=True)[1] / len(column)
    return float(-(share * np.log2(share)).sum())


def _shared(a: np.ndarray, b: np.ndarray, match: int, column: int, kind: str, bits: float) -> SharedColumn:
    values, ours = np.unique(a[:, match], return_inverse=True)
    if kind == "counts":
        ours, theirs = _counted(a[:, match]), _counted(b[:, column])
    elif kind == "values":
        place = np.searchsorted(values, b[:, column]).clip(max=len(values) - 1)
        theirs = np.where(values[place] == b[:, column], place, ABSENT)
    else:
        theirs = np.unique(b[:, column], return_inverse=True)[1]
        theirs = len(values) - 1 - theirs if kind.startswith("-") else theirs
    first, second = (
        torch.from_numpy(np.ascontiguousarray(each.reshape(-1).astype(np.int64))) for each in (ours, theirs)
    )
    return SharedColumn(match, column, first, second, bits, kind.removeprefix("-"))
