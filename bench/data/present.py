"""Which of the images that a table lists are on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.contract.source import DataError


@dataclass(frozen=True, eq=False)
class Present:
    """Rows whose image is here.

    Args:
        rows: (n,) bool over the listed rows.
        paths: Files of those that are here.
        notes: How many are not; empty where all are.
    """

    rows: np.ndarray
    paths: list[Path]
    notes: tuple[str, ...]


def present(paths: Sequence[Path], *, name: str, where: str, obtain: str) -> Present:
    """The listed files that are here, by the listings of their folders; all those of a folder that may not be read.

    Args:
        paths: As listed, one a row.
        name: The data set, for the message.
        where: Where images are expected, for the message.
        obtain: Where to get them.

    Raises:
        DataError: None of them is.
    """
    known = dict(_listings({path.parent for path in paths}))
    listings = (known[path.parent] for path in paths)
    rows = np.array([names is None or path.name in names for path, names in zip(paths, listings, strict=True)], bool)
    if not rows.any():
        raise DataError(f"{name}: none of the {len(paths)} listed images was found at {where}. {obtain}")
    gone = int((~rows).sum())
    return Present(
        rows,
        [path for path, here in zip(paths, rows, strict=True) if here],
        (f"{gone} of {len(paths)} listed images are not on this machine",) if gone else (),
    )


def _listings(folders: set[Path]) -> Iterator[tuple[Path, frozenset[str] | None]]:
    """Each folder with the names in it; None where they may not be read, for decoding then says so of each file."""
    for folder in folders:
        try:
            yield folder, frozenset(os.listdir(folder))  # noqa: PTH208
        except PermissionError:
            yield folder, None
        except OSError:
            yield folder, frozenset()


def of_row(words: Sequence[str], rows: np.ndarray) -> list[str]:
    """The words of the rows that are here."""
    return [word for word, here in zip(words, rows, strict=True) if here]


def attributes_of(told: Mapping[str, Sequence[str]], rows: np.ndarray) -> dict[str, list[str]]:
    """The attributes of the rows that are here."""
    return {name: of_row(words, rows) for name, words in told.items()}
