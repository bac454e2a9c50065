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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self, TextIO, cast

from bench.cli.remembered import files_below, keep, recalled
from bench.cli.run_arguments import SUITES
from bench.contract.source import DataError
from bench.data.roots import config_path, resolve
from bench.results.shelf import PRIVATE
from bench.sandbox import why_not
from bench.workbench.cores import cores

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
    with suppress(ValueError, TypeError, KeyError, DataError, OSError):
        question = asked(options)
        kept = None if question is None else recalled(question)
        if kept is None:
            return None
        told = json.loads(kept)
        found = Settled(**told["settled"])
        if told["rests on"] == _rests_on(found, _stamps(options, found)):
            return found
    return None


def keep_settled(question: str, stamps: Iterable[str], found: Settled) -> None:
    """Keep what a run said in which nothing is left to do.

    Args:
        question: What was `asked` as the run began: files may have been written to since.
        stamps: Of its sources, as they were then.
        found: What the run said.
    """
    with suppress(ValueError, TypeError, OSError):  # parameters that are no JSON, folders that change
        keep(question, json.dumps({"settled": vars(found), "rests on": _rests_on(found, stamps)}))


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
    more = options.verb != "run" or options.dry_run or options.executor != "local" or options.overwrite == "always"
    return not more and not any(getattr(options, name) for name in FIRST_HAND)


def asked(options: argparse.Namespace) -> str | None:
    """What a run is asked for, where and by whom it is read; None for a run that does more than find records.

    None, too, where a file that it names cannot be read, which the run itself says.
    """
    if not _repeatable(options):
        return None
    files = [SUITES / f"{options.suite}.yaml"] if options.suite else []
    files += [options.config] if options.config else []
    files.append(config_path())
    try:
        written = [path.read_bytes().hex() if path.is_file() else None for path in files]
    except OSError:
        return None
    told = {
        "options": {name: str(value) for name, value in vars(options).items()},
        "files": written,
        "folder": str(Path.cwd()),
        "variables": {name: os.environ.get(name) for name in VARIABLES},
        "terminal": [(stream.isatty(), stream.encoding) for stream in (sys.stdout, sys.stderr)],
        "columns": os.get_terminal_size().columns if sys.stdout.isatty() else None,
        "cores": cores(),
        "sandbox": why_not(),
        "accelerators": sorted(map(str, Path("/dev").glob("nvidia*"))),
    }
    return f"run {json.dumps(told, sort_keys=True)}"


def _stamps(options: argparse.Namespace, found: Settled) -> Iterator[str]:
    """What tells the raw data apart that are there now. Raises DataError where some are not there."""
    roots = resolve(options.data_root or ())
    for name, parameters in found.sources:
        (point,) = entry_points(group="bench.datasets", name=name)
        yield point.load()(**parameters).stamp(roots)


def _rests_on(found: Settled, stamps: Iterable[str]) -> str:
    """A digest of raw data by their stamps, and of records and pages as they are."""
    seen = hashlib.sha256()
    for stamp in stamps:
        seen.update(hashlib.sha256(stamp.encode("utf-8", "surrogateescape")).digest())
    records, site = Path(found.records), Path(found.site)
    for path in (*files_below(records, but=(records / PRIVATE, site)), Path(found.secret)):
        seen.update(f"{path}\0".encode("utf-8", "surrogateescape") + hashlib.sha256(path.read_bytes()).digest())
    for path in files_below(site):
        status = path.stat()
        seen.update(f"{path}|{status.st_size}|{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return seen.hexdigest()
