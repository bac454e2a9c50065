"""Images that are nearly the same: one picture cut, scaled or compressed again, or two of one person in one moment.

Where a data set names nobody, such images would stand for different people: on two sides of a split, and as independent
cases in every p. Images are joined whose grey values differ by a root mean square of at most `ALIKE` steps of 255:
noise and compression change so much, and another image of the same kind more. What they are joined to is joined too.
"""

from __future__ import annotations

import numpy as np
import scipy

ALIKE = 4.0
"""Steps of 255 by which nearly identical images may differ, root mean square."""
SIDE = 8
"""Images are looked through as thumbnails of so many pixels a side; what is near there is compared whole."""
BUCKET = 2000
"""Images that are compared each with each; larger sets are looked through in parts that overlap."""
BLOCK = 1024


def near_identical(images: np.ndarray) -> np.ndarray:
    """(n,) int64: the number of the group of each image (n, c, h, w) uint8; -1 where it is like no other.

    The root mean square of thumbnails is never above that of the whole images, so that none is missed within a part.
    Large sets are cut by nearness to some of their images; each stands in the two parts that it is nearest to.
    """
    n = len(images)
    thumbs = _thumbnails(images)
    pairs = [_alike(images, thumbs, part) for part in _parts(thumbs)]
    joined = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
    graph = scipy.sparse.coo_array((np.ones(len(joined), dtype=np.int8), (joined[:, 0], joined[:, 1])), shape=(n, n))
    groups = scipy.sparse.csgraph.connected_components(graph, directed=False)[1].astype(np.int64)
    return np.where(np.bincount(groups)[groups] > 1, groups, -1)


def _thumbnails(images: np.ndarray) -> np.ndarray:
    """(n, d) float32: means over cells of about `SIDE` x `SIDE`, times the root of a cell's share of the image."""
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
    found = []
    for start in range(0, len(part), BLOCK):
        rows = part[start : start + BLOCK]
        first, second = np.nonzero(_squares(thumbs[rows], thumbs[part]) <= (ALIKE + 0.1) ** 2)
        later = part[second] > rows[first]
        for a, b in zip(rows[first[later]], part[second[later]], strict=True):
            if np.square(images[a].astype(np.float32) - images[b]).mean() <= ALIKE**2:
                found.append((a, b))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances of rows (n, d) and (m, d)."""
    squares: np.ndarray = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return squares
