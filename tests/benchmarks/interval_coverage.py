"""Coverage and width of 95 % intervals: `python tests/benchmarks/interval_coverage.py [REPEATS [PEOPLE ...]]`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from made.interval_coverage import EFFECT, MOST, PAIRS, Covered, pairs, predictions, simulated

from metrics.utility_auc import UtilityAUC


def main(people: Sequence[int], repeats: int) -> None:
    """Print the table."""
    for module, draws in (("guesswork", "DRAWS"), ("ranks", "DRAWS"), ("ranks", "MEDIAN_DRAWS"), ("pair_roc", "DRAWS")):
        setattr(importlib.import_module(f"metrics.{module}"), draws, 2)  # what chance gives is not looked at
    print("figure, people, strength, effect of keys | coverage and width over ideal for K = 1, 3, 5, 10")
    for n in people:
        for effect in (0.0, EFFECT):
            _print(n, 1.0, effect, simulated([UtilityAUC()], partial(predictions, n, effect), repeats))
        for strength, effect in ((0.0, 0.0), (1.5, 0.0), (1.5, EFFECT), (3.0, 0.0), (3.0, EFFECT)):
            _print(n, strength, effect, simulated(PAIRS, partial(pairs, n, effect, strength), repeats))


def _print(n: int, strength: float, effect: float, found: Mapping[str, Mapping[int, Covered]]) -> None:
    for name, by_keys in found.items():
        cells = "  ".join(f"{one.coverage:.3f} x{one.width:4.2f}" for one in by_keys.values())
        truth = by_keys[MOST].truth
        print(f"{name:15} {n:4} d' {strength:3.1f} {effect:3.1f} | {cells}  (truth {truth:.3f})", flush=True)


if __name__ == "__main__":
    main([int(n) for n in sys.argv[2:]] or [60, 300], int(sys.argv[1]) if len(sys.argv) > 1 else 200)
