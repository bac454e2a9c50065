"""A row as plain data for the pages' scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from leaderboard.board import Row, missing
from leaderboard.entries import WORDS, Entry, short
from leaderboard.escapes import page
from leaderboard.lines import UTILITY, Line
from leaderboard.repeat import command, cost

DRAWN = (
    *UTILITY, "reid-auc", "guesswork", "person-risk", "membership-auc", "member-risk",
    "nearest-neighbour-distance",
)  # fmt: skip
"""Figures that are drawn and chosen by."""


def brief(line: Line) -> dict[str, JsonValue]:
    """A row in a few figures; scripts hold all rows so.

    Of a figure: value, interval, chance; whether the attack that gave it is certified; what an attack that is not found
    beyond it, null where none did; and whether an attack stopped that might have. `useful` names the figure that stands
    for its utility, as on the board.
    """
    figures: dict[str, JsonValue] = {}
    for name in DRAWN:
        entry = line.row.entries.get(name)
        if entry is not None and entry.score is not None:
            score = entry.score
            told: list[JsonValue] = [_short(each) for each in (score.value, score.low, score.high, score.null)]
            figures[name] = [*told, entry.certified, _short(_beyond(line.row, entry)), entry.incomplete]
    row, claim = line.row, line.row.claim
    shown = None if row.audited is None else row.audited.empirical
    return {
        "id": line.id, "method": row.method, "told": line.told, "set": line.section, "preset": row.preset,
        "seed": row.seed, "verdict": line.standing.word, "sign": line.standing.sign, "kind": line.kind,
        "reference": line.reference, "tier": line.tier.word, "vouched": row.vouched, "said": list(row.said),
        "claim": line.claim, "unrated": row.unrated,
        "useful": "" if line.utility is None else line.utility.column.name,
        "epsilon": None if claim is None else [claim.epsilon, claim.derived, shown, claim.per, claim.whole],
        "figures": figures,
    }  # fmt: skip


def _beyond(row: Row, entry: Entry) -> float | None:
    """The worst figure of uncertified attacks, if worse than the certified one."""
    if not entry.attacked or not entry.certified or entry.score is None:
        return None
    name, sign = entry.column.name, 1 if entry.column.better == "higher" else -1
    counted = {each.evaluator for tried in (row.panel, row.membership) for each in tried.members if each.certified}
    others = [record for record in row.records if record.attack is not None and record.evaluator not in counted]
    found = [record.scores[name].value for record in others if name in record.scores]
    worst = min(found, key=lambda value: sign * value, default=entry.score.value)
    return worst if sign * worst < sign * entry.score.value else None


def full(line: Line, tests: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, JsonValue]:
    """A row with all its figures, and reasons for missing ones.

    Args:
        line: The row.
        tests: How it differs from another, by the other's id and metric: `leaderboard.comparison.Difference` as data.
    """
    row = line.row
    return {
        **brief(line),
        "data": line.data,
        "label": row.label,
        "sentence": line.standing.sentence,
        "caveat": row.caveat,
        "keys": row.keys,
        "device": line.device,
        "cost": cost(row),
        "date": line.date,
        "audit": "" if row.audited is None else row.audited.sentence,
        "command": command(row),
        "entries": [_entry(entry) for entry in row.entries.values() if entry.score is not None],
        "ranks": {name: list(ranks) for name, ranks in line.ranks.items()},
        "reasons": [
            [WORDS[status], ", ".join(map(short, what)), why] for _, status, why, what in missing([row])
        ],
        "tests": {
            other: {name: {what: _short(value) for what, value in each.items()} for name, each in found.items()}
            for other, found in tests.items()
        },
    }  # fmt: skip


def dumped(value: JsonValue) -> str:
    """ASCII JSON that may stand in a script or a page."""
    return json.dumps(_harmless(value), sort_keys=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _harmless(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {page(name): _harmless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_harmless(each) for each in value]
    return page(value) if isinstance(value, str) else value


def _entry(entry: Entry) -> dict[str, JsonValue]:
    column = entry.column
    made: dict[str, JsonValue] = {
        "name": column.name, "title": column.title, "group": column.group, "better": column.better,
        "digits": column.digits, "text": entry.text, "interval": entry.interval, "chance": entry.null,
    }  # fmt: skip
    marks = [
        *(["at chance"] if entry.against_null == "inside" else []),
        *([] if entry.certified else ["not certified"]),
        *(["not rated"] if entry.unrated else []),
        *(["an attack stopped"] if entry.incomplete else []),
    ]
    return made | {"by": short(entry.by) if entry.attacked else "", "marks": list(marks)}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.9g}")  # more than is printed, or it would be rounded twice
