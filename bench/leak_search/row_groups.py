"""Groups of rows: one person's, or equal to the last bit."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import scipy
import torch

from bench.seeds import generator

COMPARED = 1 << 29
"""Bytes of rows up to which they are sorted themselves, which takes several times as many; by the data alone, so that a
judge's draws do not depend on a machine's memory."""
ROWS, DIGEST = 256, 32


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
    """Numbers (n,), the same for rows equal to the last bit.

    Rows of more than `COMPARED` bytes are compared by digest.
    """
    if samples.numel() * samples.element_size() <= COMPARED:
        rows = samples.flatten(1).contiguous().cpu().numpy()
        kind = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
        return np.unique(rows.view(kind), return_inverse=True)[1].reshape(-1)
    digests = [
        blake2b(row.data, digest_size=DIGEST).digest()
        for part in torch.split(samples.flatten(1), ROWS)
        for row in part[:].contiguous().cpu().numpy()
    ]
    told = np.frombuffer(b"".join(digests), dtype=np.dtype((np.void, DIGEST)))
    return np.unique(told, return_inverse=True)[1].reshape(-1)


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
