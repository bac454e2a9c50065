"""Rows of the board from records, as typed data.

    for row in ordered(rows(records), "reid-auc"):
        entry = row.entries["reid-auc"]
        print(row.label, row.preset, row.seed, entry.text, entry.interval, entry.null, entry.by)

Nothing here reads a file or a clock: the same records give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from bench.contract.metric import GROUPS
from bench.results.records import ClaimRecord, DatasetRecord, Record, Status
from leaderboard.claims import METRIC, SURE, CountsError, Verdict, at, verdict
from leaderboard.entries import Column, Entry, columns, entry, number, reason
from leaderboard.honesty import unrated
from leaderboard.names import digest, label, slug
from leaderboard.panel import Panel, membership_panel, not_rated, panel
from leaderboard.reach import MEMBERSHIP, PAIRS, Ladder, Step, shipped, steps
from leaderboard.versions import by_earlier_code


@dataclass(frozen=True)
class Row:
    """One method with its parameters on one data set, preset and seed.

    Args:
        dataset: The data set's name.
        data: The data set as scored; None where no evaluator got as far as reading it.
        method, parameters, label: The method; `label` is both as the command line takes them.
        preset, seed, cell: Which run.
        choice: As in the records.
        keys: How many keys the attacks were scored on; other evaluators may use fewer, as their records say.
        unrated: Why its privacy figures are not rated; empty where they are.
        entries: One entry a metric, weakest over the attacks; keys are metric names in column order.
        attacks: One set of entries an attack that matches pairs, by evaluator name; keys as in `entries`.
        panel: Which attacks that match pairs count, and what may be said of the method.
        membership: The same of attacks that tell members.
        claim, claim_text: The formal claim, and it in words.
        audited: The claim beside what an audit has shown; None without a claim.
        timed_on: The machine that throughput was measured on; empty where unknown.
        earlier: The records of the row that earlier code computed, by evaluator name.
        records: Everything the row was made of, by evaluator name.
        vouched: Whether it is the board's own, or a verifier measured some of it again: what others handed in says
            nothing of any other row until then.
        said: What only its author states of it, in a few words each.
    """

    dataset: str
    data: DatasetRecord | None
    method: str
    parameters: Mapping[str, JsonValue]
    label: str
    preset: str
    seed: int
    choice: Mapping[str, str | int | bool | None]
    keys: int
    cell: str
    unrated: str
    entries: Mapping[str, Entry]
    attacks: Mapping[str, Mapping[str, Entry]]
    panel: Panel
    membership: Panel
    claim: ClaimRecord | None
    claim_text: str
    audited: Verdict | None
    timed_on: str
    earlier: frozenset[str]
    records: tuple[Record, ...] = field(repr=False)
    vouched: bool = True
    said: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The row's name in addresses and anchors, the same in every build."""
        return f"{slug(self.method)[:40].strip('-')}-{digest(f'{self.dataset}/{self.cell}', 12)}".lstrip("-")

    @property
    def created(self) -> str:
        """When the last of its records was made, in UTC."""
        return max(record.created for record in self.records)

    @property
    def device(self) -> str:
        """The kind of device that it ran on: cpu or cuda."""
        return self.records[0].device

    @property
    def caveat(self) -> str:
        """The fitted method's caveat on its figures; empty if it has none."""
        return next((record.caveat for record in self.records if record.caveat), "")


def rows(
    records: Iterable[Record], folders: Mapping[str, str] | None = None, pool: Iterable[Record] = (),
    shown: Sequence[Column] | None = None, ladder: Sequence[Step] | None = None, theirs: Set[str] = frozenset(),
) -> list[Row]:  # fmt: skip
    """One row a cell, ordered; records with `limit` are left out.

    Args:
        records: In any order.
        folders: Cell to data-set name, for cells that failed before they read their data.
        pool: More records of the same results, where controls of the attacks are looked for, and their reach instead of
            in `records`.
        shown: The columns; None for those that the records describe.
        ladder: Where the reach of attacks is looked for; None for these records.
        theirs: Digests of controls that only the author of the rows measured.
    """
    accepted = [record for record in records if record.limit is None]
    more = list(pool)
    known = [*accepted, *more]
    climbed = Ladder([*(steps(more or accepted) if ladder is None else ladder), *shipped()])
    shown = columns(accepted) if shown is None else shown
    cells: dict[tuple[str, ...], list[Record]] = {}
    names = {record.cell: record.dataset.name for record in accepted if record.dataset}
    for record in accepted:
        dataset = names.get(record.cell) or (folders or {}).get(record.cell) or "data set not read"
        run = (record.preset, f"{record.seed:020d}", record.cell)
        cells.setdefault((dataset, record.method.name, label(record), *run), []).append(record)
    controls: dict[str, list[Record]] = {}
    for record in known:  # only references on the same data are looked at: a search of all takes the square of them
        if record.method.role is not None:
            controls.setdefault(_place(record), []).append(record)
    made, earlier = [], by_earlier_code(known)
    for key in sorted(cells):
        mine = sorted(cells[key], key=lambda record: record.evaluator)
        near = [other for place in sorted({_place(record) for record in mine}) for other in controls.get(place, ())]
        tried, told = panel(mine, near, climbed, theirs), membership_panel(mine, near, theirs)
        made.append(_row(key[0], mine, tried, told, shown, earlier))
    return made


def _place(record: Record) -> str:
    """Choice and data fingerprints, which a record shares with its controls."""
    return json.dumps([record.choice, record.dataset and record.dataset.fingerprints], sort_keys=True)


def _row(
    dataset: str, records: Sequence[Record], tried: Panel, told: Panel, shown: Sequence[Column],
    earlier: Set[tuple[str, str]],
) -> Row:  # fmt: skip
    first = records[0]
    certified = {member.evaluator for member in (*tried.members, *told.members) if member.certified}
    data = next((record.dataset for record in records if record.dataset), None)
    claim = next((record.claim for record in records if record.claim), None)
    attacks = [record for record in records if record.kind == PAIRS]
    audit = next((record for record in records if record.kind == "audit" and record.status == "ok"), None)
    timed = next((record for record in records if record.kind == "throughput" and record.status == "ok"), None)
    why = unrated(records)

    def marked(made: Entry) -> Entry:
        return replace(made, unrated=why) if made.attacked else made

    return Row(
        dataset=dataset,
        data=data,
        method=first.method.name,
        parameters=first.method.parameters,
        label=label(first),
        preset=first.preset,
        seed=first.seed,
        choice=first.choice,
        keys=(attacks or [record for record in records if record.kind == MEMBERSHIP] or records)[0].keys,
        cell=first.cell,
        unrated=why,
        entries={column.name: marked(entry(records, column, certified)) for column in shown},
        attacks={
            record.evaluator: {c.name: marked(entry([record], c, certified)) for c in shown if c.name in record.metrics}
            for record in attacks
        },
        panel=not_rated(tried, why),
        membership=not_rated(told, why),
        claim=claim,
        claim_text=claim_text(claim, reached=any(record.status == "ok" for record in records)),
        audited=None if claim is None else _audited(claim, audit),
        timed_on=machine(timed) if timed else "",
        earlier=frozenset(record.evaluator for record in records if (record.cell, record.evaluator) in earlier),
        records=tuple(records),
    )


def _audited(claim: ClaimRecord, audit: Record | None) -> Verdict:
    """The verdict of an audit's record on the claim."""
    if audit is None or METRIC not in audit.scores:
        return verdict(claim, None, None)
    shown = sure = audit.scores[METRIC]
    bounds = [bound for bound in (claim.epsilon, claim.derived) if bound is not None]
    if bounds and shown.value > min(bounds):  # what contradicts neither bound does so with no more confidence
        with suppress(CountsError):  # then the figure speaks alone
            sure = at(audit, SURE)
    return verdict(claim, shown, sure)


def missing(board: Iterable[Row]) -> list[tuple[Row, Status, str, list[str]]]:
    """Reasons for missing figures: row, status, reason, and evaluators or metrics."""
    found: list[tuple[Row, Status, str, list[str]]] = []
    for row in board:
        reasons: dict[tuple[Status, str], list[str]] = {}
        for record in row.records:
            if record.status != "ok":
                reasons.setdefault((record.status, reason(record)), []).append(record.evaluator)
                continue
            for metric, why in sorted(record.not_applicable.items()):
                reasons.setdefault(("not-applicable", why), []).append(
                    f"{record.evaluator} ({row.entries[metric].column.title})"
                )
        found += [(row, status, why, what) for (status, why), what in sorted(reasons.items())]
    return found


def ordered(board: Iterable[Row], metric: str) -> list[Row]:
    """The rows by one metric, best for the data owner first.

    Rows without the figure come last, after those whose figure is not rated.
    """

    def place(row: Row) -> tuple[int, float]:
        found = row.entries.get(metric)
        if found is None or found.score is None:
            return 2, 0.0
        return bool(found.unrated), -found.score.value if found.column.better == "higher" else found.score.value

    return sorted(board, key=place)


def telling(row: Row, board: Iterable[Row]) -> dict[str, JsonValue]:
    """The parameters by which a row differs from others of its method."""
    twins = [other.parameters for other in board if other.method == row.method]
    return {
        name: value
        for name, value in sorted(row.parameters.items())
        if any(other.get(name) != value for other in twins)
    }


def claim_text(claim: ClaimRecord | None, *, reached: bool) -> str:
    """A formal claim in words; without `reached` it is unknown."""
    if claim is None:
        return "no claim" if reached else "not reached"
    return epsilon_text(claim.epsilon)


def epsilon_text(epsilon: float | None) -> str:
    """A bound on ε in print; None is infinity."""
    return "∞" if epsilon is None else number(epsilon, None)


def machine(record: Record) -> str:
    """Name of the processor or accelerator of a record; empty if unknown."""
    for name in ("accelerator", "processor", "device"):
        value = record.hardware.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


MAIN = frozenset({"utility-auc", "guesswork", "reid-auc", "top-1"})  # shown even where no row has a figure
FORMAL = "Formal privacy"  # the group in which claims stand beside what was shown of them
SILENT = frozenset({"not-run", "not-applicable"})  # the reasons stand below the table


def used(shown: Sequence[Column], some: Sequence[Row]) -> list[Column]:
    """The columns of a table: main ones, and those with a figure."""
    return [c for c in shown if c.name in MAIN or any(row.entries[c.name].status not in SILENT for row in some)]


def apart(shown: Sequence[Column]) -> tuple[list[Column], list[Column], list[Column]]:
    """The columns before formal claims, beside them, and after them."""
    before = GROUPS[: GROUPS.index(FORMAL)]
    beside = [column for column in shown if column.group == FORMAL]
    left = [column for column in shown if column.group in before]
    return left, beside, [column for column in shown if column.group not in (*before, FORMAL)]
