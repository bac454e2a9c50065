"""Functions of data owners: a release, and verdicts against it."""

from __future__ import annotations

__figures__ = False

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.api.running import records_of
from bench.plugins.spec import told_parameters
from bench.workbench.place import Place

if TYPE_CHECKING:  # each function imports what it needs
    from bench.runs.display import Display
    from bench.runs.release_order import Order, Published
    from bench.runs.release_terms import Cause
    from bench.runs.request import Request
    from bench.workbench.owned_rows import Owned
    from leaderboard.board import Row


def release(
    request: Request, place: Place, order: Order,
    report: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Published:  # fmt: skip
    """Write a release, and its key and links to separate files.

    Methods are sized as in their papers, and no label is withheld unless the request says so, or the method takes
    labels only where yes and no are equally frequent.
    """
    from bench.runs import publication
    from bench.runs.request import run_spec

    written = request.options.get("balance")
    fixed = {"preset": publication.WHOLE, "balance": bool(written)}
    spec = run_spec(replace(request, options={**request.options, **fixed}))
    if written is None and any(method.plugin.equal_classes for method in spec.methods):
        spec = replace(spec, choices=tuple(replace(choice, balance=True) for choice in spec.choices))
    return publication.release(spec, place, order, lambda owned: list(verdicts(owned, place)), report)


def verdicts(owned: Owned, place: Place) -> Iterator[Cause]:
    """Causes against a release in the records of a results folder.

    They count if they are of the same method with the same parameters, on the same data, public rows and scheme. The
    verdict is the board's; of several rows, the gravest.
    """
    from bench.runs.release_terms import Cause
    from leaderboard.board import rows
    from leaderboard.panel import GRAVEST
    from leaderboard.row_schema import GOOD, JUDGED

    board = rows(records_of(place.results)) if place.results.begun else []
    plugin = owned.bench.cell.method.plugin
    near = [row for row in board if row.method == plugin.name and not row.earlier]
    fitting = [row for row in near if _same(row, owned)]
    judged = [row for row in fitting if row.standing.word in JUDGED]
    if not judged:
        why = _absence(near, fitting, owned)
        yield Cause("no rated verdict on this method with these parameters on these data", why)
        return
    worst = min(judged, key=lambda row: GRAVEST.index(row.standing.word)).standing
    if worst.word not in GOOD:
        yield Cause(f"the verdict on this method on these data is: {worst.word}", worst.sentence, private=True)


def _same(row: Row, owned: Owned) -> bool:
    """If a row is of the same method on the same data."""
    record = owned.bench.record
    return row.data is not None and not _differences(row, owned) and row.data.fingerprint == record.fingerprint


def _differences(row: Row, owned: Owned) -> list[str]:
    """Differing parameters with both values; differing public rows and features."""
    record = owned.bench.record
    own = told_parameters(owned.bench.cell.method.plugin)
    found = [
        f"{name} {row.parameters.get(name)} (here {value})"
        for name, value in own.items()
        if row.parameters.get(name) != value
    ]
    if row.data is None:
        return found
    beside = owned.bench.cell.choice.beside is not None
    if beside and row.data.public_fingerprint != record.public_fingerprint:
        found.append("other public rows")
    if owned.outsiders:
        found.append(
            "other public people than those whom --rows leaves out (--public or --scheme gives both commands the same)"
        )
    theirs, ours = row.data.features, record.features
    if (theirs is None) != (ours is None) or (
        theirs is not None and ours is not None and (theirs.name, theirs.parameters) != (ours.name, ours.parameters)
    ):
        found.append("other features")
    if row.data.features is None and row.data.shape != record.shape:
        found.append(f"rows of shape {row.data.shape} (here {record.shape})")
    if row.choice.get("scheme") != owned.scheme_hash:
        found.append("another fit of the scheme (--scheme FILE gives both commands one)")
    return found


def _absence(near: list[Row], fitting: list[Row], owned: Owned) -> str:
    """The nearest thing to a verdict, and how to have one."""
    method = owned.bench.cell.method
    command = f"bench run --method '{method.shown}' --preset paper, with the same data and --results, measures it"
    if fitting:
        return f"the verdict is {fitting[0].standing.word}: {fitting[0].standing.sentence}"
    here = [row for row in near if row.data is not None and row.data.fingerprint == owned.bench.record.fingerprint]
    if here:
        closest = min((_differences(row, owned) for row in here), key=len)
        return f"records of these data differ in {', '.join(closest)}; {command}"
    return f"there are records of other data only; {command}" if near else command


def show(
    request: Request, place: Place, out: Path, display: Display, *, rows: int | None = None, confidential: bool = False
) -> Path:
    """Draw raw rows beside their released forms (`bench.runs.released_picture.draw`)."""
    from bench.runs import released_picture
    from bench.runs.request import run_spec

    return released_picture.draw(run_spec(request), place, out, display, rows=rows, confidential=confidential)
