"""A bundle verified: what is wrong with it is refused, and of the rest each record is given the tier that it bears.

Stored evidence is judged again and its order derived from the run secret, without data and without a GPU. Evidence can
be made up, by whoever knows how it is checked: so that measurements which the verifier draws at random are made again
for the tier above, with the controls that certify them, and keys that the author never held for the highest
(`bench.submission.seal`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.plugins import registry
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results.bundle import SECRET, Bundle
from bench.results.evidence_file import EvidenceError
from bench.results.records import Record
from bench.results.verdict import Judged, Tier, Verdict
from bench.submission.beside import out_of_place
from bench.submission.check import check
from bench.submission.finding import REFUSED, Finding
from bench.submission.keys import order_follows
from bench.submission.refit import Refitted, misfitted
from bench.submission.replay import differences, evidence_of
from bench.submission.rerun import disagreement
from bench.submission.rows import verdict_on
from bench.workbench.inputs import COMMITMENT

BARE = "its evidence is not in the bundle; --rerun may draw it and measure it again"
Again = Callable[[Sequence[Record], Secret], Mapping[str, Record]]
"""Measures records again under a secret: `bench.submission.rerun.run_again` in a place of its own."""
Refit = Callable[[Record], Refitted | None]
"""Fits the method of a record again: `bench.submission.refit.refit`; None where that cannot be done here."""


@dataclass(frozen=True)
class Verified:
    """What came of a bundle.

    Args:
        refused: Why it is refused; empty where it is not.
        notes: What keeps records at their author's word, and what to do.
        verdict: The tier of every record; None where it is refused.
    """

    refused: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()
    verdict: Verdict | None = None


@dataclass
class _Cell:
    """The records of a cell by name, and what is known of its keys."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: set[bool] = field(default_factory=set)
    drawn: list[str] = field(default_factory=list)
    refitted: bool = False

    @property
    def reference(self) -> bool:
        """Whether it is of a method that attacks are held against."""
        return next(iter(self.records.values())).method.role is not None


class _Refused(Exception):  # noqa: N818  (an outcome, not an error)
    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def verify(
    bundle: Bundle, *, secret: Secret | None, rerun: int, again: Again | None, refit: Refit | None = None
) -> Verified:
    """Verify a bundle.

    Args:
        bundle: As it was opened.
        secret: The run secret where it came by another way; None takes the bundle's own.
        rerun: Measurements of every cell to draw and make again, each with its controls.
        again: Makes them; None where data are not to be opened: then what does not apply is not tried again either.
        refit: Fits methods again, for their claims and caveats; None where data are not to be opened.

    Raises:
        BundleError: The run secret in it is none.
    """
    checked = check(bundle.results)
    if refused := [finding for finding in checked.findings if finding.kind in REFUSED]:
        return Verified(tuple(refused), tuple(finding for finding in checked.findings if finding not in refused))
    if not checked.records:
        return Verified((Finding("altered", bundle.path.name, "it holds no record"),))
    if strange := tuple(out_of_place(bundle, checked.records)):
        return Verified(strange, checked.findings)
    known = secret or bundle.secret
    try:
        if known is not None:
            _check_secret(checked.records, known)
        judged, refitted = _judged(
            bundle, checked.records, checked.findings, known, rerun=rerun, again=again, refit=refit
        )
    except _Refused as stop:
        return Verified((stop.finding,), checked.findings)
    return Verified((), checked.findings, verdict_on(bundle.sha256, checked.records.values(), judged, refitted))


def _check_secret(records: Mapping[str, Record], secret: Secret) -> None:
    for name, record in records.items():
        if record.inputs.get(COMMITMENT) != secret.commitment():
            raise _Refused(
                Finding("altered", SECRET, f"{name} was made under another run secret than the one that is disclosed")
            )


def _judged(
    bundle: Bundle, records: Mapping[str, Record], findings: Sequence[Finding], secret: Secret | None, *, rerun: int,
    again: Again | None, refit: Refit | None,
) -> tuple[dict[str, Judged], set[str]]:  # fmt: skip
    """What is found of every record, by its digest; and the cells whose method was fitted again."""
    held: dict[str, str] = {}
    for finding in findings:
        held.setdefault(finding.name, f"{finding.kind}: {finding.reason}")
    if secret is None:
        why = "the run secret is not disclosed, so that its keys cannot be derived (`bench submit --disclose`)"
        return {str(record.digest): _word(record, held.get(name, why)) for name, record in records.items()}, set()
    cells: dict[str, _Cell] = {}
    for name, record in records.items():
        cells.setdefault(record.cell, _Cell()).records[name] = record
        if (reason := held.get(record.cell)) is not None:
            held.setdefault(name, reason)
    for cell in cells.values():
        for name, record in cell.records.items():
            if name not in held and (reason := _replayed(bundle, name, record, cell, secret)) is not None:
                held[name] = reason
        if refit is not None:
            _fit_again(cell, held, refit)
    _measure_again(cells, held, secret, rerun, again)
    judged = {
        str(record.digest): _tier(record, cell, held.get(name))
        for cell in cells.values()
        for name, record in cell.records.items()
    }
    return judged, {name for name, cell in cells.items() if cell.refitted}


def _replayed(bundle: Bundle, name: str, record: Record, cell: _Cell, secret: Secret) -> str | None:
    """Judge a record again: why it cannot be, or None. Raises _Refused where its figures are others."""
    if record.status != "ok":
        return None
    content = bundle.results.evidence(record)
    if content is None:
        return BARE
    try:
        evidence = evidence_of(record, content)
    except EvidenceError as error:
        raise _Refused(Finding("altered", name, f"its evidence cannot be read: {error}")) from error
    if apart := list(differences(record, evidence)):
        raise _Refused(Finding("altered", name, f"its figures do not follow from its evidence: {'; '.join(apart)}"))
    if (follows := order_follows(record, evidence, secret)) is not None:
        cell.keys.add(follows)
    return None


def _fit_again(cell: _Cell, held: Mapping[str, str], refit: Refit) -> None:
    """Hold what records say of their data and their fitted method against what both are here."""
    told = {name: record for name, record in cell.records.items() if held.get(name, BARE) == BARE}
    if not told or (here := refit(next(iter(told.values())))) is None:
        return
    for name, record in told.items():
        if (said := next(misfitted(record, here), None)) is not None:
            raise _Refused(Finding("altered", name, said))
    cell.refitted = True


def _measure_again(
    cells: Mapping[str, _Cell], held: dict[str, str], secret: Secret, rerun: int, again: Again | None
) -> None:
    """Try again what was said not to apply, `rerun` random measurements of every cell, and the controls of these."""
    asked: dict[str, Record] = {}
    for cell in cells.values():
        for name, record in cell.records.items():
            if name not in held and record.status == "not-applicable":
                if again is None:
                    held[name] = "that it does not apply was not tried again (`bench verify --rerun 0` does)"
                else:
                    asked[name] = record
        free = [name for name, record in cell.records.items() if _free(name, record, held)]
        cell.drawn = secrets.SystemRandom().sample(sorted(free), min(rerun, len(free)))
    if again is None:
        return
    for cell in cells.values():
        if not cell.reference:
            _draw_controls(cell, [other for other in cells.values() if other.reference], held)
    for cell in cells.values():
        asked |= {name: cell.records[name] for name in cell.drawn}
    made = again(list(asked.values()), secret) if asked else {}
    for name, record in asked.items():
        here = made.get(f"{record.cell}/{record.evaluator}")
        if (said := disagreement(record, here)) is not None:
            raise _Refused(
                Finding("altered", name, f"measured again under its own secret, it comes out otherwise: {said}")
            )
        held.pop(name, None)  # what was measured again needs no evidence
        cells[record.cell].refitted |= record.status == "ok"


def _draw_controls(cell: _Cell, references: Sequence[_Cell], held: Mapping[str, str]) -> None:
    """Have the controls of what was drawn measured again, too: an attack counts by them."""
    attacks = {cell.records[name].evaluator for name in cell.drawn if cell.records[name].attack is not None}
    choice = next(iter(cell.records.values())).choice
    for other in references:
        for name, record in other.records.items():
            wanted = record.evaluator in attacks and record.choice == choice
            if wanted and name not in other.drawn and _free(name, record, held):
                other.drawn.append(name)


def _free(name: str, record: Record, held: Mapping[str, str]) -> bool:
    """Whether a record may be drawn."""
    return held.get(name, BARE) == BARE and repeatable(record)


def repeatable(record: Record) -> bool:
    """Whether it has figures, and none of a clock."""
    try:
        cls = registry.load("evaluators", record.measured_by)
    except UsageError:
        return False
    return record.status == "ok" and not getattr(cls, "alone", False)


def _tier(record: Record, cell: _Cell, held: str | None) -> Judged:
    digest = str(record.digest)
    if held is not None:
        return _word(record, held)
    if cell.drawn:
        told = ", ".join(sorted(cell.records[each].evaluator for each in cell.drawn))
        return Judged(digest=digest, tier=Tier.RE_RUN, reason=f"drawn at random and measured again: {told}")
    if cell.keys != {True}:
        why = (
            "the order of its evidence does not follow from the run secret"
            if False in cell.keys
            else "nothing of its cell tells whether the evidence stands in the order of the run secret"
        )
        return _word(record, f"{why}; --rerun measures it again")
    how = "judged again from its evidence" if record.status == "ok" else "tried again, and it does not apply"
    return Judged(digest=digest, tier=Tier.REPLAYED, reason=how)


def _word(record: Record, why: str) -> Judged:
    """What stays its author's word."""
    return Judged(digest=str(record.digest), tier=Tier.SELF_REPORTED, reason=why)
