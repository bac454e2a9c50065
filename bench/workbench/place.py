"""Where things lie on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.results.results import Results


@dataclass(frozen=True)
class Place:
    """Where things lie on this machine; no figure depends on it.

    Args:
        results: What runs leave behind.
        cache: Folder of prepared data and extracted features.
        roots: Folders above raw data.
    """

    results: Results
    cache: Path
    roots: tuple[Path, ...]
