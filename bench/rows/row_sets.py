"""Sets of rows: joined, drawn, traced to originals, compared for equality."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from bench.memory.rows import Rows, in_blocks
from bench.seeds import derive
from bench.types import Dataset, NotApplicable, Release


def joined(first: Dataset, second: Dataset) -> Dataset:
    """Rows of both, with labels and subjects if both have them.

    Everything else is that of `first`; the label columns must agree.
    """
    labels = subjects = None
    if first.labels is not None and second.labels is not None:
        labels = torch.cat((first.labels, second.labels))
    if first.subjects is not None and second.subjects is not None:
        subjects = torch.cat((first.subjects, second.subjects))
    samples = torch.cat((first.samples, second.samples))
    return replace(first, samples=samples, labels=labels, subjects=subjects)


def in_columns(data: Dataset, like: Dataset) -> Dataset | None:
    """The rows with the label columns of other rows.

    Without labels if those have none. None if a column is lacking.
    """
    if like.labels is None:
        return replace(data, labels=None, findings=like.findings)
    if data.labels is None or not set(like.findings) <= set(data.findings):
        return None
    columns = [data.findings.index(name) for name in like.findings]
    return replace(data, labels=data.labels[:, columns], findings=like.findings)


def drawn(sealed: Release, draws: int, seed: int) -> Release:
    """The release with `draws` times as many rows of any generator."""
    if sealed.generator is None or not draws:
        return sealed
    more = sealed.generator.sample(draws * len(sealed), derive(seed, "draws"))
    labels = None
    if sealed.labels is not None and more.labels is not None:
        labels = torch.cat((sealed.labels, more.labels))
    return Release(torch.cat((sealed.samples, more.samples)), labels, None)


def renumbered(
    links: torch.Tensor, *, raw: torch.Tensor | None = None, released: torch.Tensor | None = None
) -> torch.Tensor:
    """Links (p, 2) with raw row `raw[i]` and released row `released[j]`.

    Both maps are int64; None leaves that side as it is.

    >>> renumbered(torch.tensor([[0, 1], [1, 0]]), raw=torch.tensor([5, 7])).tolist()
    [[5, 1], [7, 0]]
    """
    sides = [
        side if to is None else to.to(links.device)[side] for side, to in zip(links.T, (raw, released), strict=True)
    ]
    return torch.stack(sides, dim=1)


def originals(links: torch.Tensor | None, m: int, method: str) -> torch.Tensor:
    """The raw row (m,) int64 behind each of m released rows.

    Raises NotApplicable if a released row has no raw row behind it by the `links` (p, 2), or several.
    """
    if links is None or len(links) != m or len(torch.unique(links[:, 1])) != m:
        raise NotApplicable(f"{method} does not release one row per raw row, so a row's original is undefined")
    return links[torch.argsort(links[:, 1]), 0]


def in_order(release: Release, links: torch.Tensor | None, data: Dataset, method: str) -> tuple[Dataset, torch.Tensor]:
    """Released rows in raw-row order with true labels; the raw rows' indices.

    `links` and NotApplicable as in `originals`.
    """
    rows, order = originals(links, len(release), method).sort()
    return replace(data.take(rows), samples=release.samples[order]), rows


def distinct(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Representatives (u,) of distinct rows, and each row's number among them.

    Both int64, in arbitrary order, for rows (n, d). A row with NaN equals no other; -0 equals 0. `Rows` are read once
    and compared by digests of 16 bytes.

    >>> first, number = distinct(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> len(first), number[0] == number[2] != number[1]
    (2, tensor(True))
    """
    n = len(rows)
    if not isinstance(rows, Rows):
        number = torch.unique(rows, dim=0, return_inverse=True)[1]
    else:
        numbers: dict[bytes, int] = {}
        places = []
        for place, part in in_blocks(rows):
            values = (part + 0.0).cpu().contiguous()  # -0 becomes 0
            has_nan = values.isnan().any(dim=1).tolist()
            for offset, row in enumerate(values.numpy()):
                digest = (
                    str(place.start + offset).encode()
                    if has_nan[offset]
                    else hashlib.blake2b(row.data, digest_size=16).digest()
                )
                places.append(numbers.setdefault(digest, len(numbers)))
        number = torch.tensor(places, dtype=torch.int64, device=rows.device)
    first = torch.empty(int(number.max()) + 1, dtype=torch.int64, device=number.device)
    first[number] = torch.arange(n, device=number.device)
    return first, number


def people_and_contents(data: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """Person and content number (n,) int64 of each row, on the CPU.

    Rows of one content count as one person's, too. Without subjects people are contents.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    numbers: dict[bytes, int] = {}
    digests = [
        hashlib.blake2b(row.data, digest_size=16).digest()
        for _, part in in_blocks(data.samples, ROWS)
        for row in (part.flatten(1) + 0.0).cpu().contiguous().numpy()  # -0 becomes 0
    ]
    content = torch.tensor([numbers.setdefault(digest, len(numbers)) for digest in digests], dtype=torch.int64)
    if data.subjects is None:
        return content, content
    named = torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    contents, nodes = int(content.max()) + 1, int(content.max()) + int(named.max()) + 2
    edges = content.numpy(), (named + contents).numpy()
    graph = coo_array((np.ones(len(data), dtype=np.int8), edges), shape=(nodes, nodes))
    return torch.from_numpy(connected_components(graph, directed=False)[1]).long()[content], content


def different_behind(forms: torch.Tensor, *columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Numbers (f,) of different values of each column behind each form.

    Args:
        forms: (p,) int64 from 0, without gaps.
        columns: (p,) int64 each, beside the forms.

    >>> different_behind(torch.tensor([0, 0, 1, 1]), torch.tensor([7, 7, 7, 8]))[0].tolist()
    [1, 2]
    """
    return tuple(torch.bincount(torch.unique(torch.stack((forms, of)), dim=1)[0]) for of in columns)


CLOSE = 1e-4  # relative rounding error of sums in another order
USUAL = 0.9
ROWS = 256  # compared at a time
LEAST, SIZES = -1074, 2099  # exponents of float64


def same_but_rounding(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """True if tensors agree in shape, dtype, NaN, and up to rounding.

    Tolerance: 1e-4 of the number plus 1e-4 of the 90 % quantile of the sizes in `a` without zeros. The maximum
    would let one huge number excuse all others.
    """
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    parts = list(zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True))
    tolerance = CLOSE * _usual([part for part, _ in parts])
    return all(torch.allclose(part, other, rtol=CLOSE, atol=tolerance, equal_nan=True) for part, other in parts)


def _usual(parts: Sequence[torch.Tensor]) -> float:
    """Power of two above `USUAL` of the finite nonzero sizes, or 0."""
    counts = torch.zeros(SIZES, dtype=torch.int64)
    for part in parts:
        numbers = part[part.isfinite() & (part != 0)].double()
        counts += torch.bincount(torch.frexp(numbers).exponent.long() - LEAST, minlength=SIZES).cpu()
    if not counts.any():
        return 0.0
    bin_ = int((counts.cumsum(0) >= USUAL * counts.sum()).nonzero()[0, 0])
    return math.ldexp(1.0, min(bin_ + LEAST, 1023))
