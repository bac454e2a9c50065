"""`bench audit`: `bench run` with the audit alone, and a table of claims and what was shown of them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from rich.table import Table

from bench.cli.scored_run import perform
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.records import Record
from bench.runs.plan import data_key, standing, work
from bench.runs.run_spec import RunSpec
from bench.runs.summary import Summary
from bench.workbench.cell import Cell
from bench.workbench.choice import NO_PUBLIC, Choice
from bench.workbench.place import Place
from leaderboard.board import epsilon_text
from leaderboard.claims import METRIC, SURE, CountsError, at, verdict
from leaderboard.entries import number, reason


def main(options: argparse.Namespace) -> int:
    """Audit what is not audited yet; 1 if anything failed, a claim is violated, or noise is not as stated."""
    if options.public == NO_PUBLIC:
        raise UsageError("an audit makes its inputs of public rows: leave --public none out, or name a public set")
    violated = False

    def show(spec: RunSpec, summary: Summary, where: Place) -> None:
        nonlocal violated
        by_data: dict[Choice, dict[Cell, Record]] = {}
        for cell, planned in work(spec).items():
            data = where.results.journal.data(data_key(cell.choice))
            found = standing(where.results, cell, planned[0], data).record
            if found is not None:
                by_data.setdefault(cell.choice, {})[cell] = found
        for choice, records in by_data.items():
            table = _table(choice, options.confidence)
            for cell, record in records.items():
                violated |= _add(table, cell, record, options.confidence)
            to_stdout().print(table)

    return perform(options, show) or int(violated)


def _table(choice: Choice, confidence: float) -> Table:
    table = Table(
        title=f"{choice.dataset}, preset {choice.preset}, seed {choice.seed}: claims audited", title_justify="left",
        caption=f"Shown: with {100 * confidence:g} % confidence ε is at least that; in brackets the other end of what "
        "the chosen test shows, which is no upper bound on ε. Ceiling: the most that so many trials could show.",
        caption_justify="left", show_lines=True,
    )  # fmt: skip
    table.add_column("method", overflow="fold")
    for name in ("claimed ε", "derived ε", "shown ε ≥", "ceiling"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    table.add_column("test", overflow="fold")
    return table


def _add(table: Table, cell: Cell, record: Record, confidence: float) -> bool:
    """Add a record's row; whether its claim is violated."""
    claim, label = record.claim, cell.method.spec.shown
    claimed, derived = ("", "") if claim is None else (epsilon_text(claim.epsilon), epsilon_text(claim.derived))
    if claim is None or METRIC not in record.scores:
        why = record.not_applicable.get(METRIC) or reason(record)
        said = why if why.startswith(record.status) else f"{record.status}: {why}"  # words withheld begin with it
        table.add_row(label, claimed, derived, "", "", said, "")
        return False
    try:
        score, sure = (at(record, each) for each in (confidence, max(confidence, SURE)))
    except CountsError as error:
        table.add_row(label, claimed, derived, "", "", str(error), "")
        return False
    found = verdict(claim, score, sure)
    rest = f"\n({number(score.value, None)} – {'∞' if score.high is None else number(score.high, None)})"
    told = record.details
    test = (
        ""
        if "trials" not in told
        else f"{told['inputs']}\n{told['statistic']}\n{told['correct']} of {told['guesses']} guesses correct, "
        f"{told['trials']} trials\nnoise: {told['noise_checks']}"
        + "".join(f"\nε by {name}: {spent}" for name, spent in _accounts(told).items())
    )
    table.add_row(
        label, claimed, derived, number(score.value, None) + rest, number(score.parts["ceiling"].value, None),
        found.sentence, test,
    )  # fmt: skip
    return found.word in ("violated", "noise fails")


def _accounts(details: Mapping[str, object]) -> dict[str, str]:
    """What each accountant says, as text."""
    found = details["accounting"]
    if not isinstance(found, dict):
        raise TypeError(f"an audit's accounting must be a mapping, got {type(found).__name__}")
    return {str(name): number(float(spent), None) for name, spent in found.items()}
