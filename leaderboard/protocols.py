"""One board a protocol: figures of two do not compare, and a board keeps its address when a new protocol starts one."""

from __future__ import annotations

from functools import partial

from bench.results.records import Record
from leaderboard.intake import Intake


def protocol_of(record: Record) -> int | None:
    """By which protocol a record was measured; None where its data were never opened."""
    found = record.inputs.get("protocol")
    return found if type(found) is int else None


def boards(taken: Intake) -> dict[int, Intake]:
    """The records of each protocol, the newest first; what says none is the newest's. Empty without records."""
    known = {number for record in taken.records if (number := protocol_of(record)) is not None}
    if not known:
        return {0: taken} if taken.records else {}
    newest = max(known)
    return {number: taken.of(partial(_of, number, newest)) for number in sorted(known, reverse=True)}


def _of(number: int, newest: int, record: Record) -> bool:
    return (protocol_of(record) or newest) == number


def address(protocol: int) -> str:
    """Where the board of a protocol stands below the site, for good."""
    return f"protocol-{protocol}/"
