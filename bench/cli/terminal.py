"""Printing: results on standard output, messages on standard error.

>>> "ReID AUC ↓ 0.5 – 1 é".encode("ascii", SPELLED)
b'ReID AUC v 0.5 - 1 ?'
"""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from bench.progress import forward_progress

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console

Hear: TypeAlias = "Callable[[str, int, int], None]"
"""Hears the name of a stage, and how many of how many steps of it are done (0 of 0 if unknown)."""

STAGE = 80  # characters
SPELLED = "spelled"
"""An error handler of `str.encode`: a letter that looks alike or a question mark, one for one, so that columns hold."""
_LIKE = dict(zip("↑↓≥≤–…·ε²×±", "^v><-..e2x~", strict=True))


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LIKE.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error(SPELLED, _spell)


def let_go() -> None:
    """Drop later standard output, without a complaint at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def to_stdout() -> Console:
    """A console for results, on standard output."""
    from rich.console import Console

    class Results(Console):
        """A console whose reader may close the pipe, as `head` does."""

        def on_broken_pipe(self) -> None:
            """See `Console`, which would end the process with code 1."""
            self.quiet = True
            let_go()

    width = None if sys.stdout.isatty() else 160
    return Results(highlight=False, markup=False, width=width)  # brackets are those of specs


def print_json(**content: JsonValue) -> None:
    """Print a command's result as one JSON object, with its keys sorted.

    Numbers that are not finite become null, for JSON has none of them.
    """
    print(json.dumps(_finite(content), sort_keys=True, indent=2, ensure_ascii=False))


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


FIRST_SECONDS, EVERY_SECONDS = 5.0, 15.0


@contextmanager
def waiting(stage: str, *, messages: bool = True, console: Console | None = None) -> Iterator[Hear]:
    """Show the stage of long work on standard error.

    A bar on a terminal, which goes at the end; elsewhere a line after 5 s, and one every 15 s from then on.

    Args:
        stage: The first stage, until the block says another.
        messages: Show the stages that the block reports through `bench.progress`, too.
        console: The console to write to; None for standard error.

    Yields:
        What the block tells its stages.
    """
    from rich.console import Console

    console = console or Console(stderr=True, highlight=False)
    with _bar(stage, console) if console.is_terminal else _lines(stage, console) as hear:
        listening: AbstractContextManager[None] = forward_progress(hear) if messages else nullcontext()
        with listening:
            yield hear


def unheard(stage: str, done: int, total: int) -> None:
    """Hear a stage and show nothing: a debugger has the terminal."""


@contextmanager
def _bar(stage: str, console: Console) -> Iterator[Hear]:
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from bench.wire.text import line

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # What the command prints meanwhile goes where it would go without the bar.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bars:
        bar = bars.add_task(escape(stage), total=None)

        def hear(name: str, done: int, total: int) -> None:
            bars.update(bar, description=escape(line(name, STAGE)), completed=done, total=total or None)

        yield hear


@contextmanager
def _lines(stage: str, console: Console) -> Iterator[Hear]:
    from bench.wire.text import line

    latest, started, ended = (stage, 0, 0), time.monotonic(), threading.Event()

    def hear(name: str, done: int, total: int) -> None:
        nonlocal latest
        latest = (name, done, total)

    def say() -> None:
        pause = FIRST_SECONDS
        while not ended.wait(pause):
            name, done, total = latest
            count = f" {done}/{total}" if total else ""
            console.print(f"  {line(name, STAGE)}{count}, {time.monotonic() - started:.0f} s so far", markup=False)
            pause = EVERY_SECONDS

    speaker = threading.Thread(target=say, daemon=True)
    speaker.start()
    try:
        yield hear
    finally:
        ended.set()
        speaker.join()


def to_stderr(lines: Iterable[str], most: int) -> None:
    """Print at most so many lines, made plain, to standard error."""
    from bench.wire.text import plain

    texts = list(lines)
    for text in texts[:most]:
        print(plain(text), file=sys.stderr)
    if len(texts) > most:
        print(f"... and {len(texts) - most} more", file=sys.stderr)
