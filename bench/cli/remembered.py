"""What verbs say of plug-ins, kept between calls: to find it out takes the import of all of them, and seconds.

It is kept under a digest of what it depends on: the code, templates and tables of this project and of every other
package that registers plug-ins (by size and time of each file), what is installed (the folders of packages), Python,
and this user's own cache folder. Anything of it changed, and it is found out anew; nothing kept is ever executed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from bench.cli.user_cache import user_cache
from bench.plugins.groups import GROUPS
from bench.results.atomic_file import make_folder, write_atomically
from bench.shadowing import HOME, PACKAGES

FOLDER = "plug-ins"
PUBLISHED = HOME / "leaderboard" / "published"  # records, which pages of others' results do not read
MOST = 64  # answers that are kept; the oldest go


def remembered(question: str, answer: Callable[[], str]) -> str:
    """The text kept for a question, or the answer, which is then kept. A cache that cannot be used is done without."""
    found = recalled(question)
    if found is None:
        keep(question, found := answer())
    return found


def recalled(question: str) -> str | None:
    """The text kept for a question; None where there is none, or what it depends on has changed."""
    with suppress(OSError, ValueError):
        kept = json.loads(_place(question).read_bytes())
        if isinstance(kept, dict) and kept.get("question") == question and isinstance(kept.get("answer"), str):
            return str(kept["answer"])
    return None


def keep(question: str, answer: str) -> None:
    """Keep the text for a question, if the cache can be used."""
    place = _place(question)
    with suppress(OSError):
        make_folder(place.parent, mode=0o700)
        write_atomically(place, json.dumps({"question": question, "answer": answer}).encode(), mode=0o600)
        for old in sorted(place.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)[:-MOST]:
            old.unlink()


def files_below(root: Path, but: Sequence[Path] = ()) -> Iterator[Path]:
    """Every file below a folder, in order, but for those in the folders `but` and what Python compiled."""
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(each for each in inner if each != "__pycache__" and Path(folder, each) not in but)
        yield from (Path(folder, name) for name in sorted(names))


def _place(question: str) -> Path:
    return user_cache() / FOLDER / f"{hashlib.sha256((_state() + question).encode()).hexdigest()[:32]}.json"


@cache
def _state() -> str:
    """A digest of all that decides what plug-ins are and say."""
    points = sorted(
        (group, point.name, point.value, *((point.dist.name, point.dist.version) if point.dist else ("", "")))
        for group in GROUPS
        for point in entry_points(group=f"bench.{group}")
    )
    whole = repr((sys.version, sys.prefix, sys.path, points, sorted(set(_stamps({point[2] for point in points})))))
    return hashlib.sha256(whole.encode()).hexdigest()


def _stamps(targets: set[str]) -> Iterator[tuple[str, int, int]]:
    """Every file of the packages that the targets lie in, and the folders that packages are installed to."""
    tops = {target.partition(":")[0].partition(".")[0] for target in targets}
    roots = {HOME / name for name in PACKAGES}
    for name in tops - set(PACKAGES):
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(name)
            if spec is not None:
                roots |= {Path(place) for place in spec.submodule_search_locations or ()}
                roots |= {Path(spec.origin)} if spec.origin and not spec.submodule_search_locations else set()
    for root in roots:
        yield from map(_stamp, files_below(root, but=(PUBLISHED,)) if root.is_dir() else (root,))
    yield from (_stamp(Path(path)) for path in sys.path if path.endswith("-packages"))


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_mtime_ns, found.st_size
