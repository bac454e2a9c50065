"""Two data sets of one kind as a single data set.

A release together with what else its generator gives.

Originals: the raw row behind each released row.

Which rows are one and the same.

Whether two computations gave the same numbers but for rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from bench.memory.rows import Rows, in_blocks
from bench.seeds import derive
from bench.types import Dataset, NotApplicable, Release


def joined(first: Dataset, second: Dataset) -> Dataset:
    """The rows of both, those of the first before those of the second.

    Labels and people are there only where both have them. Name, findings and the rest are those of the first data set:
    the label columns of the second must be the same.
    """
    labels = subjects = None
    if first.labels is not None and second.labels is not None:
        labels = torch.cat((first.labels, second.labels))
    if first.subjects is not None and second.subjects is not None:
        subjects = torch.cat((first.subjects, second.subjects))
    samples = torch.cat((first.samples, second.samples))
    return replace(first, samples=samples, labels=labels, subjects=subjects)


def drawn(sealed: Release, draws: int, seed: int) -> Release:
    """The release with `draws` times as many rows from its generator added, if it has a generator."""
    if sealed.generator is None or not draws:
        return sealed
    more = sealed.generator.sample(draws * len(sealed), derive(seed, "draws"))
    labels = None
    if sealed.labels is not None and more.labels is not None:
        labels = torch.cat((sealed.labels, more.labels))
    return Release(torch.cat((sealed.samples, more.samples)), labels, None)


def originals(links: torch.Tensor | None, m: int, method: str) -> torch.Tensor:
    """The raw row (m,) int64 that each of m released rows was made from.

    Args:
        links: (p, 2) int64: raw row, released row; or None.
        m: Released rows.
        method: Its name, for the message.

    Raises:
        NotApplicable: Some released row has no raw row behind it, or several.
    """
    if links is None or len(links) != m or len(torch.unique(links[:, 1])) != m:
        raise NotApplicable(f"{method} does not release one row a raw row, so nobody can say what a row should show")
    return links[torch.argsort(links[:, 1]), 0]


def in_order(release: Release, links: torch.Tensor | None, data: Dataset, method: str) -> tuple[Dataset, torch.Tensor]:
    """Released rows in the order of their raw rows, with the labels and people of these; and which raw rows they are.

    Args:
        release: Of `data`, in any order.
        links, method: As in `originals`.
        data: The raw rows.

    Raises:
        NotApplicable: As in `originals`.
    """
    rows, order = originals(links, len(release), method).sort()
    return replace(data.take(rows), samples=release.samples[order]), rows


def distinct(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of rows (u,) int64 of which no two are equal, and of each row (n, d) which of those it equals, (n,).

    In no order that says anything. A row with NaN equals no other, -0 equals 0. Rows that are read where they are used
    are read once, and compared by digests of 16 bytes.

    >>> first, number = distinct(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> len(first), number[0] == number[2] != number[1]
    (2, tensor(True))
    """
    n = len(rows)
    if not isinstance(rows, Rows):
        number = torch.unique(rows, dim=0, return_inverse=True)[1]
    else:
        seen: dict[bytes, int] = {}
        found = []
        for place, part in in_blocks(rows):
            plain = (part + 0.0).cpu().contiguous()  # -0 becomes 0
            odd = plain.isnan().any(dim=1).tolist()
            for at, row in enumerate(plain.numpy()):
                name = str(place.start + at).encode() if odd[at] else hashlib.blake2b(row.data, digest_size=16).digest()
                found.append(seen.setdefault(name, len(seen)))
        number = torch.tensor(found, dtype=torch.int64, device=rows.device)
    first = torch.empty(int(number.max()) + 1, dtype=torch.int64, device=number.device)
    first[number] = torch.arange(n, device=number.device)
    return first, number


CLOSE = 1e-4  # of a number, or of the usual size: what sums in another order may change
USUAL = 0.9
ROWS = 256  # compared at a time
LEAST, SIZES = -1074, 2099  # exponents of float64


def same_but_rounding(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether tensors agree in shape, dtype and NaN, and in numbers but for rounding; integers exactly.

    None agrees with None alone.

    A number may be off by 1e-4 of itself and of the size that nine tenths of the numbers of `a` (without zeros) do not
    exceed. Against the largest of all, a single huge number would let all others differ.
    """
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    pairs = list(zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True))
    off = CLOSE * _usual([ours for ours, _ in pairs])
    return all(torch.allclose(ours, theirs, rtol=CLOSE, atol=off, equal_nan=True) for ours, theirs in pairs)


def _usual(parts: Sequence[torch.Tensor]) -> float:
    """The power of two that `USUAL` of the finite numbers but zeros do not exceed; 0 where there are none."""
    counts = torch.zeros(SIZES, dtype=torch.int64)
    for part in parts:
        numbers = part[part.isfinite() & (part != 0)].double()
        counts += torch.bincount(torch.frexp(numbers).exponent.long() - LEAST, minlength=SIZES).cpu()
    if not counts.any():
        return 0.0
    at = int((counts.cumsum(0) >= USUAL * counts.sum()).nonzero()[0, 0])
    return math.ldexp(1.0, min(at + LEAST, 1023))
