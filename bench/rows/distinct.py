"""Which rows are one and the same."""

from __future__ import annotations

import hashlib

import torch

from bench.memory.rows import Rows, in_blocks


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
