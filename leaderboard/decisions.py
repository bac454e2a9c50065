"""The decision on every row and file: `board-manifest.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from bench.results import signed_json
from bench.results.record_parts import Part
from bench.results.verdict import fingerprint
from leaderboard.board import Row
from leaderboard.intake import Intake, address
from leaderboard.row_schema import RowName, marks

NAME = "board-manifest.json"
Decision = Literal["shown", "unrated", "superseded", "refused"]


class RowDecision(RowName):
    """A row, and why it stands in its place.

    Args:
        board: The address of its board, below the site.
        reason: Of a decision other than "shown".
        marks: What a reader should know all the same: records of earlier code, of several versions.
        records: How many there are.
        digest: A hash over their digests.
    """

    board: str
    protocol: int
    decision: Decision
    reason: str
    marks: list[str]
    records: int
    digest: str


class FileDecision(Part):
    """A file, or all files of a cell, that no board shows."""

    name: str
    decision: Decision
    reason: str


class BoardManifest(Part):
    """Every row of every board, and what was left out.

    Args:
        protocol: Of the board at the root of the site.
        snapshot: A hash of all rows: two sites with the same one show the same records.
        date: When the newest record was made.
    """

    schema_version: Literal[1] = 1
    protocol: int
    snapshot: str
    date: str
    rows: list[RowDecision]
    left_out: list[FileDecision]


def decided(boards: Mapping[int, Intake], taken: Intake) -> BoardManifest:
    """The decisions on all rows, newest board first, and on refused files."""
    newest = max(boards, default=0)
    made = [_decide(row, number, newest, board) for number, board in boards.items() for row in board.rows]
    left_out = [
        FileDecision(
            name=refusal.name, decision="superseded" if refusal.why == "superseded" else "refused",
            reason=f"{refusal.why}: {refusal.reason}",
        )
        for refusal in taken.refused
    ]  # fmt: skip
    return BoardManifest(
        protocol=newest, snapshot=snapshot([row for board in boards.values() for row in board.rows]),
        date=max((each.created for each in made), default=""), rows=made, left_out=left_out,
    )  # fmt: skip


def dumps(manifest: BoardManifest) -> str:
    """The text of the file, with a digest of its own."""
    return signed_json.written(signed_json.attest(manifest.model_dump(mode="json"), NAME)).decode()


def snapshot(rows: Sequence[Row]) -> str:
    """A hash over the digests of all records: what a citation names."""
    return fingerprint(record for row in rows for record in row.records)


def _decide(row: Row, protocol: int, newest: int, board: Intake) -> RowDecision:
    decision: Decision = "shown"
    reason = ""
    if protocol != newest:
        decision, reason = "superseded", f"measured by protocol {protocol}; protocol {newest} counts now"
    elif row.unrated:
        decision, reason = "unrated", row.unrated
    return RowDecision(
        id=row.id, board="" if protocol == newest else address(protocol), dataset=row.dataset, method=row.label,
        preset=row.preset, seed=row.seed, protocol=protocol, tier=board.tier(row).word, created=row.created,
        decision=decision, reason=reason, said=list(row.said), marks=marks(row),
        records=len(row.records), digest=snapshot([row]),
    )  # fmt: skip
