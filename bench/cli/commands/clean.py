"""`bench clean`: what can be made again, with sizes; removed with --yes.

Only folders that carry our CACHEDIR.TAG are looked into, and of those only what was made there. Records, pictures,
plans, logs and pages stay.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.filesize import decimal

from bench.cli.options import place
from bench.data.prepared import FILES
from bench.features.feature_space import VECTORS
from bench.plugins.spec import UsageError
from bench.results.build_folder import is_cache
from bench.results.regenerable import Regenerable, of_store, only
from bench.results.results import Results

CORRUPT = re.compile(r".+-[0-9a-f]{16}-corrupt\.txt")
"""Lists of the files that could not be decoded, beside a prepared folder, which may be gone, or was never made."""


def main(options: argparse.Namespace) -> int:
    """List, and with --yes remove; 1 where something is in use."""
    where = place(options)
    found: list[Regenerable] = []
    if options.only != "cache":
        found += _artefacts(where.results)
    if options.only != "artefacts":
        found += _cache(where.cache)
    sizes, counts = Counter[Path](), Counter[Path]()
    for each in found:
        sizes[each.path.parent] += each.size
        counts[each.path.parent] += 1
    for folder, size in sizes.items():
        print(f"{decimal(size):>10}  {counts[folder]} in {folder}")
    total = decimal(sum(sizes.values()))
    if not options.yes:
        print(f"{total} can be made again; nothing was removed: --yes removes it")
        return 0
    busy = [each for each in found if not each.remove()]
    for each in busy:
        print(f"in use, and left: {each.path}", file=sys.stderr)
    print(f"{decimal(sum(each.size for each in found) - sum(each.size for each in busy))} removed")
    return 1 if busy else 0


def _artefacts(results: Results) -> Iterator[Regenerable]:
    if not results.begun:
        raise UsageError(f"expected a results folder, got {results.root}: it has neither cells nor artefacts")
    return of_store(results.store.root)


def _cache(cache: Path) -> Iterator[Regenerable]:
    yield from of_store(cache / "features")
    for folder, names in ((cache, FILES), (cache / "features" / "vectors", VECTORS)):
        if is_cache(folder):
            for path in sorted(folder.iterdir()):
                # Not the empty ones: nothing says that those were made here.
                if path.is_dir() and not path.is_symlink() and (made := only(path, names)) and made.size:
                    yield Regenerable(path, made.size, path.with_suffix(".lock") if names is VECTORS else None)
                elif names is FILES and CORRUPT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                    yield Regenerable(path, path.stat().st_size)
