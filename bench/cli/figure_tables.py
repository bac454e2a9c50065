"""Tables of figures: brief ones meanwhile, and the board at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import cast

from pydantic import JsonValue
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bench.api.boards import Board
from bench.cli.terminal import to_stdout
from bench.plugins.spec import text
from bench.results.records import Record
from bench.types import Parameter
from leaderboard.board import MAIN, Row, telling, used
from leaderboard.entries import WORDS, Column, Entry, columns, entry, number, short
from leaderboard.names import parameters_text, unusual
from leaderboard.sections import names
from leaderboard.typesetting import title

FEW = 3
WIDEST = 5
"""Figures of a table by parameter, if a row has more than the main ones."""
LONGEST = 40
CAPTION = (
    "Below each figure its 95 % interval (images per second: the middle half of the repeats). ↑ ↓: better for the data "
    "owner; = chance: the interval holds what chance gives. Each attack figure is from the strongest certified attack "
    "(named below it). ? = not certified."
)
PENDING = {"not-run": "…", "not-applicable": "n/a"}


def interim(records: Sequence[Record], console: Console, lines: int) -> Table:
    """The figures so far, at most `lines` methods, in the console's width."""
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    several = len({cell.partition("/")[0] for cell in cells}) > 1
    seeds = len({record.seed for record in records}) > 1
    shown = [column for column in columns(records) if any(column.name in record.scores for record in records)]
    brief = _brief(shown[:0], cells, lines, several=several, seeds=seeds)
    wide = console.options.update(max_width=sys.maxsize)
    for count in range(1, len(shown) + 1):
        more = _brief(shown[:count], cells, lines, several=several, seeds=seeds)
        if Measurement.get(console, wide, more).maximum > console.width:
            break
        brief = more
    return brief


def _brief(
    shown: Sequence[Column], cells: dict[str, list[Record]], lines: int, *, several: bool, seeds: bool
) -> Table:  # fmt: skip
    left = len(cells) - lines
    table = Table(caption_justify="left", caption=f"… and {left} more" if left > 0 else None)
    table.add_column("so far", no_wrap=True, max_width=LONGEST)
    for column in shown:
        table.add_column(f"{column.title} {column.arrow}", justify="right", no_wrap=True)
    for cell, records in [*cells.items()][:lines]:
        first = records[0]
        name = telling_label(first, [others[0] for others in cells.values()])
        name = f"{cell.partition('/')[0]} | {name}" if several else name
        entries = [entry(records, column) for column in shown]
        texts = (PENDING.get(item.status, item.text) for item in entries)
        table.add_row(Text(f"{name} seed {first.seed}" if seeds else name), *texts)  # brackets are no markup
    return table


def telling_label(record: Record, board: Sequence[Record]) -> str:
    """A row's label, with parameters first that others have otherwise.

    What a narrow column cuts is then what all of them share.
    """
    own = unusual(record)
    twins = [unusual(other) for other in board if other.method.name == record.method.name]
    apart = [name for name in sorted(own) if any(other.get(name) != own[name] for other in twins)]
    ordered = dict.fromkeys([*apart, *sorted(own)])
    text = ",".join(parameters_text({name: own[name]}) for name in ordered)
    return f"{record.method.name}[{text}]" if text else record.method.name


def print_board(board: Board) -> None:
    """Print a table a data set, and the verdict of each row."""
    console = to_stdout()
    written = names(board.rows)
    parts: dict[tuple[str, str, int], list[Row]] = {}
    for row in board.rows:
        parts.setdefault((written[row.cell], row.preset, row.seed), []).append(row)
    for (name, _, _), part in parts.items():
        if all(row.data is None for row in part):
            console.print(title(part[0]))
            continue
        all_columns = [entry.column for entry in part[0].entries.values()]
        columns = used(all_columns, part)
        parts_of_table = tables(columns, part, console)
        parts_of_table[0].title = title(next(row for row in part if row.data), name)
        for table in parts_of_table:
            console.print(table)
        console.print(CAPTION, style="table.caption")
        if without := [column.title for column in all_columns if column not in columns and senseless(column, part)]:
            console.print(f"Not applicable to any of these (the records say why): {', '.join(without)}.")
        for row in part:
            if verdict := board.verdicts[row.cell]:
                own = ",".join(parameters(row, part))
                console.print(f"{row.method}[{own}]: {verdict}" if own else f"{row.method}: {verdict}", markup=False)
    for swept in sweeps(board.rows):
        console.print(swept)
    if board.limit is not None:
        console.print(f"Run with --limit {board.limit}: not for a leaderboard.")


def sweeps(rows: Sequence[Row]) -> list[Table]:
    """A table by parameter for each method with several values or seeds.

    Rows of other choices, such as another attacker, and of other devices are never averaged.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.data is not None:
            choice = sorted((name, str(value)) for name, value in row.choice.items() if name != "seed")
            groups.setdefault((row.dataset, row.preset, row.device, row.method, str(choice)), []).append(row)
    return [_sweep(group) for group in groups.values() if len(group) > 1]


def _sweep(group: Sequence[Row]) -> Table:
    """Parameters that differ, and the main figures over seeds.

    Of one seed figures have their 95 % interval; of several they are means, with the least and the greatest.
    """
    settings: dict[str, list[Row]] = {}
    for row in sorted(group, key=lambda row: _order(telling(row, group))):
        settings.setdefault(row.label, []).append(row)
    seeds = sorted({row.seed for row in group})
    names = list(telling(group[0], group))
    shown = used([entry.column for entry in group[0].entries.values()], group)
    if len(shown) > WIDEST:
        shown = [column for column in shown if column.name in MAIN]
    first, one = group[0], len(seeds) == 1
    what = f"{first.method} {'by parameter' if names else 'over seeds'}: {first.dataset}, preset {first.preset}, "
    caption = "In brackets the 95 % interval."
    if not one:
        caption = "The mean over seeds, and in brackets the least and the greatest; each seed's intervals stand above."
    table = Table(
        title=f"{what}{f'seed {seeds[0]}' if one else f'{len(seeds)} seeds'}{', on cuda' * (first.device == 'cuda')}",
        title_justify="left", caption=caption, caption_justify="left",
    )  # fmt: skip
    for name in names:
        table.add_column(name, justify="right")
    for column in shown:
        table.add_column(f"{column.title} {column.arrow}", justify="right", overflow="fold")
    for same in settings.values():
        values = [text(cast(Parameter, same[0].parameters.get(name))) for name in names]
        places = ([row.entries[column.name] for row in same] for column in shown)
        table.add_row(*values, *(_over_seeds(entries, len(seeds)) for entries in places))
    return table


def _order(values: Mapping[str, JsonValue]) -> list[tuple[bool, float, str]]:
    """Numbers by size, then words."""
    return [
        (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, str(value))
        for value in values.values()
    ]


def _over_seeds(entries: Sequence[Entry], seeds: int) -> str:
    """A figure over seeds, and what the seeds without one have instead.

    A setting that was not run with a seed has no row of it.
    """
    scores = [entry.score for entry in entries if entry.score is not None]
    if seeds == 1:
        return " ".join([entries[0].text, *([f"({entries[0].interval})"] if scores else [])])
    gaps = Counter(entry.text for entry in entries if entry.score is None) + Counter(
        {WORDS["not-run"]: seeds - len(entries)}
    )
    without = ", ".join(f"{count} {why}" for why, count in gaps.items())
    if not scores:
        return without if len(gaps) > 1 else next(iter(gaps))
    values = [score.value for score in scores]
    words = [number(each, entries[0].column.digits) for each in (mean(values), min(values), max(values))]
    ends = [f"{words[1]} – {words[2]}"] if len(scores) > 1 else []
    share = [f"{len(scores)} of {seeds} seeds: {without}"] if gaps else []
    return f"{words[0]} ({'; '.join([*ends, *share])})"


def tables(columns: Sequence[Column], part: Sequence[Row], console: Console) -> list[Table]:
    """The figures of some rows, in tables that fit the console."""
    wide = console.options.update(max_width=sys.maxsize)
    full: list[Table] = []
    taken: list[Column] = []
    for column in columns:
        more = _table([*taken, column], part)
        if taken and Measurement.get(console, wide, more).maximum > console.width:
            full.append(_table(taken, part))
            taken = []
        taken.append(column)
    return [*full, _table(taken, part)]


def _table(columns: Sequence[Column], part: Sequence[Row]) -> Table:
    table = Table(title_justify="left", show_lines=True)
    table.add_column("method", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title} {column.arrow}", justify="right", overflow="fold")
    for row in part:
        table.add_row(_label(row, part), *(_text(row.entries[column.name]) for column in columns))
    return table


def senseless(column: Column, part: Sequence[Row]) -> bool:
    """True if the metric makes no sense for some rows."""
    return any(row.entries[column.name].status == "not-applicable" for row in part)


def parameters(row: Row, board: Sequence[Row]) -> list[str]:
    """A row's parameters unlike the preset's; of many, those that differ."""
    own = unusual(row.records[0])
    shown = own if len(own) <= FEW else telling(row, board)
    return [f"{name}={text(cast(Parameter, value))}" for name, value in shown.items() if value is not None]


def _label(row: Row, board: Sequence[Row]) -> str:
    return "\n".join([row.method, *parameters(row, board)])


def _text(entry: Entry) -> str:
    if entry.score is None:
        return entry.text
    lines = [entry.text, entry.interval]
    if entry.unrated:
        lines.append("not rated")
    elif entry.against_null == "inside":
        lines.append("= chance")
    if short(entry.by) != entry.by:
        lines.append(short(entry.by) + ("" if entry.certified else " ?"))
    return "\n".join(lines)
