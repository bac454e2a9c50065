"""`bench reach`: the ladder as a table, from the records of a results folder and from what came with this version."""

from __future__ import annotations

import argparse

from rich.table import Table

from bench.cli.options import place
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.atomic_file import write_atomically
from bench.results.records import Record
from leaderboard import reach as ladder
from leaderboard.entries import interval, number
from leaderboard.reach import Rung, Step, dumps, reach, rungs, steps

NAME, CELL = 34, 24  # characters of the columns with encoders and with an attack's figures


def main(options: argparse.Namespace) -> int:
    """Print tables of each data set: encoders down, as many attacks across as the terminal is wide."""
    where = place(options)
    measured = steps(found for _, found in where.results.records() if isinstance(found, Record))
    known = [one for one in (*measured, *ladder.shipped()) if one.preset == options.preset]
    if not known:
        raise UsageError(
            f"no attack was measured on the ladder at preset {options.preset}: run "
            f"`bench run --suite ladder --preset {options.preset}`"
        )
    attacks = list(
        {(one.dataset, one.attack.name, str(one.attack.parameters)): one for one in reversed(known)}.values()
    )
    console = to_stdout()
    for dataset in sorted({one.dataset for one in attacks}):
        here = sorted((one for one in attacks if one.dataset == dataset), key=lambda one: one.attack.name)
        at_once = max(1, (console.width - NAME) // CELL)
        for start in range(0, len(here), at_once):
            some = here[start : start + at_once]
            console.print(_table(dataset, some, here, [one for one in known if one.dataset == dataset]))
    if options.write is not None:
        write_atomically(options.write, dumps(measured).encode())
        print(f"{len(measured)} steps written to {options.write}")
    return 0


def _table(dataset: str, attacks: list[Step], all_of_them: list[Step], known: list[Step]) -> Table:
    images, keys = attacks[0].images, attacks[0].keys
    table = Table(title=f"{dataset}, preset {attacks[0].preset}: {images} images, {keys} keys", title_justify="left",
                  caption="Guesswork attained, of what the best attack can attain where that is known, with its 95 % "
                  "interval; seconds of training.", caption_justify="left",
                  show_lines=True)  # fmt: skip
    table.add_column("encoder", no_wrap=True)
    columns = [reach(one.attack, one.preset, dataset, known) for one in attacks]
    for one in attacks:
        table.add_column("\n".join([one.attack.name, *_apart(one, all_of_them)]), justify="right")
    for row, method in enumerate(rungs()):
        table.add_row(method, *(_text(column[row]) for column in columns))
    return table


def _apart(one: Step, attacks: list[Step]) -> list[str]:
    """The parameters by which the attack differs from others of its name."""
    twins = [other.attack.parameters for other in attacks if other.attack.name == one.attack.name]
    return [
        f"{name}={value}"
        for name, value in sorted(one.attack.parameters.items())
        if any(twin.get(name) != value for twin in twins)
    ]


def _text(rung: Rung) -> str:
    score = rung.step.scores.get("guesswork") if rung.step is not None else None
    if rung.step is None or score is None:
        return rung.state
    best = "" if rung.possible is None else f" of {number(rung.possible, None)} possible"
    lines = [rung.state, f"{number(score.value, None)}{best} ({interval(score.low, score.high, None)})"]
    lines.append(f"{rung.step.seconds:.0f} s" + (", earlier code" if rung.stale else ""))
    return "\n".join(lines)
