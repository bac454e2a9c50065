"""How far a transfer is, as a bar on a terminal, and what it came to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.transfer.crew import Crew
from bench.transfer.tally import Tally
from bench.transfer.target import Target, TransferError
from bench.wire.text import line

MOST_SHOWN = 20


@contextmanager
def shown(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere; it is told how many are through, and of how many."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda through, total: bar.update(task, completed=through, total=total)


def carried(
    what: str, results: Results, target: Target, jobs: int, work: Callable[[Crew, Callable[[int, int], None]], Tally]
) -> Tally | None:
    """What came of a push or a pull; None where the other end is gone, which is said.

    Raises UsageError where one of the two folders lies in the other.
    """
    if target.inside(results.root):
        raise UsageError(f"{target.place} and {results.root} must be folders apart")
    try:
        with shown(what) as step:
            return work(Crew(jobs, target.stop), step)
    except TransferError as error:
        print(f"bench: {error}; the same command goes on where this one ended", file=sys.stderr)
        return None


def told(tally: Tally, done: str) -> int:
    """Print what a transfer came to; 1 where anything was refused or did not arrive."""
    for name in ("refused", "stays"):
        lines = tally.why(name)
        for each in lines[:MOST_SHOWN]:
            print(f"{name}: {line(each)}", file=sys.stderr)
        if len(lines) > MOST_SHOWN:
            print(f"{name}: ... and {len(lines) - MOST_SHOWN} more reasons", file=sys.stderr)
    for note in tally.notes:
        print(f"note: {line(note)}", file=sys.stderr)
    refused = tally.of("refused")
    print(f"{done}: {tally.told('moved')} ({decimal(tally.size)}); there before: {tally.told('there')}")
    if refused:
        print(f"refused, or not arrived: {tally.told('refused')}; the same command goes on with what is missing")
    return 1 if refused else 0
