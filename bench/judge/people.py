"""Groups of rows that belong together: one person's, or equal to the last bit. The judge deals whole groups."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from bench.seeds import generator


def groups(samples: Tensor, subjects: Tensor | None) -> Tensor:
    """(n,) int64 group numbers of rows (n, ...)."""
    n = len(samples)
    rows = samples.flatten(1).contiguous().cpu().numpy()
    _, same = np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))), return_inverse=True)
    same = same.reshape(-1)
    if subjects is None:
        return torch.from_numpy(same.astype(np.int64))
    _, person = np.unique(subjects.cpu().numpy(), return_inverse=True)
    shape = (n, n)
    links = sum(_chain(number, shape) for number in (same, person.reshape(-1)))
    return torch.from_numpy(connected_components(links, directed=False)[1].astype(np.int64))


def _chain(number: np.ndarray, shape: tuple[int, int]) -> coo_array:
    """Each row joined to the next one of its number."""
    order = np.argsort(number, kind="stable")
    joined = number[order[1:]] == number[order[:-1]]
    return coo_array((np.ones(int(joined.sum())), (order[:-1][joined], order[1:][joined])), shape=shape)


def deal(group: Tensor, parts: int, seed: int) -> Tensor:
    """(n,) int64: a part 0 .. parts - 1 for each row, whole groups at random, of about as many groups each."""
    number = torch.unique(group, return_inverse=True)[1]
    many = int(number.max()) + 1
    part = torch.arange(many) % parts
    return part[torch.randperm(many, generator=generator(seed))][number]
