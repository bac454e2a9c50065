"""Bytes and times of the files that a data set was prepared from, by which a later change is seen without decoding."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

STATES = "files"
"""The name of the array in the folder of a prepared data set."""


def states(paths: Sequence[Path | str]) -> np.ndarray:
    """(n, 2) int64: bytes of each file and the time of its last change of any kind in nanoseconds; 0 for none."""
    found = np.zeros((len(paths), 2), dtype=np.int64)
    for row, path in enumerate(paths):
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:  # missing, or a link to nowhere or in circles
            continue
        found[row] = status.st_size, status.st_ctime_ns
    return found


def save_states(folder: Path, paths: Sequence[Path]) -> None:
    """Keep how the files are now, all of a scan in its order, in the folder of a prepared data set."""
    np.save(folder / f"{STATES}.npy", states(paths))


def changed(folder: Path, paths: Sequence[Path]) -> int:
    """How many of the files have changed since `save_states`, or are more or fewer than then."""
    before, now = np.load(folder / f"{STATES}.npy"), states(paths)
    both = min(len(before), len(now))
    return int((now[:both] != before[:both]).any(axis=1).sum()) + abs(len(now) - len(before))
