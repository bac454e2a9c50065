"""The verdict *leaks* finds more than the rule of earlier versions, at its level (a short run of the campaign)."""

from __future__ import annotations

import sys
from pathlib import Path

from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1]))
from campaigns.verdict_power import share


def test_cells_without_a_leak_are_said_to_leak_no_more_often_than_promised() -> None:
    cells = 300
    alarms = share(0.5, 0, 5, cells, earlier=False)
    assert binomtest(round(alarms * cells), cells, 0.05, alternative="greater").pvalue > 0.01


def test_a_small_leak_that_the_earlier_rule_missed_is_found() -> None:
    assert share(0.53, 1, 5, 60, earlier=False) > 0.8 > share(0.53, 1, 5, 10, earlier=True)
