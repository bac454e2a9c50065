"""What was found of records, row by row: of which records and controls a verdict speaks, and what nobody checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from importlib.metadata import version

from bench.results.records import Record
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, fingerprint
from bench.workbench.inputs import PROTOCOL


def verdict_on(
    bundle: str, records: Iterable[Record], judged: Mapping[str, Judged], refitted: Set[str] = frozenset()
) -> Verdict:
    """A verdict of today, by this version.

    Args:
        bundle: SHA-256 of the file.
        records: All that are judged.
        judged: What was found of each, by its digest.
        refitted: The cells whose method was fitted again, or measured.
    """
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    rows = {
        cell: JudgedRow(
            records={record.evaluator: judged[str(record.digest)] for record in mine},
            controls={other: fingerprint(cells[other]) for other in _controls(mine[0], cells)},
            protocol=_protocol(mine),
            said=sorted(unchecked(mine, judged, refitted=cell in refitted)),
        )
        for cell, mine in cells.items()
    }
    return Verdict(
        bundle=bundle, rows=rows, protocol=PROTOCOL, verified_by=f"veil-bench {version('veil-bench')}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _protocol(records: Sequence[Record]) -> int:
    """By which they were all measured; 0 where they do not say one, so that a verdict speaks of none of them."""
    found = {record.inputs.get("protocol") for record in records}
    (one,) = found if len(found) == 1 else (0,)
    return one if isinstance(one, int) else 0


def _controls(record: Record, cells: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    """The cells of reference methods on the same choice of data; none for a reference method itself."""
    if record.method.role is None:
        for cell, (other, *_) in cells.items():
            if other.method.role is not None and other.choice == record.choice:
                yield cell


def unchecked(records: Sequence[Record], judged: Mapping[str, Judged], *, refitted: bool) -> Iterator[str]:
    """What of a row stays its author's word, in a few words each; nothing of a sealed row, which is no author's."""
    tiers = {judged[str(record.digest)].tier for record in records}
    if tiers == {Tier.SEALED}:
        return
    if Tier.SELF_REPORTED in tiers:
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
