"""`bench report`: a release attacked on its owner's data."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Interval
from cyclopts import Parameter

from bench.api import reports, running
from bench.cli.figure_tables import interim
from bench.cli.parameters import CHOICE, SPREAD, USUAL_FILES, WHAT, WHERE, Files, Flags, flags, read, switch
from bench.disk.atomic_file import write_atomically
from bench.plugins.spec import UsageError
from bench.runs.display import Display
from bench.wire.text import shown

if TYPE_CHECKING:
    ReportFlags = Flags
else:
    ReportFlags = flags(
        "ReportFlags", ("attacks", "device", "isolation", "jobs", "timeout", "memory", "overwrite"),
        CHOICE - {"eve", "rows_of", "this_release"},
    )  # fmt: skip
Risk = Annotated[float, Interval(gt=0, le=1)]
BELOW, NOT_BELOW = 0, 3
"""Exit codes: what --max-risk asks is shown, or not."""


def report(
    release: Annotated[Path, Parameter(help="the folder that `bench release` wrote")],
    /,
    *,
    links: Annotated[
        Path | None,
        switch("the table of links that was written beside it (default: DIR-links.csv)", metavar="FILE", group=WHERE),
    ] = None,
    out: Annotated[
        Path | None,
        switch("a new folder of the report (default: DIR-report, DIR-report-2 ...)", metavar="DIR", group=WHERE),
    ] = None,
    declare: Annotated[
        Path | None,
        switch("a YAML file: recipient, purpose, threshold (default: nothing is declared)", metavar="FILE", group=WHAT),
    ] = None,
    max_risk: Annotated[
        float | None,
        read(
            Risk, "end with code 3 unless the risk of every person is shown to be below", metavar="SHARE", group=WHAT
        ),
    ] = None,
    eve: Annotated[
        tuple[str, ...],
        switch(
            f"what an attacker holds, repeatable (default: {', '.join(reports.PROFILES)})", metavar="PROFILE",
            group=WHAT,
        ),
    ] = (),
    ledger: Annotated[
        Path | None, switch("your ledger of releases (default: in your home)", metavar="DIR", group=WHERE)
    ] = None,
    chosen: Annotated[ReportFlags | None, SPREAD] = None,
    files: Annotated[Files, SPREAD] = USUAL_FILES,
) -> int:  # fmt: skip
    """Measure, write the report, and print its conclusions."""
    from leaderboard.risk_report import Declaration

    folder = release.resolve()
    beside = folder.parent / f"{folder.name}-links.csv" if links is None else links
    if not beside.is_file():
        raise UsageError(
            f"the report needs the table of links of the release, and {shown(beside)} is no file: name it by --links "
            f"(`bench release --links-out` writes it)"
        )
    target = _new(folder.parent / f"{folder.name}-report") if out is None else out.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"--out must be a new or empty folder, for a report is never replaced: got {shown(target)}")
    if target.is_relative_to(folder):
        raise UsageError(f"a report is confidential, and must lie outside {shown(folder)}, which is published")
    declared = Declaration() if declare is None else Declaration.read(declare)
    if max_risk is not None:
        declared = declared.under(max_risk)
    place = files.place()
    given = files.request(chosen, "report").options
    asked = reports.Asked(folder, beside, eve or reports.PROFILES, given, declared, target, ledger)
    done = reports.report(asked, place, running.Observer(Display(figures=interim)))
    for each in done.report.concluded:
        print(f"{each.quantity}, {each.eve}: {each.word}. {each.sentence}")
        for why in each.why:
            print(f"  missing: {why}")
    for name, why in done.left_out.items():
        print(f"not measured: {name}: {why}")
    for path in done.files:
        print(f"Report: {shown(path)}")
    if declare is None:
        form = target / "declaration.yaml"
        write_atomically(form, declared.template().encode(), mode=0o600)
        print(f"Nothing was declared: fill in {shown(form)}, and repeat the command with --declare")
    if done.failed:
        print(f"{done.failed} measurements failed: `bench status` says which")
        return 1
    return BELOW if max_risk is None or done.report.passes(max_risk) else NOT_BELOW


def _new(wanted: Path) -> Path:
    """The folder, or the first of its numbered names that holds nothing."""
    names = itertools.chain([wanted], (wanted.with_name(f"{wanted.name}-{number}") for number in itertools.count(2)))
    return next(path for path in names if not path.exists() or (path.is_dir() and not any(path.iterdir())))
