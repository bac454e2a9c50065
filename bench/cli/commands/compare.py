"""`bench compare`: methods compared on the same people and keys, two by two or all at once with their ranks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from pydantic import JsonValue
from rich.table import Table

from bench.cli.options import place
from bench.cli.terminal import to_stdout
from bench.plugins.spec import PluginSpec, UsageError, did_you_mean, parse
from bench.results.records import Record
from bench.statistics.confidence_intervals import UNLIKELY
from bench.workbench.choice import collection
from leaderboard.board import Row, rows
from leaderboard.comparison import Compared, Ranked, compared, ranked
from leaderboard.entries import interval, number, short
from leaderboard.names import unusual

Part = tuple[object, ...]
"""Data set, preset, seed, and what else rows share that can be compared."""


def main(options: argparse.Namespace) -> int:
    """Print a table a data set, preset and seed; 1 if nothing could be compared."""
    found = [record for _, record in place(options).results.records() if isinstance(record, Record)]
    board = rows(found)
    if not board:
        raise UsageError("no records to compare: run something first, or name the folder with --results")
    known = sorted({name for row in board for name in row.entries})
    for name in options.metric or ():
        if name not in known:
            raise UsageError(f"no record has a figure called {name!r}; {did_you_mean(name, known)}")
    if len(options.method) not in (0, 2):
        raise UsageError(f"name two methods, or none to compare all: got {len(options.method)}")
    attacks = sorted({name for each in found if each.attack is not None for name in (each.attack.name, each.evaluator)})
    if options.attack and options.attack not in attacks:
        raise UsageError(
            f"no record is of an attack called {options.attack!r}; {did_you_mean(options.attack, attacks)}"
        )
    for name in options.method:
        if not any(_fits(row, parse(name)) for row in board):
            known_rows = ", ".join(dict.fromkeys(row.label for row in board))
            raise UsageError(f"no record speaks of {name!r}; there are {known_rows}")
    parts: dict[Part, list[Row]] = {}
    for row in board:
        parts.setdefault((row.dataset, row.preset, row.seed, *collection(row.choice, row.data)), []).append(row)
    metrics = options.metric or known
    if options.method:
        done = [_two(part, here, options.method, metrics, options.attack) for part, here in parts.items()]
    else:
        if options.attack:
            raise UsageError("--attack goes with two methods: ranks are by the attack that did best on each")
        done = [_all(part, here, metrics) for part, here in parts.items()]
    if not any(done):
        print("nothing could be compared: no two of these have a figure in common on the same data, preset and seed")
    return 0 if any(done) else 1


def _two(part: Part, here: Sequence[Row], names: Sequence[str], metrics: Sequence[str], attack: str | None) -> bool:
    a, b = (_named(name, here) for name in names)
    if a is None or b is None:
        return False
    if a is b:
        raise UsageError(f"{names[0]!r} and {names[1]!r} are one and the same row: name two")
    found = compared(a, b, metrics, attack)
    said = (
        f"First {a.label}, second {b.label}, on the same people, key by key. A difference is the first figure less the "
        "second; of guesses and ranks it is the ratio of geometric means over keys. Intervals of 95 %; p is not "
        "corrected for how many lines there are."
    )
    table = Table(title=_title(part), title_justify="left", caption=said, caption_justify="left")
    for name in ("figure", "attack", "first", "second", "difference", "95 % interval", "p"):
        table.add_column(name, justify="left" if name in ("figure", "attack") else "right", overflow="fold")
    for one in found:
        if one.paired is not None:
            table.add_row(*_line(one))
    if table.row_count:
        to_stdout().print(table)
    if lone := dict.fromkeys(one.column.title for one in found if one.keys == 1):
        print(f"under one key, so that what keys and trainings vary is left out: {', '.join(lone)}")
    _say_left_out((f"{one.column.title} ({short(one.by[0])})", one.reason) for one in found if one.reason)
    return bool(table.row_count)


def _line(one: Compared) -> tuple[str, ...]:
    assert one.paired is not None
    digits = one.column.digits
    ratio = "× " if one.paired.ratio else ""
    shown = None if one.paired.ratio else digits
    return (
        f"{one.column.title} {one.column.arrow}", short(one.by[0]), number(one.a, digits), number(one.b, digits),
        ratio + number(one.paired.value, shown), ratio + interval(one.paired.low, one.paired.high, shown),
        f"{one.paired.p:.2g}",
    )  # fmt: skip


def _all(part: Part, here: Sequence[Row], metrics: Sequence[str]) -> bool:
    found = [made for name in metrics if (made := ranked(here, name)) is not None]
    for made in found:
        to_stdout().print(_ranks(part, made, here))
        _say_left_out(made.left_out.items())
    return bool(found)


def _say_left_out(reasons: Iterable[tuple[str, str]]) -> None:
    """What was not compared, a line a reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        print(f"not compared: {', '.join(dict.fromkeys(names))}: {reason}")


def _ranks(part: Part, made: Ranked, here: Sequence[Row]) -> Table:
    said = (
        f"{len(made.pairs)} pairs of methods on the same people, key by key, corrected by Holm: all ranks hold at "
        "once, 95 times of 100, for the attacks as they stand: that each method's is the best on it is not "
        "corrected for."
    )
    table = Table(
        title=f"{made.column.title} {made.column.arrow}: {_title(part)}", title_justify="left", caption=said,
        caption_justify="left",
    )  # fmt: skip
    for name in ("method", "figure", "rank", "not told apart from"):
        table.add_column(name, justify="right" if name in ("figure", "rank") else "left", overflow="fold")
    for label, value in made.values.items():
        low, high = made.ranks[label]
        alike = [b if a == label else a for (a, b), p in made.pairs.items() if label in (a, b) and p >= UNLIKELY]
        rank = str(low) if low == high else f"{low} – {high}"
        table.add_row(label, number(value, made.column.digits), rank, ", ".join(alike))
    return table


def _title(part: Part) -> str:
    return f"{part[0]}, preset {part[1]}, seed {part[2]}"


def _named(name: str, here: Sequence[Row]) -> Row | None:
    """The row of a method as the command line writes it; None where there is none.

    A row whose own parameters are those that were written, and no others, is meant before those that have more.

    Raises UsageError where several fit.
    """
    spec = parse(name)
    fitting = [row for row in here if _fits(row, spec)]
    written = {key for key, _ in spec.parameters}
    exact = [row for row in fitting if unusual(row.records[0]).keys() == written]
    fitting = exact if len(exact) == 1 else fitting
    if len(fitting) > 1:
        raise UsageError(f"{name!r} may be any of {', '.join(row.label for row in fitting)}: name more parameters")
    return fitting[0] if fitting else None


def _fits(row: Row, spec: PluginSpec) -> bool:
    return row.method == spec.name and all(_same(row.parameters.get(key), value) for key, value in spec.parameters)


def _same(kept: JsonValue, written: object) -> bool:
    """Whether a parameter of a record is the value that was written, 20 for 20.0 too."""
    if isinstance(kept, bool) or kept is None:
        return str(kept).lower() == str(written).lower()
    if isinstance(kept, int | float):
        try:
            return float(str(written)) == kept
        except ValueError:
            return False
    return str(kept) == str(written)
