"""`bench clean`: artefacts and caches that can be made again.

Records, pictures, plans, logs and pages stay.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from rich.filesize import decimal

from bench.api import boards, running
from bench.cli.parameters import RESULTS, ResultsFolder, switch


def clean(
    *,
    results: ResultsFolder = RESULTS,
    only: Annotated[
        Literal["artefacts", "cache"] | None,
        switch("artefacts of the results folder, or the cache of prepared data and features (default: both)"),
    ] = None,
    yes: Annotated[bool, switch("remove them; without it, nothing is removed")] = False,
) -> int:
    """List, and with --yes remove; 1 if something is in use."""
    items = boards.clean(running.open_place(results), only)
    sizes, counts = Counter[Path](), Counter[Path]()
    for item in items:
        sizes[item.path.parent] += item.size
        counts[item.path.parent] += 1
    for folder, size in sizes.items():
        print(f"{decimal(size):>10}  {counts[folder]} in {folder}")
    total = sum(sizes.values())
    if not yes:
        print(f"{decimal(total)} can be made again; nothing was removed: --yes removes it")
        return 0
    busy = [item for item in items if not item.remove()]
    for item in busy:
        print(f"in use, and kept: {item.path}", file=sys.stderr)
    print(f"{decimal(total - sum(item.size for item in busy))} removed")
    return 1 if busy else 0
