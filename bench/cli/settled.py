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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO, cast

from bench.cli.remembered import keep, recalled
from bench.cli.run_arguments import SUITES
from bench.contract.source import DataError, Source
from bench.data.roots import config_path, resolve
from bench.results.shelf import PRIVATE
from bench.sandbox import BWRAP

VARIABLES = (
    "BENCH_DATA", "BENCH_ISOLATION", "CUDA_VISIBLE_DEVICES", "PATH", "TERM", "COLUMNS", "LINES", "NO_COLOR",
    "FORCE_COLOR", "LANG", "LC_ALL",
)  # fmt: skip
FIRST_HAND = ("sign", "secret")
"""Options under which a run reads a key or a secret itself."""


class Stamp(NamedTuple):
    """A data set's files as they were.

    Args:
        name: The entry point of the data set.
        parameters: Of the data set.
        digest: Of what its source says of the files, which may be paths.
    """

    name: str
    parameters: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, name: str, parameters: Mapping[str, Any], said: str) -> Stamp:
        """With what the source says of its files now."""
        return cls(name, parameters, hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest())


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
        stamps: Of every data set with files its entry point, its parameters, and its stamp as the run began.
    """

    lines: Sequence[str]
    printed: str
    records: str
    secret: str
    site: str
    count: int
    stamps: Sequence[Stamp]

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
        found = Settled(**{**told["settled"], "stamps": [Stamp(*each) for each in told["settled"]["stamps"]]})
        if told["rests on"] == _rests_on(found) and _unchanged(found.stamps, resolve(options.data_root or ())):
            return found
    return None


def keep_settled(options: argparse.Namespace, found: Settled) -> None:
    """Keep what a run said in which nothing is left to do."""
    if not _repeatable(options):
        return
    with suppress(ValueError, TypeError, DataError, OSError):  # parameters that are no JSON, folders that change
        told = {"settled": vars(found), "rests on": _rests_on(found)}
        keep(_question(options), json.dumps(told))


class Overheard:
    """Standard output that keeps what is printed within a block.

    Args:
        text: What was printed; None where whoever reads it has gone, so that some of it never was.
    """

    def __init__(self) -> None:
        self.text: str | None = ""
        self._stream = sys.stdout

    def __enter__(self) -> Self:
        sys.stdout = cast(TextIO, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As the stream does."""
        self.text = None if self.text is None else self.text + text
        with self._still_read():
            return self._stream.write(text)

    def flush(self) -> None:
        """As the stream does."""
        with self._still_read():
            self._stream.flush()

    @contextmanager
    def _still_read(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.text = None
            raise


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
        "sandbox": BWRAP,
        "accelerators": sorted(map(str, Path("/dev").glob("nvidia*"))),
    }
    return f"run {json.dumps(told, sort_keys=True)}"


def _unchanged(stamps: Sequence[Stamp], roots: Sequence[Path]) -> bool:
    for stamp in stamps:
        (point,) = entry_points(group="bench.datasets", name=stamp.name)
        source = cast(Source, point.load()(**stamp.parameters))
        if Stamp.of(stamp.name, stamp.parameters, source.stamp(roots)) != stamp:
            return False
    return True


def _rests_on(found: Settled) -> str:
    """A digest of records and pages as they are."""
    seen = hashlib.sha256()
    records, site = Path(found.records), Path(found.site)
    for path in (*_files(records, but=(records / PRIVATE, site)), Path(found.secret)):
        seen.update(f"{path}\0".encode("utf-8", "surrogateescape") + hashlib.sha256(path.read_bytes()).digest())
    for path in _files(site):
        status = path.stat()
        seen.update(f"{path}|{status.st_size}|{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return seen.hexdigest()


def _files(root: Path, but: Sequence[Path] = ()) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(each for each in inner if Path(folder, each) not in but)
        yield from (Path(folder, name) for name in sorted(names))
