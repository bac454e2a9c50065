"""A row of the board on one line of the front page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.results.records import DatasetRecord
from bench.workbench.choice import NO_PUBLIC, balanced, collection
from leaderboard.board import Row
from leaderboard.entries import Entry
from leaderboard.intake import Tier
from leaderboard.names import digest, parameters_text, slug, unusual
from leaderboard.reach import MEMBERSHIP, PAIRS
from leaderboard.standing import Standing, standing

Kind = Literal["a row for each image", "samples of a generator", "a trained model", "unknown"]
UTILITY = ("utility-auc", "linear-probe-auc", "transfer-accuracy", "detection-auc", "cadp-classifier-accuracy")
PRIVACY = ("guesswork", "membership-auc")
PERSON = ("person-risk", "member-risk")
JUDGED = frozenset(
    {"not broken", "members not told", "dented", "members told", "broken"}
)  # verdicts that say something
TOLD = 3  # parameters that are shown whether they tell rows apart or not


@dataclass(frozen=True)
class Line:
    """One row of the board.

    Args:
        id: Made of method, data set and cell: the same in every build, and safe as a file's name and an anchor.
        row: The row.
        section: The slug of its data set.
        data: The data set's title.
        name: The same as short as it may be on this board: without parameters where no other board part has the name.
        told: Parameters that tell it from its method's other rows and usual settings, and how many keys it was scored
            on where the preset has another number, as text; empty where nothing does.
        standing: The verdict.
        utility, privacy, person: The figures that stand on the line; None where it has none of them.
        ranks: From which to which rank paired tests leave it, by metric; empty where it is not ranked.
        tier: How far it was checked by others.
    """

    id: str
    row: Row
    section: str
    data: str
    name: str
    told: str
    standing: Standing
    utility: Entry | None
    privacy: Entry | None
    person: Entry | None
    ranks: Mapping[str, tuple[int, int, int]]
    tier: Tier

    @property
    def reference(self) -> str:
        """The role of a reference method, which is never ranked; else empty."""
        return self.row.records[0].method.role or ""

    @property
    def idle(self) -> bool:
        """True if the method does not apply to the data at all."""
        return all(record.status == "not-applicable" for record in self.row.records)

    @property
    def kind(self) -> Kind:
        """The kind of release, inferred from the attacks that apply."""
        return kind(self.row)

    @property
    def device(self) -> str:
        """The kind of device that it ran on."""
        return self.row.device

    @property
    def date(self) -> str:
        """The day of its newest record."""
        return self.row.created[:10]

    @property
    def claim(self) -> str:
        """Its formal claim in the words of the filter."""
        if self.row.claim is None:
            return "none"
        if self.row.audited is not None and self.row.audited.word == "violated":
            return "violated"
        return "no finite ε" if self.row.claim.derived is None else "finite ε"

    @property
    def exposure(self) -> float | None:
        """Nearness to chance of the worst figure: 0 hides nothing, 1 chance."""
        score = None if self.privacy is None else self.privacy.score
        if score is None or score.null is None or score.null in (0.0, 1.0):
            return None
        return score.value / score.null if score.better == "higher" else (1 - score.value) / (1 - score.null)


def usually_hidden(some: Sequence[Line]) -> list[str]:
    """Columns hidden by default, because all rows agree in them."""
    runs = {(line.row.preset, line.row.seed) for line in some}
    return [*(["run"] if len(runs) == 1 else []), "device", "date"]


def kind(row: Row) -> Kind:
    """The kind of release of a row's method."""
    states: dict[str, set[str]] = {}
    for record in row.records:
        states.setdefault(record.kind, set()).add(record.status)
    if "ok" in states.get(PAIRS, ()):
        return "a row for each image"
    if "ok" in states.get(MEMBERSHIP, ()):
        return "samples of a generator"
    tried = states.get(PAIRS, set()) | states.get(MEMBERSHIP, set())
    useful = any(record.status == "ok" and record.kind in ("utility", "transfer", "audit") for record in row.records)
    return "a trained model" if tried == {"not-applicable"} and useful else "unknown"


def lines(
    parts: Sequence[Section],
    tier: Callable[[Row], Tier],
    ranks: Mapping[str, Mapping[str, tuple[int, int, int]]] | None = None,
) -> list[Line]:
    """One line a row, by data set; best verdict and utility first.

    Data sets on which attacks came to a verdict about most rows come first.

    Args:
        parts: The board cut into data sets.
        tier: How far a row was checked.
        ranks: Rank intervals by the row's cell and metric: lowest, highest, of how many.
    """
    names = Counter(part.rows[0].dataset for part in parts)
    made = []
    for part in parts:
        values, name = _values(part.rows), part.rows[0].dataset
        short = name if names[name] == 1 else part.title
        for row in part.rows:
            made.append(_line(row, part, short, values[row.method], (ranks or {}).get(row.cell, {}), tier(row)))
    told = Counter(line.section for line in made if line.standing.word in JUDGED and not line.reference)
    return sorted(made, key=lambda line: (-told[line.section], *_place(line)))


def _values(rows: Sequence[Row]) -> Mapping[str, Mapping[str, set[str]]]:
    """Every value of every parameter, by method."""
    found: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        mine = found.setdefault(row.method, {})
        for name in {*mine, *row.parameters}:
            mine.setdefault(name, set()).add(repr(row.parameters.get(name)))
    return found


def _line(
    row: Row, part: Section, name: str, values: Mapping[str, set[str]], ranks: Mapping[str, tuple[int, int, int]],
    tier: Tier,
) -> Line:  # fmt: skip
    chosen = unusual(row.records[0])
    differ = {each: value for each, value in row.parameters.items() if len(values[each]) > 1 or each in chosen}
    told = [parameters_text({each: value}) for each, value in differ.items()]
    told += [f"{row.keys} keys"] * (row.choice.get("keys") is not None)
    if len(row.parameters) <= TOLD:  # after what differs, for the end is cut off where there is little room
        alike = {each: value for each, value in row.parameters.items() if each not in differ and value is not None}
        told += [parameters_text({each: value}) for each, value in alike.items()]
    return Line(
        row.id, row, part.slug, part.title, name, ", ".join(told), standing(row),
        _first(row, UTILITY), _first(row, PRIVACY), _first(row, PERSON), ranks,
        tier,
    )  # fmt: skip


def _first(row: Row, metrics: Sequence[str]) -> Entry | None:
    """The first of these figures that a row has, or its gap."""
    asked = [row.entries[name] for name in metrics if name in row.entries and row.entries[name].status != "not-run"]
    return next((entry for entry in asked if entry.score is not None), asked[0] if asked else None)


def _place(line: Line) -> tuple[str, str, int, float, str, str]:
    score = None if line.utility is None else line.utility.score
    useful = -score.value if score is not None else 1.0
    return line.data, line.row.preset, line.standing.place, useful, line.row.label, line.id


@dataclass(frozen=True)
class Section:
    """The rows scored on one data set.

    Args:
        slug: Anchor and file stem.
        title: The data set's name, with parameters and, where another version stands beside it, its fingerprint.
        data: The data set; None where no row got as far as reading it.
        rows: In the order of the board.
        balanced: Whether surplus labels are withheld.
        splits: Per split: its name, and how many rows and people it holds in words ("300", or "300 to 1,000" where
            presets differ, else "unknown").
    """

    slug: str
    title: str
    data: DatasetRecord | None
    rows: tuple[Row, ...]
    balanced: bool
    splits: tuple[tuple[str, str, str], ...]


def sections(board: Sequence[Row]) -> list[Section]:
    """One section a data set; different fingerprints are different data sets."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in board:
        groups.setdefault(_identity(row), []).append(row)
    for key in [
        key for key in groups if not key[1]
    ]:  # cells that never read their data join it where it is clear which
        known = [other for other in groups if other[0] == key[0] and other[1]]
        if len(known) == 1:
            groups[known[0]].extend(groups.pop(key))
    made = []
    for key in sorted(groups):
        told = sorted(groups[key], key=lambda row: not row.vouched)  # others may describe data as they like
        data = next((row.data for row in told if row.data), None)
        title = key[0]
        if data and data.parameters:
            title += f" [{parameters_text(data.parameters).replace(',', ', ')}]"
        if data and sum(other[:2] == key[:2] for other in groups) > 1:
            title += f" · {data.fingerprint[:8]} · "
            title += (
                "no public rows" if data.public == NO_PUBLIC else f"public {data.public} {data.public_fingerprint[:8]}"
            )
        made.append(
            Section(
                f"{slug(key[0])[:40]}-{digest('/'.join(key))}",
                title,
                data,
                tuple(groups[key]),
                balanced(groups[key][0].choice),
                _splits(groups[key]),
            )
        )
    return made


def _identity(row: Row) -> tuple[str, ...]:
    if row.data is None:
        return (row.dataset, "")
    told = json.dumps(collection(row.choice, row.data))
    return (row.dataset, json.dumps(row.data.parameters, sort_keys=True), told)


def _splits(rows: Sequence[Row]) -> tuple[tuple[str, str, str], ...]:
    seen = [row.data for row in rows if row.data]
    usual = ("public", "private", "control", "test")
    found = {name for data in seen for name in data.rows}
    names = [name for name in usual if name in found] + sorted(found.difference(usual))
    return tuple(
        (name, _range([data.rows.get(name) for data in seen]), _range([data.subjects.get(name) for data in seen]))
        for name in names
    )


def _range(counts: Sequence[int | None]) -> str:
    known = sorted({count for count in counts if count is not None})
    if not known:
        return "unknown"
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
