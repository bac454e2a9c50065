"""Tiers of the records of a bundle: self-reported, arithmetic-checked, re-run or sealed.

Stored evidence is judged again, and its row order derived from the cell's secret, without data or GPU
(arithmetic-checked). An author who knows this check can make such evidence up. So the measurements that decide a row
are made again, with their controls and with others that are drawn at random (re-run): each record has the tier that it
was itself checked to. `bench.exchange.verify.seal` measures all under keys that the author never held (sealed).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import comb

from bench.exchange.check import Checked, Finding, check
from bench.exchange.disclosed_secrets import Disclosed
from bench.exchange.draws import Draw, DrawError, SignedDraw, parsed
from bench.exchange.evidence_check import differences, evidence_of, order_follows
from bench.exchange.recheck_fit import Refitted, disagreement, misfits, unmeasured
from bench.exchange.submit import misplaced
from bench.plugins import registry
from bench.plugins.spec import UsageError
from bench.progress import report, stage
from bench.randomness import Secret
from bench.results.bundle import DRAW, SECRETS, Bundle
from bench.results.evidence_file import EvidenceError, bound_to
from bench.results.records import Record
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, deciding, fingerprint
from bench.workbench.inputs import COMMITMENT, PROTOCOL

ARITHMETIC, REFIT, MEASURE = "figures judged again, by rows", "fit the method again", "measure again"
"""Stages of a verification."""
NO_EVIDENCE = "its evidence is not in the bundle; --rerun may draw it and measure it again"
OF_ANOTHER = "its evidence is that of another record; --rerun may draw it and measure it again"
UNBOUND = "its evidence, of an earlier version, names no record; --rerun may draw it and measure it again"
MEASURABLE = frozenset({NO_EVIDENCE, OF_ANOTHER, UNBOUND})
"""Reasons that a new measurement takes away."""
Strongest = Callable[[str], Collection[str]]
"""The attacks that most often gave the weakest figure on a data set of the board, by evaluator."""
UNDISCLOSED = (
    "keys cannot be derived: its cell's secret is not disclosed (`bench leaderboard submit --disclose`, or "
    "--disclose-to for data that may not be shared)"
)
UNDRAWN = "its people cannot be drawn: their secret is not disclosed (`bench leaderboard submit --disclose`)"
Again = Callable[[Sequence[Record], Mapping[str, Secret]], Mapping[str, Record]]
"""Measures records again under their cells' secrets (`bench.exchange.verify.run_again` in a folder of its own)."""
Recheck = Callable[[Record, Mapping[str, Secret]], Refitted | None]
"""Fits a record's method again, on people that these secrets draw; None if that is impossible here."""


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
    """The records of a cell by name, and what its checks gave.

    `unmeasured` says why records that were drawn have no new measurement.
    """

    records: dict[str, Record] = field(default_factory=dict)
    ordered: set[bool] = field(default_factory=set)
    drawn: list[str] = field(default_factory=list)
    caught: list[float] = field(default_factory=list)
    unmeasured: dict[str, str] = field(default_factory=dict)
    refitted: bool = False
    secret: Secret | None = None
    people: Mapping[str, Secret] = field(default_factory=dict)

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
    bundle: Bundle, *, secrets: Disclosed | None = None, rerun: int = 0, again: Again | None = None,
    recheck: Recheck | None = None, board: Board | None = None, strongest: Strongest | None = None,
) -> Verified:  # fmt: skip
    """Check a bundle and give each record its tier.

    Args:
        bundle: The bundle.
        secrets: Those of its cells if the author sent them separately; None takes the bundle's own.
        rerun: Random measurements of every cell to make again, beside those that decide its row, with their controls.
        again: Makes them; None opens no data, and then no "not applicable" is tried again either.
        recheck: Fits methods again, to check claims and caveats; None opens no data.
        board: The register that a draw must be of; None takes the draw's word.
        strongest: Names the attacks that are measured again in any case; None names none.

    Raises:
        BundleError: Its secrets are malformed.
    """
    checked = checked_bundle(bundle)
    if isinstance(checked, Verified):
        return checked
    secrets = secrets or Disclosed.in_bundle(bundle)
    try:
        draw = _draw_of(bundle, checked, board)
        if draw is not None:
            secrets = Disclosed(root=draw.secret)
        tiers, cells = _tiers(bundle, checked, secrets, rerun=rerun, again=again, recheck=recheck, strongest=strongest)
    except _Refused as refusal:
        return Verified((refusal.finding,), checked.findings)
    verdict = verdict_on(
        bundle.sha256, checked.records.values(), tiers, cells, None if draw is None or board is None else draw.number
    )
    return Verified((), checked.findings, verdict)


def _tiers(
    bundle: Bundle, checked: Checked, secrets: Disclosed, *, rerun: int, again: Again | None,
    recheck: Recheck | None, strongest: Strongest | None,
) -> tuple[dict[str, Judged], dict[str, _Cell]]:  # fmt: skip
    """The tier of each record by digest, and the cells."""
    records = checked.records
    held: dict[str, str] = {}  # by name, why a record stays self-reported
    for finding in checked.findings:
        held.setdefault(finding.name, f"{finding.kind}: {finding.reason}")
    cells: dict[str, _Cell] = {}
    for name, record in records.items():
        cell = cells.setdefault(record.cell, _Cell())
        cell.records[name] = record
        if (secret := secrets.of(record)) is None:
            held.setdefault(name, UNDISCLOSED)
        elif (people := secrets.people(record)) is None:
            held.setdefault(name, UNDRAWN)
        elif record.dataset is not None and record.inputs.get(COMMITMENT) != secret.commitment():
            raise _Refused(SECRETS, f"{name} was made under another secret than the one that is disclosed")
        else:
            cell.secret, cell.people = secret, people
        if (reason := held.get(record.cell, "")) != "":
            held.setdefault(name, reason)
    for number, cell in enumerate(cells.values()):
        report(ARITHMETIC, number, len(cells))
        for name, record in cell.records.items():
            if (
                name not in held
                and record.status == "ok"
                and (reason := _unchecked_arithmetic(bundle, name, record, cell))
            ):
                held[name] = reason
        if recheck is not None:
            stage(REFIT)
            _fit_again(cell, held, recheck)
    _measure_again(cells, held, rerun, again, strongest or (lambda dataset: ()))
    tiers = {
        str(record.digest): _tier(name, record, cell, held.get(name))
        for cell in cells.values()
        for name, record in cell.records.items()
    }
    return tiers, cells


@dataclass(frozen=True)
class Board:
    """A board's register of draws, and the time a bundle came.

    The time is of the board's clock. An author's word on that time would let draws be answered for ever.
    """

    register: Sequence[SignedDraw]
    received: datetime


def _draw_of(bundle: Bundle, checked: Checked, board: Board | None) -> Draw | None:
    """The draw that a bundle answers, or None. Raises _Refused."""
    if (content := bundle.files.get(DRAW)) is None:
        return None
    try:
        found = parsed(content, DRAW)
    except DrawError as error:
        raise _Refused(DRAW, str(error)) from error
    draw = found.draw
    if board is not None:
        if found.digest not in {one.digest for one in board.register}:
            raise _Refused(DRAW, f"draw {draw.number} is not in the board's register")
        if draw.is_over(board.received):
            raise _Refused(
                DRAW,
                f"draw {draw.number} had to be answered by {draw.expires}, and its bundle came at "
                f"{board.received.isoformat(timespec='seconds')}",
            )
    for name, reason in draw.faults(checked.records):
        raise _Refused(name, reason)
    return draw


def _unchecked_arithmetic(bundle: Bundle, name: str, record: Record, cell: _Cell) -> str:
    """Judge evidence again; the reason if that says nothing, else empty."""
    content = bundle.results.evidence(record)
    if content is None:
        return NO_EVIDENCE
    if (key := bound_to(content)) != record.key:
        return OF_ANOTHER if key is not None else UNBOUND
    try:
        evidence = evidence_of(record, content)
    except EvidenceError as error:
        raise _Refused(name, f"its evidence cannot be read: {error}") from error
    if apart := list(differences(record, evidence)):
        raise _Refused(name, f"its figures do not follow from its evidence: {'; '.join(apart)}")
    assert cell.secret is not None
    if (follows := order_follows(record, evidence, cell.secret)) is not None:
        cell.ordered.add(follows)
    return ""


def _fit_again(cell: _Cell, held: Mapping[str, str], recheck: Recheck) -> None:
    """Compare stated data and fitted methods with those obtained here."""
    records = {name: record for name, record in cell.records.items() if held.get(name, NO_EVIDENCE) in MEASURABLE}
    if not records or (here := recheck(next(iter(records.values())), cell.people)) is None:
        return
    for name, record in records.items():
        if (reason := next(misfits(record, here), None)) is not None:
            raise _Refused(name, reason)
    cell.refitted = True


def _measure_again(
    cells: Mapping[str, _Cell], held: dict[str, str], rerun: int, again: Again | None, strongest: Strongest
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
        if rerun:
            _draw(cell, free, rerun, strongest)
    if again is None:
        return
    for cell in cells.values():
        if not cell.reference:
            _draw_controls(cell, [other for other in cells.values() if other.reference], held)
    for cell in cells.values():
        sample |= {name: cell.records[name] for name in cell.drawn}
    secrets_of = {name: cell.secret for name, cell in cells.items() if cell.secret is not None}
    for cell in cells.values():
        secrets_of |= cell.people
    if sample:
        stage(MEASURE)
    measured = again(list(sample.values()), secrets_of) if sample else {}
    for name, record in sample.items():
        cell, here = cells[record.cell], measured.get(f"{record.cell}/{record.evaluator}")
        if here is None or unmeasured(here) is not None:
            cell.unmeasured[name] = str(unmeasured(here))
            cell.caught = []  # the probability is that of measuring all that were drawn
            if name in held or record.status == "not-applicable":
                held[name] = cell.unmeasured[name]
            continue
        if (reason := disagreement(record, here)) is not None:
            raise _Refused(name, f"measured again under its own secret, it comes out otherwise: {reason}")
        held.pop(name, None)  # a record measured again needs no evidence
        cell.refitted |= record.status == "ok"


def _draw(cell: _Cell, free: Sequence[str], count: int, strongest: Strongest) -> None:
    """Draw what decides the row, the strongest attacks, and `count` others.

    An attack whose record was made to look weak no longer decides the row by what the record says.
    """
    decides: set[str] = set()
    if not cell.reference:
        dataset = next(iter(cell.records.values())).cell.partition("/")[0]
        decides = deciding([*cell.records.values()]) | {*strongest(dataset)}
    always = sorted(name for name in free if cell.records[name].evaluator in decides)
    others = sorted(set(free) - set(always))
    drawn = min(count, len(others))
    cell.drawn = [*always, *secrets.SystemRandom().sample(others, drawn)]
    cell.caught = caught(len(others), drawn)


def caught(records: int, drawn: int) -> list[float]:
    """The probability that a random draw holds a false record.

    Of 1, of 2 and of 3 false ones; hypergeometric.

    >>> [round(each, 2) for each in caught(16, 1)], caught(2, 2), caught(0, 0)
    ([0.06, 0.12, 0.19], [1.0, 1.0], [])
    """
    return [1 - comb(records - false, drawn) / comb(records, drawn) for false in range(1, min(3, records) + 1)]


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
    return held.get(name, NO_EVIDENCE) in MEASURABLE and repeatable(record)


def repeatable(record: Record) -> bool:
    """True if a record has figures, and none of a clock."""
    try:
        evaluator = registry.load("evaluators", record.measured_by)
    except UsageError:
        return False
    return record.status == "ok" and not getattr(evaluator, "alone", False)


def _tier(name: str, record: Record, cell: _Cell, held: str | None) -> Judged:
    digest = str(record.digest)
    if held is not None:
        return _self_reported(record, held)
    missing = f"; {cell.unmeasured[name]}" if name in cell.unmeasured else ""
    if not missing and (name in cell.drawn or record.status == "not-applicable"):
        reason = "measured again" if record.status == "ok" else "tried again, and it does not apply"
        return Judged(digest=digest, tier=Tier.RE_RUN, reason=reason)
    if cell.ordered != {True}:
        reason = (
            "the order of its evidence does not follow from the run secret"
            if False in cell.ordered
            else "no evidence of its cell shows the order of the run secret"
        )
        return _self_reported(record, f"{reason}{missing or '; --rerun measures it again'}")
    return Judged(digest=digest, tier=Tier.ARITHMETIC_CHECKED, reason=f"judged again from its evidence{missing}")


def _self_reported(record: Record, reason: str) -> Judged:
    return Judged(digest=str(record.digest), tier=Tier.SELF_REPORTED, reason=reason)


def verdict_on(
    bundle: str,
    records: Iterable[Record],
    tiers: Mapping[str, Judged],
    checked: Mapping[str, _Cell] | None = None,
    draw: int | None = None,
) -> Verdict:
    """A verdict of today, by this version.

    Args:
        bundle: SHA-256 of the file.
        records: All that are judged.
        tiers: The tier of each, by its digest.
        checked: What was done with each cell.
        draw: The number of the draw that all keys follow from.
    """
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    rows = {}
    for cell, row in cells.items():
        of = (checked or {}).get(cell, _Cell())
        decides = {of.records[name].evaluator for name in of.drawn} if row[0].method.role else _decisive(row)
        decides |= {of.records[name].evaluator for name in of.unmeasured}  # none rises above what was not measured
        rows[cell] = JudgedRow(
            records={record.evaluator: tiers[str(record.digest)] for record in row},
            controls={other: fingerprint(cells[other]) for other in _controls(row[0], cells)},
            protocol=_protocol(row), said=sorted(unchecked(row, tiers, refitted=of.refitted)),
            deciding=sorted(decides), caught=of.caught, draw=draw,
        )  # fmt: skip
    return Verdict(
        bundle=bundle, rows=rows, protocol=PROTOCOL, verified_by=f"veil-bench {version('veil-bench')}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _decisive(records: Sequence[Record]) -> set[str]:
    """The records that decide a row and can be measured again."""
    return deciding(records) & {record.evaluator for record in records if repeatable(record)}


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
