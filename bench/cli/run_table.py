"""The table that a run ends with: the board of what was asked for, and its verdicts."""

from __future__ import annotations

from bench.cli import figure_tables
from bench.cli.figure_tables import senseless, tables, title
from bench.cli.terminal import to_stdout
from bench.results.records import Record
from bench.runs.summary import Summary
from bench.workbench.place import Place
from leaderboard.board import rows, used
from leaderboard.panel import dumps


def print_table(summary: Summary, where: Place) -> None:
    """The board of what was asked for, with the verdicts; panels of all that is on record are kept."""
    # The board refuses limited runs; the person who asked for one still wants to see it.
    shown = [record.model_copy(update={"choice": {**record.choice, "limit": None}}) for record in summary.records]
    pool = [found for _, found in where.results.records() if isinstance(found, Record)]
    board = rows(shown, {record.cell: record.cell.partition("/")[0] for record in shown}, pool)
    # Panels speak of every attack that is on record; controls that ran now change those of other cells too.
    panels = {row.cell: (row.panel, row.membership) for row in (*board, *rows(pool))}
    for cell, made in panels.items():
        where.results.journal.keep_panel(cell, dumps(*made))
    console = to_stdout()
    for dataset in dict.fromkeys(row.dataset for row in board):
        part = [row for row in board if row.dataset == dataset]
        if all(row.data is None for row in part):
            console.print(title(part[0]))
            continue
        asked = [entry.column for entry in part[0].entries.values()]
        columns = used(asked, part)
        found = tables(columns, part, console)
        found[0].title = title(part[0])
        for table in found:
            console.print(table)
        console.print(
            "Below each figure its 95 % interval (images per second: the middle half of the repeats). ↑ ↓: the "
            "direction that is better for the data owner; = chance: not told from chance. Attack figures: of the "
            "attack that did best, named below, among those whose controls hold; ? its controls fail or did not run.",
            style="table.caption",
        )
        if without := [column.title for column in asked if column not in columns and senseless(column, part)]:
            console.print(f"Not applicable to any of these (the records say why): {', '.join(without)}.")
        for row in part:
            if said := "; ".join(made.verdict for made in panels[row.cell] if made.members):
                told = ",".join(figure_tables.parameters(row, part))
                console.print(f"{row.method}[{told}]: {said}" if told else f"{row.method}: {said}", markup=False)
        if limits := {record.limit for record in summary.records if record.limit is not None}:
            console.print(f"Run with --limit {min(limits)}: not for a leaderboard.")
