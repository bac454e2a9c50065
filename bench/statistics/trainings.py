"""The attacker's trainings as a source of variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.types import Replicates


def by_training(replicates: Replicates, trainings: Sequence[int]) -> Replicates:
    """Replicates with one entry a training, the mean of its keys.

    Figures of one training share its seed: K keys that T trainings attack are T clusters. The intervals and limits of
    `bench.statistics.confidence_intervals` and `bench.statistics.upper_limits` then hold over people, keys and
    trainings, with T - 1 degrees of freedom. One training gives one entry: what trainings vary is then unknown.

    Args:
        replicates: By key.
        trainings: (K,) the number of the training that attacked each key; equally many keys each.

    Raises:
        ValueError: Another number of keys, or trainings with unequal numbers of keys, whose mean is another figure.

    >>> by_training(Replicates([1.0, 3.0, 5.0, 7.0], [[1.0, 2.0]] * 4, 9), [0, 0, 1, 1]).by_key
    [2.0, 6.0]
    """
    numbers, counts = np.unique(np.asarray(trainings), return_counts=True)
    if len(trainings) != len(replicates.by_key) or len(set(counts.tolist())) != 1:
        raise ValueError(
            f"expected a training for each of {len(replicates.by_key)} keys and as many keys for each training, got "
            f"{len(trainings)} trainings' numbers, {counts.tolist()} keys each"
        )
    own = np.asarray(trainings)[None] == numbers[:, None]
    share = own / own.sum(axis=1, keepdims=True)
    figures, resampled = np.asarray(replicates.by_key), np.asarray(replicates.resampled)
    return replace(replicates, by_key=(share @ figures).tolist(), resampled=(share @ resampled).tolist())
