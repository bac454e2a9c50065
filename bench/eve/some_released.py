"""A release of some candidates under a key of Eve, the attacker."""

from __future__ import annotations

import torch

from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme


def some_released(
    scheme: Scheme, candidates: Dataset, chosen: torch.Tensor, seed: int, *names: str | int
) -> tuple[Dataset, Release]:
    """The rows and their release, doubled until the method accepts so few.

    A method that groups rows (k-same, by class) may refuse a part of what it releases as a whole. That is no reason
    why an attack on the whole should not apply.

    Args:
        scheme: The scheme; a key of it is drawn.
        candidates: All rows that there are (n).
        chosen: (m,) int64, distinct, on their device: the rows to begin with. Others follow at random.
        seed, names: They draw the key and the rows that follow.

    Raises:
        NotApplicable: The method does not release all candidates either.
    """
    key = scheme.sample_key(Secret.of_seed(seed, *names))
    while True:
        rows = candidates.take(chosen)
        try:
            return rows, key.release(rows)
        except NotApplicable:
            if len(chosen) == len(candidates):
                raise
        left = torch.ones(len(candidates), dtype=torch.bool, device=chosen.device)
        left[chosen] = False
        others = left.nonzero()[:, 0]
        order = torch.randperm(len(others), generator=generator(derive(seed, *names, "others"))).to(others.device)
        chosen = torch.cat((chosen, others[order[: len(chosen)]]))
