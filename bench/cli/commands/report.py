"""`bench report`: a release attacked on its owner's data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from annotated_types import Interval
from cyclopts import Parameter

from bench.api import reports, running
from bench.cli.figure_tables import interim
from bench.cli.parameters import CHOICE, SPREAD, USUAL_FILES, WHAT, WHERE, Files, Flags, flags, read, switch
from bench.plugins.profile_spec import read_profile
from bench.plugins.spec import UsageError, parse
from bench.results.run_secret import outside_releases
from bench.runs.display import Display
from bench.wire.text import line, shown, slug

if TYPE_CHECKING:
    ReportFlags = Flags
else:
    ReportFlags = flags(
        "ReportFlags", ("methods", "attacks", "device", "isolation", "jobs", "timeout", "memory", "overwrite"),
        CHOICE - {"eve", "rows_of", "this_release"},
    )  # fmt: skip
Risk = Annotated[float, Interval(gt=0, le=1)]
BELOW, NOT_BELOW = 0, 3
"""Exit codes: what --max-risk asks is shown, or not."""


def report(
    release: Annotated[Path | None, Parameter(help="the folder that `bench release` wrote")] = None,
    /,
    *,
    before: Annotated[
        bool, switch("rate a configuration (--method) before it is released, on a part of the people", group=WHAT)
    ] = False,
    no_annex: Annotated[
        bool, switch("leave out annex.html, with raw images of the people at the highest risk", group=WHAT)
    ] = False,
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
    from leaderboard.declaration import Declaration

    given = files.request(chosen, "report").options
    folder, beside, usual, method = _subject(release, links, given, before=before)
    target = _new(usual) if out is None else out.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"--out must be a new or empty folder, for a report is never replaced: got {shown(target)}")
    if folder is not None and target.is_relative_to(folder):
        raise UsageError(f"a report is confidential, and must lie outside {shown(folder)}, which is published")
    outside_releases(target, "a report")
    declared = Declaration() if declare is None else Declaration.read(declare)
    if max_risk is not None:
        declared = declared.under(max_risk)
    profiles = tuple(str(read_profile(name)) for name in eve) or reports.PROFILES
    options = {name: value for name, value in given.items() if name != "methods"}
    form = declared.template() if declare is None else None
    asked = reports.Asked(folder, beside, profiles, options, declared, target, ledger, method, not no_annex, form)
    done = reports.report(asked, files.place(), running.Observer(Display(figures=interim)))
    _print(done, fill_in=declare is None)
    if done.failed:
        print(f"{done.failed} measurements failed: `bench status` says which")
        return 1
    return BELOW if max_risk is None or done.report.passes(max_risk) else NOT_BELOW


def _subject(
    release: Path | None, links: Path | None, given: Mapping[str, object], *, before: bool
) -> tuple[Path | None, Path | None, Path, str | None]:  # fmt: skip
    """The release, its links, the usual report folder, and the method."""
    methods = cast("Sequence[str]", given.get("methods") or ())
    if before:
        if release is not None or links is not None or len(methods) != 1:
            raise UsageError("--before rates one configuration: name it by --method, and no release")
        return None, None, Path.cwd() / f"{slug(parse(methods[0]).name)}-report", methods[0]
    if release is None:
        raise UsageError("name the folder that `bench release` wrote; or --before and --method, if there is none yet")
    if methods:
        raise UsageError("the release says its method: --method goes with --before")
    folder = release.resolve()
    beside = folder.parent / f"{folder.name}-links.csv" if links is None else links
    if not beside.is_file():
        raise UsageError(
            f"the report needs the table of links of the release, and {shown(beside)} is no file: name it by --links "
            f"(`bench release --links-out` writes it)"
        )
    return folder, beside, folder.parent / f"{folder.name}-report", None


def _print(done: reports.Reported, *, fill_in: bool) -> None:
    from leaderboard.risk_page import NO_PDF

    for each in done.report.concluded:
        print(f"{each.quantity}, {each.eve}: {each.word}. {each.sentence}")
        for why in each.why:
            print(f"  missing: {why}")
    for name, why in done.reasons.items():
        print(f"  withheld from records: {name}: {line(why)}")
    for why in done.report.missing:
        print(f"missing for the risk of every person: {why}")
    for name, why in done.left_out.items():
        print(f"not measured: {name}: {why}")
    word, sentence = done.verdict
    if word:
        print(f"Verdict: {word}. {sentence}")
        print("  `bench release` with the same data and --results goes by it")
    for path in done.files:
        note = {"annex.html": " (private: raw images of people)", "declaration.yaml": ""}.get(path.name, "")
        print(f"Report: {shown(path)}{note}")
    if not any(path.name == "report.pdf" for path in done.files):
        print(NO_PDF)
    if fill_in:
        print("Nothing was declared: fill in declaration.yaml, and repeat the command with --declare")


def _new(wanted: Path) -> Path:
    """The folder, or the first of its numbered names that holds nothing."""
    names = itertools.chain([wanted], (wanted.with_name(f"{wanted.name}-{number}") for number in itertools.count(2)))
    return next(path for path in names if not path.exists() or (path.is_dir() and not any(path.iterdir())))
