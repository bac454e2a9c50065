"""Tables of figures: brief ones meanwhile, and the board at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import cast

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bench.api.boards import Board
from bench.cli.terminal import to_stdout
from bench.plugins.spec import text
from bench.results.records import Record
from bench.types import Parameter
from bench.workbench.choice import NO_PUBLIC
from leaderboard.board import Row, telling, used
from leaderboard.entries import Column, Entry, columns, entry, short
from leaderboard.names import label, unusual

FEW = 3
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
        name = label(first)
        name = f"{cell.partition('/')[0]} | {name}" if several else name
        entries = [entry(records, column) for column in shown]
        texts = (PENDING.get(item.status, item.text) for item in entries)
        table.add_row(Text(f"{name} seed {first.seed}" if seeds else name), *texts)  # brackets are no markup
    return table


def print_board(board: Board) -> None:
    """Print a table a data set, and the verdict of each row."""
    console = to_stdout()
    for dataset in dict.fromkeys(row.dataset for row in board.rows):
        part = [row for row in board.rows if row.dataset == dataset]
        if all(row.data is None for row in part):
            console.print(title(part[0]))
            continue
        all_columns = [entry.column for entry in part[0].entries.values()]
        columns = used(all_columns, part)
        parts_of_table = tables(columns, part, console)
        parts_of_table[0].title = title(part[0])
        for table in parts_of_table:
            console.print(table)
        console.print(CAPTION, style="table.caption")
        if without := [column.title for column in all_columns if column not in columns and senseless(column, part)]:
            console.print(f"Not applicable to any of these (the records say why): {', '.join(without)}.")
        for row in part:
            if verdict := board.verdicts[row.cell]:
                own = ",".join(parameters(row, part))
                console.print(f"{row.method}[{own}]: {verdict}" if own else f"{row.method}: {verdict}", markup=False)
    if board.limit is not None:
        console.print(f"Run with --limit {board.limit}: not for a leaderboard.")


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


def title(row: Row) -> str:
    """The data, preset and seed of a table's rows."""
    data = row.data
    if data is None:
        return f"{row.dataset}: its data could not be opened"
    public = "no public rows" if data.public == NO_PUBLIC else f"public set {data.public}"
    return f"{row.dataset} ({data.counts} images; {public}), preset {row.preset}, seed {row.seed}"


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
