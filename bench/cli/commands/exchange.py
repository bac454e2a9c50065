"""`bench leaderboard submit | verify | merge | export`: records for others."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from bench.api import boards, running
from bench.cli.parameters import RESULTS, Format, ResultsFolder, Trusted, goes_with, read, switch
from bench.cli.terminal import print_json, to_stderr, waiting
from bench.exchange.check import summary
from bench.exchange.merge import Outcomes
from bench.exchange.verify import Verification
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.results.signing_key import SigningKey
from bench.wire.text import plain, shown

MOST_SHOWN = 20
OF_BUNDLE = goes_with("BUNDLE")
BUNDLE = ("Parameters", OF_BUNDLE)
Natural = Annotated[int, Ge(0)]


def submit(
    folder: Annotated[Path, switch("the results folder", metavar="DIR")],
    /,
    *,
    out: Annotated[Path | None, switch("the bundle (default: DIR.bundle.zip)", metavar="FILE")] = None,
    sign: Annotated[Path | None, switch("sign it with this key (see `bench keys new`)", metavar="FILE")] = None,
    disclose: Annotated[
        bool,
        switch("add the secret of each cell, so that others can derive its keys and check the evidence; its holder can "
               "undo the releases of these cells, and of no others"),
    ] = False,
    disclose_to: Annotated[
        Path | None,
        switch("write these secrets into a new file, for a verifier alone (verify --secret FILE)", name="--disclose-to",
               metavar="FILE"),
    ] = None,
) -> int:  # fmt: skip
    """Pack a results folder into a bundle; 1 if it has faults."""
    signer = SigningKey.read(sign) if sign else None
    with waiting("check the records"):
        path, findings = boards.submit(
            Results(folder.resolve()), out, signer=signer, disclose=disclose, disclose_to=disclose_to
        )
    if findings:
        to_stderr(summary(findings), MOST_SHOWN)
        print(f"nothing was packed: {len(findings)} {'fault' if len(findings) == 1 else 'faults'}", file=sys.stderr)
        return 1
    print(f"{shown(path)} ({path.stat().st_size / 2**20:.1f} MiB{'' if signer else ', unsigned'})")
    if disclose_to is not None:
        print(f"Secrets of its cells, for a verifier: {shown(disclose_to)}")
    elif not disclose:
        print(
            "Without its cells' secrets keys cannot be derived: it stays self-reported (--disclose adds them; "
            "--disclose-to, for data that may not be shared, writes them for a verifier)"
        )
    print(f"Try it: bench leaderboard verify {shlex.quote(shown(path))}")
    print("Submit it: a pull request that adds it to leaderboard/submissions/, whose README says how")
    return 0


def export(
    folder: Annotated[Path, switch("a new folder, or the folder of an earlier export", metavar="DIR")],
    /,
    *,
    results: ResultsFolder = RESULTS,
    restricted: Annotated[
        bool,
        switch("also export figures and fitted models of data that may not be shared, if the recipient may have them; "
               "releases of them are not exported"),
    ] = False,
) -> int:  # fmt: skip
    """Copy what may leave into a folder; 1 if anything was refused."""
    with waiting("copy the records"):
        outcomes = boards.export(running.open_place(results).results, folder, restricted=restricted)
    code = _print_outcomes(outcomes, f"exported to {shown(folder)}")
    print(
        "run secret, logs, plans, pages and prepared data stay here; carry the folder by rsync, rclone or aws s3 sync"
    )
    return code


def merge(
    source: Annotated[Path, switch("results folders; they are not changed", metavar="DIR")],
    /,
    *sources: Annotated[Path, switch("", show=False)],
    into: Annotated[Path, switch("the merged folder, new or with records", metavar="DIR")],
    trusted: Trusted = (),
    prefer: Annotated[
        Literal["newest", "first"] | None,
        switch("if records of one name differ, keep the newest, or the one in --into, else the first (default: refuse "
               "both)"),
    ] = None,
    secret_of: Annotated[
        Path | None,
        switch("the folder whose run secret the merged folder gets, if the secrets differ or with --trusted",
               metavar="DIR"),
    ] = None,
) -> int:  # fmt: skip
    """Join results folders; 1 if anything was refused."""
    with waiting("join the records"):
        outcomes = boards.merge([source, *sources], into, trusted=trusted, prefer=prefer, secret_of=secret_of)
    return _print_outcomes(outcomes, f"merged into {shown(into.resolve())}")


def verify(
    bundle: Annotated[
        Path | None,
        switch("the bundle (default: check the results folder)", metavar="BUNDLE", group=("Arguments", OF_BUNDLE)),
    ] = None,
    /,
    *,
    results: Annotated[Path | None, switch("folder of the records (default: results)", metavar="DIR")] = None,
    trusted: Trusted = (),
    secret: Annotated[
        Path | None,
        switch("secrets of its cells (of --disclose-to), or a run secret, if it has none", metavar="FILE",
               group=BUNDLE),
    ] = None,
    rerun: Annotated[
        int | None,
        read(Natural, "measure again what decides each row, N random records besides, and those that do not apply",
             metavar="N",
             group=BUNDLE),
    ] = None,
    seal: Annotated[
        bool, switch("measure everything again under the secret of your own --results, in a sandbox", group=BUNDLE)
    ] = False,
    sign: Annotated[Path | None, switch("sign the verdict with this key", metavar="FILE", group=BUNDLE)] = None,
    verdict: Annotated[
        Path | None, switch("file of the verdict (default: beside the bundle)", metavar="FILE", group=BUNDLE)
    ] = None,
    register: Annotated[
        Path | None,
        switch("folder of the board's draws and its public keys (default: the project's)", metavar="DIR", group=BUNDLE),
    ] = None,
    received: Annotated[
        str | None,
        switch("when the board received the bundle, in UTC: its draw must be answered by then (default: now)",
               metavar="TIME", group=BUNDLE),
    ] = None,
    release: Annotated[
        tuple[str, ...],
        switch("a release of the bundle that another tool made, where it lies here: imported[path=FOLDER]",
               metavar="METHOD", group=BUNDLE),
    ] = (),
    data_root: Annotated[
        tuple[Path, ...],
        switch("folder above the data sets (or BENCH_DATA)", name="--data-root", metavar="DIR", group=BUNDLE),
    ] = (),
    form: Format = "text",
) -> int:  # fmt: skip
    """Judge a bundle, or read a folder; 1 if anything is refused."""
    if bundle is None:
        return _verify_folder(results or RESULTS, trusted, form)
    if seal and results is None:
        raise UsageError("--seal writes records of your own: name their folder with --results")
    signer = SigningKey.read(sign) if sign else None
    done = boards.verify(
        bundle, running.open_place(results or RESULTS, data_root, trusted), secret=secret, rerun=rerun, sealed=seal,
        signer=signer, out=verdict, register=register, received=received, releases=release,
    )  # fmt: skip
    if form == "json":
        return _print_verification(done)
    _print_notes(done)
    if done.verified.verdict is None:
        print("refused")
        return 1
    print(f"Signed by {done.signer}" if done.signer else "Unsigned")
    for cell, row in done.verified.verdict.rows.items():
        counts = Counter(judged.tier for judged in row.records.values())
        print(plain(f"{row.tier.word}: {cell} ({', '.join(f'{counts[tier]} {tier.word}' for tier in sorted(counts))})"))
        reasons = dict.fromkeys(f"{judged.tier.word}: {judged.reason}" for judged in row.records.values())
        for reason in [*reasons][:MOST_SHOWN]:
            print(f"  {plain(reason)}")
        for sentence in row.sentences():
            print(f"  {sentence}")
        if row.said:
            print(f"  stated by the author only: {', '.join(row.said)}")
    unsigned = "" if signer else " (unsigned, so the board of others does not count it; --sign)"
    print(f"Verdict: {shown(done.path)}{unsigned}")
    print(f"Tier: {done.verified.verdict.tier.word}")
    return 0


def _print_verification(done: Verification) -> int:
    """Print a bundle's verdict as JSON; 1 if it is refused."""
    found = done.verified.verdict
    print_json(
        accepted=found is not None, tier=None if found is None else found.tier.word, signer=done.signer,
        verdict=None if found is None else str(done.path),
        rows={} if found is None else {cell: row.model_dump(mode="json") for cell, row in found.rows.items()},
        refused=list(summary(done.verified.refused)), notes=list(summary(done.verified.notes)),
        differences=list(done.differences), unfitted=list(done.unfitted),
    )  # fmt: skip
    return int(found is None)


def _verify_folder(folder: Path, trusted: Sequence[Path], form: str) -> int:
    results = running.open_place(folder, trusted=trusted).results
    with waiting("check the files"):
        problems = boards.verify_folder(results)
    if form == "json":
        print_json(
            altered=[{"file": name, "reason": results.bare(name, reason)} for name, reason in problems],
            signatures_checked=results.trusted is not None,
        )
        return 1 if problems else 0
    for name, reason in problems:
        print(plain(f"{name}: {results.bare(name, reason)}"), file=sys.stderr)
    known = "" if results.trusted is not None else "; signatures were not checked (--trusted names public keys)"
    print(f"{len(problems)} files are not what was written" if problems else f"all files are what was written{known}")
    return 1 if problems else 0


def _print_outcomes(outcomes: Outcomes, done: str) -> int:
    for fate in ("refused", "stays"):
        to_stderr((f"{fate}: {reason}" for reason in outcomes.reasons(fate)), MOST_SHOWN)
    to_stderr((f"note: {note}" for note in outcomes.notes), MOST_SHOWN)
    print(f"{done}: {outcomes.summary('copied')}; there before: {outcomes.summary('present')}")
    if outcomes.count("refused"):
        print(f"refused: {outcomes.summary('refused')}")
    return 1 if outcomes.count("refused") else 0


def _print_notes(done: Verification) -> None:
    lines: Sequence[tuple[str, Sequence[str]]] = (
        ("apart", done.differences),
        ("note: not fitted again", done.unfitted),
        ("refused", summary(done.verified.refused)),
        ("note", summary(done.verified.notes)),
    )
    for title, texts in lines:
        to_stderr((f"{title}: {text}" for text in texts), MOST_SHOWN)
