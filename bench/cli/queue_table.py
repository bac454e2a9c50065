"""How the jobs of planned runs stand, as the results folder alone tells it: no plug-in and no record is opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from bench.plugins.spec import UsageError
from bench.results.queue import Queue, job_file
from bench.runs.planned_run import read_run
from bench.wire.text import plain

State = Literal["waiting", "running", "done", "failed", "not applicable", "lost", "after failed"]
STATES: tuple[State, ...] = ("waiting", "running", "done", "failed", "not applicable", "lost", "after failed")
_MOST_ROWS = 40


@dataclass(frozen=True)
class Running:
    """A job that a worker is at, or was before it was lost."""

    title: str
    host: str
    since: str
    silent: float
    lost: bool
    turn: int


@dataclass(frozen=True)
class PlanCounts:
    """How many jobs of a plan stand how, and those that somebody is at."""

    plan: str
    states: Counter[State]
    running: Sequence[Running]


def counts(queue: Queue, known: dict[str, State] | None = None) -> list[PlanCounts]:
    """Every plan of a folder. Raises UsageError for a plan that cannot be read.

    `known` keeps what was read, so that the next look reads what has ended since.
    """
    known = {} if known is None else known
    holders = queue.holders()
    found = []
    for name in queue.plans():
        try:
            planned, ended = read_run(queue, name), queue.ended(name)
        except ValueError as error:
            raise UsageError(str(error)) from error
        states: Counter[State] = Counter()
        running = []
        failed = set[str]()
        for each in planned.jobs:
            file = job_file(each.job)
            if file in ended:
                state = known[f"{name} {file}"] = known.get(f"{name} {file}") or _ended(queue, name, file)
            elif file in holders and not holders[file].given_back:
                state = "lost" if holders[file].lost else "running"
                told = holders[file].told
                running.append(
                    Running(
                        each.title,
                        str(told.get("host", "?")),
                        str(told.get("claimed", "?")),
                        holders[file].silent,
                        holders[file].lost,
                        holders[file].turn,
                    )
                )
            else:
                state = "waiting"
            if state == "waiting" and each.after in failed:
                state = "after failed"
            if state in ("failed", "not applicable", "after failed") and each.prepares:
                failed.add(each.job)
            states[state] += 1
        found.append(PlanCounts(name, states, running))
    return found


def tallies(found: Sequence[PlanCounts]) -> Table:
    """A line a plan."""
    shown = [state for state in STATES if any(each.states[state] for each in found)]
    table = Table("plan", "jobs", *shown)
    for each in found:
        table.add_row(each.plan, str(each.states.total()), *(str(each.states[state]) for state in shown))
    return table


def at_work(found: Sequence[PlanCounts]) -> Table:
    """A line a job that somebody is at, or was lost at."""
    table = Table("job", "where", "since", "last sign of life", "try")
    rows = [row for each in found for row in each.running]
    for row in sorted(rows, key=lambda row: (not row.lost, row.since))[:_MOST_ROWS]:
        sign = f"{row.silent:.0f} s ago{', lost' if row.lost else ''}"
        table.add_row(plain(row.title), plain(row.host), plain(row.since), sign, str(row.turn))
    if len(rows) > _MOST_ROWS:
        table.add_row(f"and {len(rows) - _MOST_ROWS} more", "", "", "", "")
    return table


def _ended(queue: Queue, plan: str, file: str) -> State:
    outcome = queue.outcome(plan, file)
    state = "" if outcome is None else outcome.state
    return {"done": "done", "not-applicable": "not applicable"}.get(state, "failed")  # type: ignore[return-value]
