"""`bench reach`: each attack's reach on the ladder of breakable encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.table import Table

from bench.api import boards, running
from bench.cli.parameters import RESULTS, Preset, ResultsFolder, switch
from bench.cli.terminal import to_stdout
from bench.disk.atomic_file import write_atomically
from leaderboard import reach as ladder
from leaderboard.entries import interval, number
from leaderboard.reach import Rung, Step, dumps, rungs

NAME, CELL = 34, 24  # characters of the columns with encoders and with an attack's figures
SHIPPED = "first-look"  # the preset of the steps that come with this version


def reach(
    *,
    results: ResultsFolder = RESULTS,
    preset: Preset = SHIPPED,
    write: Annotated[Path | None, switch("also write the measured steps to a JSON file", metavar="FILE")] = None,
) -> int:
    """Print tables a data set: encoders down, attacks across."""
    measured, known = boards.reach(running.open_place(results).results, preset)
    attacks = list(
        {(step.dataset, step.attack.name, str(step.attack.parameters)): step for step in reversed(known)}.values()
    )
    console = to_stdout()
    for dataset in sorted({step.dataset for step in attacks}):
        own = sorted((step for step in attacks if step.dataset == dataset), key=lambda step: step.attack.name)
        at_once = max(1, (console.width - NAME) // CELL)
        for start in range(0, len(own), at_once):
            some = own[start : start + at_once]
            console.print(_table(dataset, some, own, [step for step in known if step.dataset == dataset]))
    if write is not None:
        write_atomically(write, dumps(measured).encode())
        print(f"{len(measured)} steps written to {write}")
    return 0


def _table(dataset: str, attacks: list[Step], all_of_them: list[Step], known: list[Step]) -> Table:
    images, keys = attacks[0].images, attacks[0].keys
    table = Table(title=f"{dataset}, preset {attacks[0].preset}: {images} images, {keys} keys", title_justify="left",
                  caption="Guesswork attained, of what the best attack can attain where that is known, with its 95 % "
                  "interval; seconds of training.", caption_justify="left",
                  show_lines=True)  # fmt: skip
    table.add_column("encoder", no_wrap=True)
    columns = [ladder.reach(one.attack, one.preset, dataset, known) for one in attacks]
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
