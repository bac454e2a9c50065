"""Tiers of the records of a bundle: self-reported, replayed, re-run or sealed.

Stored evidence is judged again, and its row order derived from the run secret, without data or GPU (replayed). Evidence
can be forged by an author who knows this check. So measurements drawn at random, with their controls, are made again
(re-run). `bench.exchange.verify.seal` measures all under keys that the author never held (sealed).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version

from bench.exchange.check import Checked, Finding, check
from bench.exchange.evidence_check import differences, evidence_of, order_follows
from bench.exchange.recheck_fit import Refitted, disagreement, misfits
from bench.exchange.submit import misplaced
from bench.plugins import registry
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results.bundle import SECRET, Bundle
from bench.results.evidence_file import EvidenceError
from bench.results.records import Record
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, fingerprint
from bench.workbench.inputs import COMMITMENT, PROTOCOL

NO_EVIDENCE = "its evidence is not in the bundle; --rerun may draw it and measure it again"
Again = Callable[[Sequence[Record], Secret], Mapping[str, Record]]
"""Measures records again under a secret (`bench.exchange.verify.run_again` in a folder of its own)."""
Recheck = Callable[[Record], Refitted | None]
"""Fits a record's method again (`bench.exchange.recheck_fit.recheck_fit`); None if that is impossible here."""


@dataclass(frozen=True)
class Verified:
    """The result for a bundle.

    Args:
        refused: Why it is refused; empty if it is accepted.
        notes: Why records stay self-reported, and the remedy.
        verdict: The tier of every record; None if the bundle is refused.
    """

    refused: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()
    verdict: Verdict | None = None


@dataclass
class _Cell:
    """The records of a cell by name, and what its checks gave."""

    records: dict[str, Record] = field(default_factory=dict)
    ordered: set[bool] = field(default_factory=set)
    drawn: list[str] = field(default_factory=list)
    refitted: bool = False

    @property
    def reference(self) -> bool:
        """True for a reference method, which attacks are compared with."""
        return next(iter(self.records.values())).method.role is not None


class _Refused(Exception):  # noqa: N818  (an outcome, not an error)
    def __init__(self, name: str, reason: str) -> None:
        self.finding = Finding("altered", name, reason)
        super().__init__(str(self.finding))


def checked_bundle(bundle: Bundle) -> Checked | Verified:
    """The records of a bundle and their lesser faults, or its refusal."""
    checked = check(bundle.results)
    if checked.refused:
        return Verified(
            checked.refused, tuple(finding for finding in checked.findings if finding not in checked.refused)
        )
    if not checked.records:
        return Verified((Finding("altered", bundle.path.name, "it holds no record"),))
    if strange := tuple(misplaced(bundle, checked.records)):
        return Verified(strange, checked.findings)
    return checked


def assign_tiers(
    bundle: Bundle, *, secret: Secret | None = None, rerun: int = 0, again: Again | None = None,
    recheck: Recheck | None = None,
) -> Verified:  # fmt: skip
    """Check a bundle and give each record its tier.

    Args:
        bundle: The bundle.
        secret: The run secret if its author sent it separately; None takes the bundle's own.
        rerun: Random measurements of every cell to make again, each with its controls.
        again: Makes them; None opens no data, and then no "not applicable" is tried again either.
        recheck: Fits methods again, to check claims and caveats; None opens no data.

    Raises:
        BundleError: Its run secret is malformed.
    """
    checked = checked_bundle(bundle)
    if isinstance(checked, Verified):
        return checked
    secret = secret or bundle.secret
    try:
        tiers, refitted = _tiers(bundle, checked, secret, rerun=rerun, again=again, recheck=recheck)
    except _Refused as refusal:
        return Verified((refusal.finding,), checked.findings)
    return Verified((), checked.findings, verdict_on(bundle.sha256, checked.records.values(), tiers, refitted))


def _tiers(
    bundle: Bundle, checked: Checked, secret: Secret | None, *, rerun: int, again: Again | None,
    recheck: Recheck | None,
) -> tuple[dict[str, Judged], set[str]]:  # fmt: skip
    """The tier of each record by digest, and the refitted cells."""
    records = checked.records
    held: dict[str, str] = {}  # by name, why a record stays self-reported
    for finding in checked.findings:
        held.setdefault(finding.name, f"{finding.kind}: {finding.reason}")
    if secret is None:
        reason = "keys cannot be derived without the run secret (`bench leaderboard submit --disclose`)"
        return {str(record.digest): _self_reported(record, held.get(name, reason)) for name, record in
                records.items()}, set()  # fmt: skip
    cells: dict[str, _Cell] = {}
    for name, record in records.items():
        if record.inputs.get(COMMITMENT) != secret.commitment():
            raise _Refused(SECRET, f"{name} was made under another run secret than the one that is disclosed")
        cells.setdefault(record.cell, _Cell()).records[name] = record
        if (reason := held.get(record.cell, "")) != "":
            held.setdefault(name, reason)
    for cell in cells.values():
        for name, record in cell.records.items():
            if name not in held and record.status == "ok" and not _replayed(bundle, name, record, cell, secret):
                held[name] = NO_EVIDENCE
        if recheck is not None:
            _fit_again(cell, held, recheck)
    _measure_again(cells, held, secret, rerun, again)
    tiers = {
        str(record.digest): _tier(record, cell, held.get(name))
        for cell in cells.values()
        for name, record in cell.records.items()
    }
    return tiers, {name for name, cell in cells.items() if cell.refitted}


def _replayed(bundle: Bundle, name: str, record: Record, cell: _Cell, secret: Secret) -> bool:
    """Judge a record's evidence again. Returns False if it has none."""
    content = bundle.results.evidence(record)
    if content is None:
        return False
    try:
        evidence = evidence_of(record, content)
    except EvidenceError as error:
        raise _Refused(name, f"its evidence cannot be read: {error}") from error
    if apart := list(differences(record, evidence)):
        raise _Refused(name, f"its figures do not follow from its evidence: {'; '.join(apart)}")
    if (follows := order_follows(record, evidence, secret)) is not None:
        cell.ordered.add(follows)
    return True


def _fit_again(cell: _Cell, held: Mapping[str, str], recheck: Recheck) -> None:
    """Compare stated data and fitted methods with those obtained here."""
    records = {name: record for name, record in cell.records.items() if held.get(name, NO_EVIDENCE) == NO_EVIDENCE}
    if not records or (here := recheck(next(iter(records.values())))) is None:
        return
    for name, record in records.items():
        if (reason := next(misfits(record, here), None)) is not None:
            raise _Refused(name, reason)
    cell.refitted = True


def _measure_again(
    cells: Mapping[str, _Cell], held: dict[str, str], secret: Secret, rerun: int, again: Again | None
) -> None:
    """Measure random records, their controls, and "not applicable" ones again."""
    sample: dict[str, Record] = {}
    for cell in cells.values():
        for name, record in cell.records.items():
            if name not in held and record.status == "not-applicable":
                if again is None:
                    held[name] = "that it does not apply was not tried again (`--rerun 0` does)"
                else:
                    sample[name] = record
        free = [name for name, record in cell.records.items() if _may_be_drawn(name, record, held)]
        cell.drawn = secrets.SystemRandom().sample(sorted(free), min(rerun, len(free)))
    if again is None:
        return
    for cell in cells.values():
        if not cell.reference:
            _draw_controls(cell, [other for other in cells.values() if other.reference], held)
    for cell in cells.values():
        sample |= {name: cell.records[name] for name in cell.drawn}
    measured = again(list(sample.values()), secret) if sample else {}
    for name, record in sample.items():
        if (reason := disagreement(record, measured.get(f"{record.cell}/{record.evaluator}"))) is not None:
            raise _Refused(name, f"measured again under its own secret, it comes out otherwise: {reason}")
        held.pop(name, None)  # a record measured again needs no evidence
        cells[record.cell].refitted |= record.status == "ok"


def _draw_controls(cell: _Cell, references: Sequence[_Cell], held: Mapping[str, str]) -> None:
    """Draw the controls of drawn attacks: these count only with them."""
    attacks = {cell.records[name].evaluator for name in cell.drawn if cell.records[name].attack is not None}
    choice = next(iter(cell.records.values())).choice
    for other in references:
        for name, record in other.records.items():
            wanted = record.evaluator in attacks and record.choice == choice
            if wanted and name not in other.drawn and _may_be_drawn(name, record, held):
                other.drawn.append(name)


def _may_be_drawn(name: str, record: Record, held: Mapping[str, str]) -> bool:
    return held.get(name, NO_EVIDENCE) == NO_EVIDENCE and repeatable(record)


def repeatable(record: Record) -> bool:
    """True if a record has figures, and none of a clock."""
    try:
        evaluator = registry.load("evaluators", record.measured_by)
    except UsageError:
        return False
    return record.status == "ok" and not getattr(evaluator, "alone", False)


def _tier(record: Record, cell: _Cell, held: str | None) -> Judged:
    digest = str(record.digest)
    if held is not None:
        return _self_reported(record, held)
    if cell.drawn:
        names = ", ".join(sorted(cell.records[name].evaluator for name in cell.drawn))
        return Judged(digest=digest, tier=Tier.RE_RUN, reason=f"drawn at random and measured again: {names}")
    if cell.ordered != {True}:
        reason = (
            "the order of its evidence does not follow from the run secret"
            if False in cell.ordered
            else "no evidence of its cell shows the order of the run secret"
        )
        return _self_reported(record, f"{reason}; --rerun measures it again")
    reason = "judged again from its evidence" if record.status == "ok" else "tried again, and it does not apply"
    return Judged(digest=digest, tier=Tier.REPLAYED, reason=reason)


def _self_reported(record: Record, reason: str) -> Judged:
    return Judged(digest=str(record.digest), tier=Tier.SELF_REPORTED, reason=reason)


def verdict_on(
    bundle: str, records: Iterable[Record], tiers: Mapping[str, Judged], refitted: Set[str] = frozenset()
) -> Verdict:
    """A verdict of today, by this version.

    Args:
        bundle: SHA-256 of the file.
        records: All that are judged.
        tiers: The tier of each, by its digest.
        refitted: The cells whose method was fitted or measured again.
    """
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    rows = {
        cell: JudgedRow(
            records={record.evaluator: tiers[str(record.digest)] for record in row},
            controls={other: fingerprint(cells[other]) for other in _controls(row[0], cells)},
            protocol=_protocol(row),
            said=sorted(unchecked(row, tiers, refitted=cell in refitted)),
        )
        for cell, row in cells.items()
    }
    return Verdict(
        bundle=bundle, rows=rows, protocol=PROTOCOL, verified_by=f"veil-bench {version('veil-bench')}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _protocol(records: Sequence[Record]) -> int:
    """The protocol number of all records, or 0 if they differ."""
    numbers = {record.inputs.get("protocol") for record in records}
    (number,) = numbers if len(numbers) == 1 else (0,)
    return number if isinstance(number, int) else 0


def _controls(record: Record, cells: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    """The cells of reference methods on the same choice of data."""
    if record.method.role is None:
        for cell, (other, *_) in cells.items():
            if other.method.role is not None and other.choice == record.choice:
                yield cell


def unchecked(records: Sequence[Record], tiers: Mapping[str, Judged], *, refitted: bool) -> Iterator[str]:
    """The parts of a row that stay its author's word."""
    levels = {tiers[str(record.digest)].tier for record in records}
    if levels == {Tier.SEALED}:
        return
    if Tier.SELF_REPORTED in levels:
        yield "figures"
    yield "machine, versions, commit and times"
    if any(record.details for record in records):
        yield "details beside figures"
    if any(record.pictures for record in records):
        yield "pictures"
    if not refitted:
        yield "data"
        if any(record.claim is not None for record in records):
            yield "formal claim"
        if any(record.scheme for record in records):
            yield "caveats and notes of the method"
