"""A bundle verified, measured again on request, and its verdict written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from bench.exchange.bundle_tiers import (
    ARITHMETIC,
    MEASURE,
    REFIT,
    Board,
    Strongest,
    Verified,
    assign_tiers,
    checked_bundle,
    repeatable,
    verdict_on,
)
from bench.exchange.check import DONE
from bench.exchange.disclosed_secrets import Disclosed, keep_cell_secrets, knows
from bench.exchange.recheck_fit import Refitted, recheck_fit
from bench.isolation import require_sandbox
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.progress import forward_progress
from bench.randomness import Secret
from bench.results import verdict
from bench.results.bundle import ENDING, Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import RunSecret
from bench.results.signing_key import SigningKey
from bench.results.verdict import Judged, Tier
from bench.runs.display import Display
from bench.runs.plan import plan_run
from bench.runs.run import run
from bench.runs.run_spec import RunSpec
from bench.sandbox import remedy
from bench.types import DataError
from bench.workbench.inputs import files_of, planned_of
from bench.workbench.machine import usable_memory, usual_jobs
from bench.workbench.place import Place


@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    Args:
        verified: Refusal, notes and verdict.
        signer: The public key that signed the bundle; None if it is unsigned.
        path: The verdict's file; written unless the bundle is refused.
        differences: Figures whose intervals, the author's and the sealed one, do not meet.
        unfitted: Why methods were not fitted again: data that are not here.
    """

    verified: Verified
    signer: str | None
    path: Path
    differences: tuple[str, ...] = ()
    unfitted: tuple[str, ...] = ()


def verify(
    path: Path, place: Place, *, secrets: Disclosed | None = None, rerun: int | None = None, sealed: bool = False,
    signer: SigningKey | None = None, out: Path | None = None, board: Board | None = None,
    strongest: Strongest | None = None, releases: Sequence[str] = (),
) -> Verification:  # fmt: skip
    """Verify a bundle, and write its verdict unless it is refused.

    Args:
        path: The bundle.
        place: The verifier's folders. `sealed` writes records into its results; otherwise these stay untouched.
        secrets: Those of its cells if the bundle does not disclose them.
        rerun: Random measurements of every cell to make again; None opens no data.
        sealed: Measure everything again under the secret of the verifier's results folder, in a sandbox.
        signer: Signs the verdict.
        out: The verdict's file; None puts it beside the bundle.
        board: The register that a draw must be of; None takes the draw's word.
        strongest: Names the attacks that a re-run measures in any case.
        releases: Methods of the bundle whose folders records do not show, with their places on this machine.

    Raises:
        BundleError: It is no bundle, or was altered.
        UsageError: No trusted key signed it, the verdict would replace one that is worth more, or something is to be
            measured and sandboxes do not work here.
    """
    if sealed or rerun is not None:
        require_sandbox("--seal" if sealed else "--rerun")
    bundle = Bundle.open(path)
    here = Here.of(releases)
    if place.results.trusted is not None and bundle.signer not in place.results.trusted:
        raise UsageError(f"{path} is signed by {bundle.signer or 'no key'}, and by none of the --trusted keys")
    out = out or bundle.path.with_name(f"{bundle.path.name.removesuffix(ENDING)}{verdict.ENDING}")
    _check_replaceable(out, Tier.SEALED if sealed else Tier.RE_RUN if rerun else Tier.ARITHMETIC_CHECKED, signer)
    differences: list[str] = []
    absent: set[str] = set()
    with Display() as display, forward_progress(partial(_say, display, path.name)):
        if sealed:
            own = place.results.keep_secret()
            verified, differences = seal(
                bundle, own, lambda records: run_again(here.placed(records), place, display=display, people="secret")
            )
        elif rerun is None:
            verified = assign_tiers(bundle, secrets=secrets, board=board)
        else:
            with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder:
                # Measuring takes the author's secrets, and fitting any: each has a results folder of its own.
                measuring, fitting = (replace(place, results=Results(Path(folder, name))) for name in "mf")
                verified = assign_tiers(
                    bundle, secrets=secrets, rerun=rerun, board=board, strongest=strongest,
                    again=lambda records, own: run_again(here.placed(records), measuring, own, display=display),
                    recheck=lambda record, people: _recheck(here.placed([record])[0], people, fitting, absent),
                )  # fmt: skip
    if verified.verdict is not None:
        _check_replaceable(out, verified.verdict.tier, signer)
        verdict.write(verified.verdict, out, signer)
    return Verification(verified, bundle.signer, out, tuple(differences), tuple(sorted(absent)))


@dataclass(frozen=True)
class Here:
    """Releases by other tools on this machine, by their specs without places."""

    specs: Mapping[str, str]

    @classmethod
    def of(cls, releases: Sequence[str]) -> Here:
        """Those that a verifier names. Raises UsageError for other methods."""
        found = [configure("methods", each, "quick") for each in releases]
        if odd := next((each for each in found if each.plugin.recorded is None), None):
            raise UsageError(f"--release names a folder of released rows, as in imported[path=FOLDER], got {odd.shown}")
        return cls({each.placeless: str(each) for each in found})

    def placed(self, records: Sequence[Record]) -> list[Record]:
        """Records with these places in their methods and choices.

        Raises UsageError if one of a release is missing.
        """
        return [
            record.model_copy(
                update={
                    "method": record.method.model_copy(update={"written": self._placed(record.method.written, record)}),
                    "choice": {
                        name: self._placed(str(value), record) if name == "rows_of" and value else value
                        for name, value in record.choice.items()
                    },
                }
            )
            for record in records
        ]

    def _placed(self, written: str, record: Record) -> str:
        chosen = configure("methods", written, record.preset)
        if chosen.plugin.releases is None:
            return written
        if chosen.placeless not in self.specs:
            raise UsageError(
                f"the release behind {record.cell} is to be measured again: name its folder, as in --release "
                f"'{chosen.name}[path=FOLDER]'; expected {chosen.placeless}, got {', '.join(self.specs) or 'none'}"
            )
        return self.specs[chosen.placeless]


def _check_replaceable(path: Path, tier: Tier, signer: SigningKey | None) -> None:
    """Raise UsageError if this verdict would replace one that is worth more."""
    try:
        standing = verdict.standing(path)
    except verdict.VerdictError as error:
        raise UsageError(f"{error}; write elsewhere with --verdict") from error
    if standing is None:
        return
    old, by = standing
    if by is not None and (signer is None or signer.public != by):
        reason = f"is signed by the key {by[:16]}, and the new one by {signer.public[:16] if signer else 'no key'}"
    elif (signer is None or by is not None) and old > tier:
        reason = f"says {old.word}, and the new one {tier.word} at most"
    else:
        return
    raise UsageError(f"{path} {reason}: write elsewhere with --verdict")


def _say(display: Display, bundle: str, stage: str, done: int, total: int) -> None:
    """Show a stage of the verification, without words of methods."""
    if stage in (ARITHMETIC, REFIT, MEASURE):
        display.progress(bundle, stage, done, total)


def _recheck(record: Record, people: Mapping[str, Secret], place: Place, absent: set[str]) -> Refitted | None:
    try:
        return recheck_fit(record, people, place)
    except DataError as error:
        absent.add(str(error))
        return None


def run_again(
    records: Sequence[Record], place: Place, secrets: Mapping[str, Secret] | None = None, *, display: Display,
    people: Literal["same", "secret"] = "same",
) -> dict[str, Record]:  # fmt: skip
    """Measure records again, from data to figures.

    The results are by the records' `cell/evaluator`.

    Args:
        records: The measurements to make.
        place: The folders to work in.
        secrets: Those of the records' cells, by cell, and of drawn people; None for the folder's own.
        display: Shows how far it is.
        people: "secret" draws them under the folder's run secret, if the data set can.

    Raises:
        UsageError: A plug-in or an option of a record is not installed here, or a record has no data.
    """
    keep_cell_secrets(place.results, records, secrets or {})
    measured: dict[str, Record] = {}
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    for cell, row in cells.items():  # together, to open the data and fit the method once
        summary = run(plan_run(_run_spec(row, people), place.results), place, display)
        measured |= {f"{cell}/{record.evaluator}": record for record in summary.records}
    return measured


def _run_spec(records: Sequence[Record], people: Literal["same", "secret"]) -> RunSpec:
    """The run that measures these records of one cell again."""
    planned = [planned_of(record) for record in records]
    cell = planned[0][0]
    jobs = min(usual_jobs(cell.device), len(records))
    return RunSpec(
        choices=(cell.choice if people == "same" else cell.choice.with_secret_people(),), methods=(cell.method,),
        attacks=tuple(dict.fromkeys(each.attack for _, each in planned if each.attack is not None)),
        metrics=tuple(dict.fromkeys(name for _, each in planned for name in each.metrics)), evaluators=(),
        controls=False, device=cell.device, jobs=jobs, timeout=None,
        memory=int(usable_memory() / jobs), overwrite="failed", isolation="sandbox",
        keep_releases=False,
    )  # fmt: skip


def seal(
    bundle: Bundle, secret: RunSecret, again: Callable[[Sequence[Record]], Mapping[str, Record]]
) -> tuple[Verified, list[str]]:
    """Measure everything in a bundle under the verifier's own secret.

    Args:
        bundle: The bundle.
        secret: That of the verifier's results folder.
        again: Measures records under that secret, with methods and attacks in a sandbox.

    Returns:
        The verdict on the new records, and figures whose intervals, the author's and the new one, do not meet.

    Raises:
        UsageError: The author knows that secret, or methods and attacks did not run in a sandbox.
    """
    checked = checked_bundle(bundle)
    if isinstance(checked, Verified):
        return Verified(checked.refused), []
    records = checked.records
    if any(knows(secret, record) for record in records.values()):
        raise UsageError("the author's records were made under this very secret: seal under one that is yours alone")
    measured = again([record for record in records.values() if not files_of(record)])
    if unprotected := [name for name, record in measured.items() if record.isolation != "sandbox"]:
        raise UsageError(f"{unprotected[0]} was measured without a sandbox, which sealing takes: {remedy()}")
    incomplete = {finding.name: str(finding) for finding in checked.findings if finding.kind == "incomplete"}
    tiers = {
        str(record.digest): _sealed_tier(record, incomplete.get(name.rpartition("/")[0]))
        for name, record in measured.items()
    }
    verified = Verified((), checked.findings, verdict_on(bundle.sha256, measured.values(), tiers))
    return verified, list(_interval_gaps(records.values(), measured))


def _sealed_tier(record: Record, incomplete: str | None) -> Judged:
    """The tier of a sealed record; a row must be complete."""
    reason = incomplete if record.status in DONE else f"{record.status}: {record.reason}"
    tier = Tier.SEALED if reason is None else Tier.SELF_REPORTED
    return Judged(digest=str(record.digest), tier=tier, reason=reason or "measured under secret keys")


def _interval_gaps(records: Iterable[Record], measured: Mapping[str, Record]) -> Iterator[str]:
    for record in filter(repeatable, records):
        name = f"{record.cell}/{record.evaluator}"
        scores = measured[name].scores if name in measured else {}
        for metric, a in record.scores.items():
            b = scores.get(metric)
            if b is None or a.low is None or a.high is None or b.low is None or b.high is None:
                continue
            if a.low > b.high or b.low > a.high:
                yield (f"{name}: {metric} is {a.value:g} ({a.low:g} to {a.high:g}) in the bundle, {b.value:g} "
                       f"({b.low:g} to {b.high:g}) sealed")  # fmt: skip
