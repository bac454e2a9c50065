from __future__ import annotations

import numpy as np
import pytest

from bench.statistics.confidence_intervals import around, components
from bench.statistics.trainings import by_training
from bench.types import Replicates


@pytest.mark.parametrize("trainings", [[0, 0, 1], [0, 0, 0, 1], [0, 1]])
def test_trainings_that_share_the_keys_unequally_are_refused(trainings: list[int]) -> None:
    with pytest.raises(ValueError, match="as many keys for each training"):
        by_training(Replicates([0.5] * 4, [[0.4, 0.6]] * 4, 9), trainings)


def test_intervals_over_trainings_hold_the_truth_and_those_over_keys_do_not() -> None:
    """Five trainings of three keys each: the training moves a figure as much as 40 people do."""
    random, people, held = np.random.default_rng(0), 40, {"keys": 0, "trainings": 0}
    trainings, repeats = [number for number in range(5) for _ in range(3)], 300
    for _ in range(repeats):
        own, skill = random.standard_normal(people), random.standard_normal(5)[trainings]
        table = 0.2 * own + skill[:, None] + random.standard_normal((15, people))
        times = random.multinomial(people, np.full(people, 1 / people), size=60)
        found = Replicates(table.mean(axis=1).tolist(), (table @ times.T / people).tolist(), people - 1)
        for name, figures in (("keys", found), ("trainings", by_training(found, trainings))):
            low, high = around(float(np.mean(figures.by_key)), components(figures).width(), figures.scale)
            held[name] += low <= 0 <= high
    assert held["trainings"] / repeats == pytest.approx(0.95, abs=0.05)  # four deviations of 300 repeats
    assert held["keys"] / repeats < 0.85
