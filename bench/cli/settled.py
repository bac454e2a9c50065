"""A run in which nothing is left to do, told from what it said before: to find that out anew takes the import of torch.

What a run says whose records are all there is kept, with a digest of what it rests on: the options and the files that
they name, the code and what is installed (`bench.cli.remembered`), every byte of the records, the pages as they were
written, raw data by their source's stamp, the terminal, and what the machine offers. Where anything of it has changed,
and where code or weights from outside this project take part, the run finds out by itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, cast

from bench.cli.remembered import keep, recalled
from bench.cli.run_arguments import SUITES
from bench.contract.source import DataError
from bench.data.roots import config_path, resolve
from bench.results.shelf import PRIVATE

VARIABLES = (
    "BENCH_DATA", "BENCH_ISOLATION", "CUDA_VISIBLE_DEVICES", "PATH", "TERM", "COLUMNS", "LINES", "NO_COLOR",
    "FORCE_COLOR", "LANG", "LC_ALL",
)  # fmt: skip
FIRST_HAND = ("sign", "secret")
"""Options under which a run reads a key or a secret itself."""


@dataclass(frozen=True)
class Settled:
    """What a run said.

    Args:
        lines: Of the progress, as a run prints them that finds all records.
        printed: The tables and the address of the pages.
        records: The results folder.
        secret: Where its run secret lies.
        site: Where pages lie.
        count: How many records there are.
        sources: Entry point and parameters of every data set with files.
    """

    lines: Sequence[str]
    printed: str
    records: str
    secret: str
    site: str
    count: int
    sources: Sequence[tuple[str, Mapping[str, Any]]]

    def say(self) -> None:
        """Say it again, as a run does that finds all records."""
        for text in self.lines:
            print(text, file=sys.stderr)
        sys.stdout.write(self.printed)
        print(records_at(Path(self.records)))
        print(tally(0, self.count, 0, 0.0))


def records_at(root: Path) -> str:
    """Where the records of a results folder lie, in words."""
    return f"Records: {root / 'cells'}"


def tally(computed: int, there: int, failed: int, seconds: float) -> str:
    """How many records a run has, in words."""
    return f"{computed} computed, {there} already there, {failed} failed; {seconds:.0f} s"


def settled(options: argparse.Namespace) -> Settled | None:
    """What this run said, if nothing that it rests on has changed since; None where the run has to find out."""
    if not _repeatable(options) or (kept := recalled(_question(options))) is None:
        return None
    with suppress(ValueError, TypeError, KeyError, DataError, OSError):
        told = json.loads(kept)
        found = Settled(**told["settled"])
        if told["rests on"] == _rests_on(options, found):
            return found
    return None


def keep_settled(options: argparse.Namespace, found: Settled) -> None:
    """Keep what a run said in which nothing is left to do."""
    if not _repeatable(options):
        return
    with suppress(ValueError, TypeError, DataError, OSError):  # parameters that are no JSON, folders that change
        told = {"settled": vars(found), "rests on": _rests_on(options, found)}
        keep(_question(options), json.dumps(told))


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What is printed to standard output within the block, which gets it as well."""
    said: list[str] = []

    class Overheard:
        def write(self, text: str) -> int:
            said.append(text)
            return stream.write(text)

        def __getattr__(self, name: str) -> object:
            return getattr(stream, name)

    stream = sys.stdout
    with redirect_stdout(cast(IO[str], Overheard())):
        yield said


def _repeatable(options: argparse.Namespace) -> bool:
    asked = options.verb != "run" or options.dry_run or options.executor != "local" or options.overwrite == "always"
    return not asked and not any(getattr(options, name) for name in FIRST_HAND)


def _question(options: argparse.Namespace) -> str:
    """What a run was asked for, where and by whom it is read."""
    files = [SUITES / f"{options.suite}.yaml"] if options.suite else []
    files += [options.config] if options.config else []
    files.append(config_path())
    told = {
        "options": {name: str(value) for name, value in vars(options).items()},
        "files": [path.read_text(encoding="utf-8") if path.is_file() else None for path in files],
        "folder": str(Path.cwd()),
        "variables": {name: os.environ.get(name) for name in VARIABLES},
        "terminal": [(stream.isatty(), stream.encoding) for stream in (sys.stdout, sys.stderr)],
        "columns": os.get_terminal_size().columns if sys.stdout.isatty() else None,
        "cores": os.cpu_count(),
        "accelerators": sorted(map(str, Path("/dev").glob("nvidia*"))),
    }
    return f"run {json.dumps(told, sort_keys=True)}"


def _rests_on(options: argparse.Namespace, found: Settled) -> str:
    """A digest of records, pages and raw data as they are."""
    seen = hashlib.sha256()
    records, site = Path(found.records), Path(found.site)
    for path in (*_files(records, but=(records / PRIVATE, site)), Path(found.secret)):
        seen.update(f"{path}\0".encode("utf-8", "surrogateescape") + hashlib.sha256(path.read_bytes()).digest())
    for path in _files(site):
        status = path.stat()
        seen.update(f"{path}|{status.st_size}|{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    roots = resolve(options.data_root or ())
    for name, parameters in found.sources:
        (point,) = entry_points(group="bench.datasets", name=name)
        seen.update(hashlib.sha256(point.load()(**parameters).stamp(roots).encode("utf-8", "surrogateescape")).digest())
    return seen.hexdigest()


def _files(root: Path, but: Sequence[Path] = ()) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(each for each in inner if Path(folder, each) not in but)
        yield from (Path(folder, name) for name in sorted(names))
