"""Checks of a data set: counts, checksums, duplicates, official parts.

Nearly identical images are one picture cut, scaled or compressed again, or two of one person in one moment. If a set
names no people, they would count as different people: on two sides of a split, and as independent cases in every p.
Images are joined if the root mean square of their difference is at most `ALIKE` grey levels of 255 (noise and
compression change so much; another image of the same kind differs more), directly or through others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from bench.contract.source import PARTS, DataError, Scan
from bench.data.prepared import Prepared, changed
from bench.data.subjects import codes

ALIKE = 4.0
"""Steps of 255 by which nearly identical images may differ, root mean square."""
SIDE = 8
"""Images are looked through as thumbnails of so many pixels a side; what is near there is compared whole."""
BUCKET = 2000
"""Images that are compared each with each; larger sets are looked through in parts that overlap."""
BLOCK = 1024
SEARCHED = 20_000
"""Images among which nearly identical ones are looked for; among more it would take minutes."""


def near_identical(images: np.ndarray) -> np.ndarray:
    """Groups (n,) int64 of nearly identical images, -1 for none.

    Thumbnails are never farther apart than images, so that none is missed within a part. Large sets are cut by
    nearness to some of their images; each stands in the two parts that it is nearest to.
    """
    n = len(images)
    thumbs = _thumbnails(images)
    pairs = [_alike(images, thumbs, part) for part in _parts(thumbs)]
    joined = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
    graph = scipy.sparse.coo_array((np.ones(len(joined), dtype=np.int8), (joined[:, 0], joined[:, 1])), shape=(n, n))
    groups = scipy.sparse.csgraph.connected_components(graph, directed=False)[1].astype(np.int64)
    return np.where(np.bincount(groups)[groups] > 1, groups, -1)


def _thumbnails(images: np.ndarray) -> np.ndarray:
    """(n, d) float32: means of cells times sqrt(cell share of image)."""
    n, c, height, width = images.shape
    rows, cols = (np.linspace(0, size, min(SIDE, size) + 1).astype(int) for size in (height, width))
    sizes = np.outer(np.diff(rows), np.diff(cols))
    thumbs = np.empty((n, c, len(rows) - 1, len(cols) - 1), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = images[start : start + BLOCK].astype(np.float32)
        sums = np.add.reduceat(np.add.reduceat(part, rows[:-1], axis=2), cols[:-1], axis=3)
        thumbs[start : start + BLOCK] = sums / np.sqrt(sizes * c * height * width)
    return thumbs.reshape(n, -1)


def _parts(thumbs: np.ndarray) -> list[np.ndarray]:
    n = len(thumbs)
    if n <= BUCKET:
        return [np.arange(n)]
    middles = thumbs[np.linspace(0, n - 1, -(-n // BUCKET)).astype(int)]
    near = np.empty((n, 2), dtype=np.int64)
    for start in range(0, n, BLOCK):
        distance = _squares(thumbs[start : start + BLOCK], middles)
        near[start : start + BLOCK] = np.argpartition(distance, 1, axis=1)[:, :2]
    return [np.flatnonzero((near == number).any(axis=1)) for number in range(len(middles))]


def _alike(images: np.ndarray, thumbs: np.ndarray, part: np.ndarray) -> np.ndarray:
    """(p, 2) int64: pairs of one part that are nearly the same."""
    pairs = []
    for start in range(0, len(part), BLOCK):
        rows = part[start : start + BLOCK]
        first, second = np.nonzero(_squares(thumbs[rows], thumbs[part]) <= (ALIKE + 0.1) ** 2)
        later = part[second] > rows[first]
        for a, b in zip(rows[first[later]], part[second[later]], strict=True):
            if np.square(images[a].astype(np.float32) - images[b]).mean() <= ALIKE**2:
                pairs.append((a, b))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances of rows (n, d) and (m, d)."""
    squares: np.ndarray = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return squares


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Args:
        state: "ok"; "differs" from the set as published; "note" for a property of the set; "unknown" if
            there is nothing to compare with.
        text: The finding in words.
    """

    state: Literal["ok", "differs", "note", "unknown"]
    text: str


def check_current(scan: Scan, prepared: Prepared) -> None:
    """Raise DataError if rows or files have changed since they were decoded."""
    rows, total = len(scan.labels), len(prepared) + prepared.skipped
    since = changed(prepared.folder, scan.paths or ())
    if since or rows != total:
        change = f"{since} of {total} files may have changed since they were prepared"
        if rows != total:
            change = f"{rows} rows are here, {total} were prepared"
        raise DataError(f"{prepared.name}: {change}. Delete {prepared.folder} and prepare again.")


def checks(scan: Scan, prepared: Prepared) -> Iterator[Check]:
    """Check a set that was found, decoded and compared with its fingerprint.

    Args:
        scan: As found.
        prepared: The same, prepared.
    """
    yield Check("ok", f"layout: {len(scan.labels)} rows, {len(scan.findings)} findings or classes")
    for value in scan.official:
        yield Check("ok" if value.agrees else "differs", f"published: {value}")
    if not scan.official:
        yield Check("unknown", "published: no counts or checksums are known")
    files = f"files: {prepared.skipped} of {len(scan.labels)} cannot be decoded"
    unseen = " (damage inside a JPEG is not seen: it has no checksum)" if scan.paths else ""
    yield Check("note" if prepared.skipped else "ok", files + unseen)
    yield from _duplicates(prepared)
    yield from _sides(prepared)
    yield Check("ok", f"prepared rows match the fingerprint {prepared.fingerprint}")


def _duplicates(prepared: Prepared) -> Iterator[Check]:
    contents = codes([row.tobytes() for row in prepared.digests])
    yield _groups(prepared, contents, "identical")
    if prepared.samples.ndim != 4:
        return
    if len(prepared) > SEARCHED:
        yield Check("unknown", f"nearly identical images are looked for among {SEARCHED} at most")
        return
    near = near_identical(prepared.samples)
    numbers = codes(np.where(near < 0, np.arange(len(near)) + len(near), near).tolist())
    if (numbers == contents).all() and len(np.unique(contents)) < len(contents):
        yield Check("ok", "duplicates: no others are nearly identical")
    else:
        yield _groups(prepared, numbers, "nearly identical")


def _groups(prepared: Prepared, numbers: np.ndarray, how: str) -> Check:
    """Count rows that share numbers, and groups with different labels or people."""
    member, sizes = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
    groups = [np.flatnonzero(member == number) for number in np.flatnonzero(sizes > 1)]
    if not groups:
        return Check("ok", f"duplicates: no two rows are {how}")
    marks = np.nan_to_num(prepared.labels, nan=-1)
    torn = sum(len(np.unique(marks[rows], axis=0)) > 1 for rows in groups)
    strangers = 0 if prepared.subjects is None else sum(len(np.unique(prepared.subjects[rows])) > 1 for rows in groups)
    people = "" if prepared.subjects is None else f", {strangers} groups show different people"
    return Check(
        "note",
        f"duplicates: {sum(map(len, groups))} rows are {how} to others, in {len(groups)} groups; {torn} groups have "
        f"different labels{people}",
    )


def _sides(prepared: Prepared) -> Iterator[Check]:
    if prepared.parts is None:
        yield Check("unknown", "official parts: the set has none, or they are not known here")
        return
    counts = ", ".join(f"{name} {int((prepared.parts == number).sum())}" for number, name in enumerate(PARTS))
    yield Check("ok", f"official parts: {counts}")
    kinds = {"identical images": codes([row.tobytes() for row in prepared.digests])}
    if prepared.subjects is not None:
        kinds = {"people": prepared.subjects, **kinds}
    else:
        yield Check("unknown", "official parts: the people are not known")
    for what, numbers in kinds.items():
        known = prepared.parts >= 0
        pairs = np.unique(np.stack([numbers[known], prepared.parts[known]]), axis=1)
        both = int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
        yield Check("note" if both else "ok", f"official parts: {both} {what} stand in several")
