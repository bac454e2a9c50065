"""Shadow releases: Eve, the attacker, runs the scheme on half pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from bench.randomness import Secret
from bench.rows.grouping import label_classes
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release, Scheme


def shadow_releases(scheme: Scheme, pool: Dataset, count: int, seed: int) -> Iterator[tuple[torch.Tensor, Release]]:
    """`count` (even) releases under keys of their own, and memberships (n,) bool.

    Halves come in pairs that share no row, so that every row is in exactly half of the releases; classes (rows with the
    same labels, withheld labels included) are halved one by one, so that all halves have the pool's proportions.

    Raises:
        NotApplicable: The scheme cannot release a half (a class of too few rows).
        ValueError: An odd count, or a pool of fewer than two rows.
    """
    if count < 2 or count % 2:
        raise ValueError(f"halves come in pairs: count must be even and at least 2, got {count}")
    if len(pool) < 2:
        raise ValueError(f"a pool needs at least 2 rows to be halved, got {len(pool)}")
    pool = replace(pool, subjects=None)
    classes, _ = label_classes(pool.labels, len(pool))
    for number in range(0, count, 2):
        order = torch.randperm(len(pool), generator=generator(derive(seed, "half", number)))
        dealt = order[classes.cpu()[order].argsort(stable=True)]
        for side in (0, 1):
            rows = dealt[side::2].sort().values
            key = scheme.sample_key(Secret.of_seed(seed, "key", number + side))
            inside = torch.zeros(len(pool), dtype=torch.bool)
            inside[rows] = True
            try:
                release = key.release(pool.take(rows.to(pool.samples.device)))
            except NotApplicable as reason:
                raise NotApplicable(f"half of Eve's {len(pool)} rows cannot be released: {reason}") from reason
            yield inside, release
