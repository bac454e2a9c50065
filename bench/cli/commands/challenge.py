"""`bench challenge make | score`: a sealed challenge, and its entries."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le

from bench.cli.parameters import HOW, ROWS, WHAT, WHERE, Format, completer, switch
from bench.cli.terminal import print_json, to_stdout, waiting
from bench.wire.text import shown

DAYS = 90
METHODS = ("mosaic", "dp-simple", "etc-blocks", "dauntless", "neuracrypt", "syfer-random")
Count = Annotated[int, Ge(2), Le(10_000)]


def make(
    *,
    method: Annotated[
        tuple[str, ...],
        switch(
            f"a method that releases a row for each image (repeatable; default: {', '.join(METHODS)})",
            metavar="SPEC",
            group=WHAT,
            completer=completer("methods"),
        ),
    ] = METHODS,
    dataset: Annotated[
        str, switch("a generator of people", metavar="NAME", group=WHAT, show_default=True)
    ] = "synth-cxr",
    preset: Annotated[
        str, switch("sizes of the methods", metavar="NAME", group=WHAT, show_default=True)
    ] = "first-look",
    rows: Annotated[Count, switch("people of each release", metavar="N", group=ROWS, show_default=True)] = 80,
    known: Annotated[int, Ge(1), switch("pairs that are given", metavar="N", group=ROWS, show_default=True)] = 20,
    films: Annotated[Count, switch("films to be encoded", metavar="N", group=ROWS, show_default=True)] = 40,
    size: Annotated[
        int, Ge(32), Le(512), switch("pixels of a side", metavar="PIXELS", group=ROWS, show_default=True)
    ] = 64,
    closes: Annotated[
        date | None,
        switch(
            f"the day (UTC) from which full scores are given (default: in {DAYS} days)", metavar="YYYY-MM-DD", group=HOW
        ),
    ] = None,
    entries: Annotated[
        int, Ge(0), switch("most entries that get bands before the end", metavar="N", group=HOW, show_default=True)
    ] = 20,
    out: Annotated[Path, switch("a new folder, to publish", metavar="DIR", group=WHERE)],
    sealed: Annotated[
        Path, switch("a new folder for answers and keys, to keep until the end", metavar="DIR", group=WHERE)
    ],
) -> int:
    """Write a challenge, and print what its organiser commits to."""
    from bench.exchange import challenge
    from bench.plugins.configured import configure
    from bench.randomness import Secret

    today = datetime.now(UTC).date()
    order = challenge.Order(
        [configure("methods", spec, preset) for spec in method], out, sealed, closes or today + timedelta(days=DAYS),
        dataset, size, preset, rows, known, films, entries,
    )  # fmt: skip
    with waiting("draw people") as hear:
        made = challenge.make(order, Secret.fresh(), hear)
    print(
        f"Publish {shown(out)}: {len(made.about.schemes)} schemes, {made.size / 1e6:.1f} MB; the rules are in README.md"
    )
    print(f"Keep secret {shown(sealed)} until {made.about.closes}, then publish it, too")
    print("Commit to these now, where others see the date:")
    print(f"  SHA-256 of {challenge.ANSWERS}: {made.about.commitment}")
    print(f"  SHA-256 of SHA256SUMS: {made.digest}")
    return 0


def score(
    entry: Annotated[Path, switch("a folder with an entry", metavar="ENTRY")],
    /,
    *,
    sealed: Annotated[Path, switch("the sealed folder of the challenge", metavar="DIR", group=WHERE)],
    final: Annotated[
        bool, switch("end the challenge: score with numbers, by the rows that no earlier score counted", group=HOW)
    ] = False,
    form: Format = "text",
) -> int:
    """Score an entry: bands, and lower bounds after the end."""
    from rich.table import Table

    from bench.exchange import challenge

    found = challenge.score(entry, sealed, final=final)
    if form == "json":
        tasks = [asdict(task) for task in found.tasks]
        print_json(entry=found.digest, left=found.left, tasks=tasks)  # type: ignore[arg-type]
        return 0
    table = Table(box=None, pad_edge=False)
    numbers = ("right", "found at least", "by luck", "similarity (mean film)") if final else ()
    for name in ("scheme", "task", "answered", "band", *numbers):
        table.add_column(name, justify="left" if name in ("scheme", "task", "band") else "right")
    for task in found.tasks:
        words = [task.scheme, task.task, f"{task.answered} of {task.asked}", task.band or "not attempted"]
        if final and task.rows is not None and task.low is not None and task.p is not None:
            alike = "" if task.similarity is None else "{:.2f} ({:.2f})".format(*task.similarity)
            words += (
                [f"{task.right} of {task.rows}", f"{task.low:.1%}", f"{task.p:.2g}", alike] if task.answered else []
            )
        table.add_row(*words)
    to_stdout().print(table)
    print(f"SHA-256 of the entry: {found.digest}")
    if found.left is not None:
        print(
            f"Bands are of a sixth of the rows; numbers follow from {found.about.closes} on (--final)", file=sys.stderr
        )
        print(f"{found.left} more entries are scored before that", file=sys.stderr)
    return 0
