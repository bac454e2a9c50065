"""False alarms and power of the verdict *leaks*, by simulated figures, beside the rule of earlier versions.

`python tests/campaigns/verdict_power.py [--cells 400] [--results FOLDER]` draws ReID AUCs of 12 attacks on 600 rows.
Under a key an area is nearly normal with deviation 1 / sqrt(12 rows), and attacks have half of their variance in
common. One attack, or three, see a leak. The earlier rule took, of each attack, a two-sided p of 14 exchanges a key,
corrected for 12 attacks x 8 figures at .001. With `--results`, the stored exchanges of real records take the place of
the true links, one after another.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.results.records import Record
from bench.results.results import Results
from bench.statistics.pair_statistics import permutation_p
from leaderboard.bounds import joint_tails, primary

ROWS, ATTACKS, SETS, ALIKE = 600, 12, 1023, 0.5
EARLIER_SETS, EARLIER_TRIES, EARLIER_LEVEL = 14, 96, 0.001
LEAKS, KEYS = (0.5, 0.52, 0.53, 0.55), (5, 33, 100)


def drawn(random: np.random.Generator, shape: tuple[int, ...], keys: int) -> np.ndarray:
    """(attacks, *shape) chance figures of a mean over keys."""
    shared, own = random.standard_normal(shape), random.standard_normal((ATTACKS, *shape))
    spread = 1 / math.sqrt(12 * ROWS * keys)
    found: np.ndarray = 0.5 + spread * (math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own)
    return found


def leaks(figures: np.ndarray) -> bool:
    """The joint test of (attacks, 1 + sets) figures, the true links first."""
    tails = np.stack([len(row) - np.searchsorted(np.sort(row), row) for row in figures])
    return int(joint_tails(tails)[0]) / figures.shape[1] < 0.05


def leaked(own: np.ndarray, exchanged: np.ndarray) -> bool:
    """The earlier rule, of figures by attack and key, and by attack, key and set."""
    for figures, others in zip(own, exchanged, strict=True):
        p = 2 * permutation_p(figures.tolist(), others.tolist(), better="lower", seed=0)
        if -math.expm1(EARLIER_TRIES * math.log1p(-min(p, 1 - 1e-9))) < EARLIER_LEVEL:
            return True
    return False


def share(leak: float, seeing: int, keys: int, cells: int, *, earlier: bool) -> float:
    """Share of cells that are said to leak."""
    random = np.random.default_rng([int(1000 * leak), seeing, keys])
    found = 0
    for _ in range(cells):
        if earlier:
            figures = drawn(random, (keys, 1 + EARLIER_SETS), 1)
            figures[:seeing, :, 0] += leak - 0.5
            found += leaked(figures[:, :, 0], figures[:, :, 1:])
        else:
            figures = drawn(random, (1 + SETS,), keys)
            figures[:seeing, 0] += leak - 0.5
            found += leaks(figures)
    return found / cells


def real_alarms(folder: Path) -> Sequence[tuple[str, int, float]]:
    """By cell: attacks with the same exchanges, and the share of exchanges that would be said to leak."""
    cells: dict[tuple[str, str], list[Sequence[int]]] = {}
    for _, record in Results(folder).records():
        figure = primary(record) if isinstance(record, Record) else None
        if figure is not None and figure[1].exchanges is not None:
            exchanges = figure[1].exchanges.read()
            assert isinstance(record, Record)
            cells.setdefault((record.cell, exchanges.people), []).append(exchanges.tails)
    alarms = []
    for (cell, _), tails in sorted(cells.items()):
        table = np.array(tails, dtype=np.int64)
        alarms.append((cell, len(table), float((joint_tails(table) < 0.05 * table.shape[1]).mean())))
    return alarms


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args(arguments)
    print("leak  seen by  keys  earlier rule  this rule  (share of cells said to leak)")
    for leak in LEAKS:
        for seeing in (1, 3) if leak > 0.5 else (0,):
            for keys in KEYS:
                before = share(leak, seeing, keys, max(20, options.cells // 10), earlier=True)
                now = share(leak, seeing, keys, options.cells, earlier=False)
                print(f"{leak:.2f}  {seeing:7}  {keys:4}  {before:12.3f}  {now:9.3f}", flush=True)
    for cell, attacks, alarms in real_alarms(options.results) if options.results else ():
        print(f"{cell}: {attacks} attacks, {alarms:.3f} of exchanges said to leak")


if __name__ == "__main__":
    main()
