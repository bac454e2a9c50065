"""Rows of the board from records, as typed data.

    for row in rows(records):
        entry = row.entries["reid-auc"]
        print(row.label, row.preset, row.seed, entry.text, entry.interval, entry.by)

Nothing here reads a file or a clock: the same records give the same rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic import JsonValue

from bench.contract.metric import GROUPS
from bench.evaluators.membership import ClassifierMembership
from bench.plugins import registry
from bench.plugins.registry import HOME
from bench.plugins.spec import UsageError, parse
from bench.results.consistency import consistent
from bench.results.person_text import person_texts
from bench.results.records import ClaimRecord, DatasetRecord, PluginRecord, Record, ScoreRecord, Status
from bench.types import Source
from bench.workbench.inputs import COMMITMENT, drawn_people, is_code
from leaderboard.bounds import random
from leaderboard.claims import METRIC, SURE, CountsError, Verdict, at, left_out, verdict
from leaderboard.entries import Column, Entry, columns, entry, interval, number, reason
from leaderboard.names import digest, label, slug
from leaderboard.panel import Panel, Standing, membership_panel, not_rated, panel, standing
from leaderboard.reach import MEMBERSHIP, PAIRS, Ladder, Step, shipped, steps

KIND = "honesty"
"""The evaluator that checks a method's promises."""
FIGURE = "broken-promises"
"""The metric whose parts name the promises that a method breaks."""
UTILITY = "utility-auc"
OWN_PEOPLE = "its author had the secret that draws these people: the method could carry their images, and look them up"
LOOKED_UP = "others can have these images and labels: a method could carry them, and look test images up"
MAIN = frozenset({"utility-auc", "guesswork", "reid-auc", "top-1"})  # shown even if no row has a figure
FORMAL = "Formal privacy"  # the group in which claims stand beside what was shown of them
USEFUL = (UTILITY, "linear-probe-auc", "transfer-accuracy", "detection-auc", "cadp-classifier-accuracy")
"""Metrics of utility; the first one that a row has stands for it."""
UTILITIES = frozenset({*USEFUL, "noise-robust-auc"})
SILENT = frozenset({"not-run", "not-applicable", "no-power"})  # the reasons stand below the table


@dataclass(frozen=True)
class Row:
    """One method with its parameters on one data set, preset and seed.

    Args:
        data: The data set as scored; None if no evaluator got as far as reading it.
        label: Method and parameters as the command line takes them.
        keys: How many keys the attacks were scored on; other evaluators may use fewer, as their records say.
        unrated: Why its privacy figures are not rated; empty if they are.
        entries: One entry a metric, weakest over the attacks, in column order.
        attacks: The entries of each attack that matches pairs, by evaluator.
        panel, membership: The panels of attacks that match pairs, and of those on membership.
        audited: The claim beside what an audit has shown; None without a claim.
        earlier: Evaluators whose records earlier code computed.
        records: Everything the row was made of, by evaluator name.
        public_model: The utility of a classifier of public data alone on the same data; None if it was not measured.
        looked_up: Why its utility may come from looking test images up; empty if it cannot.
        trusted: Whether it is the board's own, or a verifier measured some of it again: until then, a row that others
            handed in has no effect on any other row.
        unverified: The parts of it that only its author vouches for, in a few words each.
        tiers: How far each record was checked, by evaluator; empty for the board's own rows.
        checks: What else a verifier and the board say of it, in a sentence each.
        submissions: How many bundles with it, of any seed, were handed in; 0 for the board's own rows.
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
    throughput_machine: str
    earlier: frozenset[str]
    records: tuple[Record, ...] = field(repr=False)
    public_model: ScoreRecord | None = None
    looked_up: str = ""
    trusted: bool = True
    unverified: tuple[str, ...] = ()
    tiers: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    submissions: int = 0

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
    def standing(self) -> Standing:
        """Its verdict: kind, label, and in full."""
        return standing((self.panel, self.membership))

    @property
    def complete(self) -> bool:
        """True if every attack that applies ended, is certified, and converged.

        A release that attacks on pairs were never tried on has no complete panel, whatever its members show.
        """
        members = {one.evaluator: one for one in (*self.panel.members, *self.membership.members)}
        attacks = [one for one in self.records if one.attack is not None and one.status != "not-applicable"]
        return bool(self.panel.members) and all(
            record.status == "ok" and (member := members.get(record.evaluator)) is not None and member.certified
            and (not member.idle or random(record))
            for record in attacks
        )  # fmt: skip

    @property
    def people(self) -> list[str]:
        """The claim for people, in sentences: a person may have several images."""
        return list(person_texts(self.records))

    @property
    def caveat(self) -> str:
        """The fitted method's caveat on its figures; empty if it has none."""
        return next((record.caveat for record in self.records if record.caveat), "")


def rows(
    records: Iterable[Record], folders: Mapping[str, str] | None = None, pool: Iterable[Record] = (),
    shown: Sequence[Column] | None = None, ladder: Sequence[Step] | None = None, theirs: Set[str] = frozenset(),
    undated: Set[str] = frozenset(),
) -> list[Row]:  # fmt: skip
    """One row a cell, ordered, without limited records and contradicting figures.

    Args:
        records: In any order.
        folders: Cell to data-set name, for cells that failed before they read their data.
        pool: More records of the same results, with controls of the attacks, and their reach instead of `records`.
        shown: The columns; None for those that the records describe.
        ladder: The steps that attacks reached; None for those of these records.
        theirs: Digests of controls that only the author of the rows measured.
        undated: Digests of records that a verifier did not measure again: their dates and code are an author's word.
    """
    accepted = [consistent(record) for record in records if record.limit is None]
    more = list(pool)
    known = [*accepted, *more]
    reached = Ladder([*(steps(more or accepted) if ladder is None else ladder), *shipped()])
    shown = columns(accepted) if shown is None else shown
    cells: dict[tuple[str, ...], list[Record]] = {}
    names = {record.cell: record.dataset.name for record in accepted if record.dataset}
    for record in accepted:
        dataset = names.get(record.cell) or (folders or {}).get(record.cell) or "data set not read"
        run = (record.preset, f"{record.seed:020d}", record.cell)
        cells.setdefault((dataset, record.method.name, label(record), *run), []).append(record)
    controls: dict[str, list[Record]] = {}
    for record in known:  # only references on the same data: a search among all takes quadratic time
        if record.method.role is not None:
            controls.setdefault(_place(record), []).append(record)
    board, earlier = [], by_earlier_code(known, undated)
    for key in sorted(cells):
        mine = sorted(cells[key], key=lambda record: record.evaluator)
        near = [other for place in sorted({_place(record) for record in mine}) for other in controls.get(place, ())]
        panels = panel(mine, near, reached, theirs), membership_panel(mine, near, theirs)
        row = _powerless(_row(key[0], mine, *panels, shown, earlier), near)
        board.append(replace(row, public_model=_public_model(near), looked_up=looked_up(mine[0])))
    return board


def _powerless(row: Row, references: Sequence[Record]) -> Row:
    """The row without utilities that raw images themselves do not surely have."""
    raw = [record for record in references if record.method.role == "hides nothing" and record.status == "ok"]
    entries = dict(row.entries)
    for name in UTILITIES & entries.keys():
        score = next((record.scores[name] for record in raw if name in record.scores), None)
        if entries[name].score is not None and score is not None and not surely_useful(score):
            digits = entries[name].column.digits
            chance = (
                ""
                if score.null_low is None
                else f", and chance gives {interval(score.null_low, score.null_high, digits)}"
            )
            why = (
                f"raw images have {entries[name].column.title} {number(score.value, digits)} "
                f"({interval(score.low, score.high, digits)}){chance}: this size tells no method from another"
            )
            entries[name] = replace(entries[name], status="no-power", score=None, unrated=why)
    return replace(row, entries=entries)


def surely_useful(score: ScoreRecord) -> bool:
    """True if a figure of raw images is surely better than chance.

    It lies beyond the 95 % interval of chance, and its own interval beyond the mean of chance.
    """
    if score.null is None:
        return True
    sign = 1 if score.better == "higher" else -1
    edge, end = (score.null_high, score.low) if sign > 0 else (score.null_low, score.high)
    return (end is None or sign * end > sign * score.null) and (edge is None or sign * score.value > sign * edge)


def _public_model(references: Iterable[Record]) -> ScoreRecord | None:
    """The utility of the reference method that sees public rows only."""
    scores = (record.scores.get(UTILITY) for record in references if record.method.role == "sees public rows only")
    return next((score for score in scores if score is not None), None)


def looked_up(record: Record) -> str:
    """The reason why test images may be looked up; else empty.

    A plug-in of this project carries no data. People whom the run secret drew are not known to an author who has
    handed in the code before.
    """
    if record.method.origin == HOME:
        return ""
    source = source_of(str(record.choice.get("dataset")))
    return LOOKED_UP if source is None or (source.obtainable and drawn_people(record.choice) is None) else ""


def source_of(dataset: str) -> type[Source] | None:
    """The registered plug-in of a data set, or None.

    No file that a record names is run.
    """
    try:
        name = parse(dataset).name
        return cast("type[Source]", registry.load("datasets", name)) if name in registry.entries("datasets") else None
    except UsageError:
        return None


def _place(record: Record) -> str:
    """Choice and data fingerprints, which a record shares with its controls."""
    return json.dumps([record.choice, record.dataset and record.dataset.fingerprints], sort_keys=True)


def _keys(attacks: Sequence[Record], records: Sequence[Record]) -> int:
    """Keys of the attacks on a row, else of its figures."""
    if attacks:
        return attacks[0].keys
    replicates = (score.replicates for one in records for score in one.scores.values())
    drawn = (len(one.by_key) for one in replicates if one is not None)
    return max([*drawn, *(one.keys for one in records)])


def _row(
    dataset: str, records: Sequence[Record], pairs: Panel, membership: Panel, shown: Sequence[Column],
    earlier: Set[tuple[str, str]],
) -> Row:  # fmt: skip
    first = records[0]
    certified = pairs.certified | membership.certified
    claim = next((record.claim for record in records if record.claim), None)
    attacks = [record for record in records if record.kind == PAIRS]
    audit = next((record for record in records if record.kind == "audit" and record.status == "ok"), None)
    throughput = next((record for record in records if record.kind == THROUGHPUT and record.status == "ok"), None)
    why = unrated(records)

    def marked(one: Entry) -> Entry:
        return replace(one, unrated=why) if why and one.attacked else one

    return Row(
        dataset=dataset,
        data=next((record.dataset for record in records if record.dataset), None),
        method=first.method.name,
        parameters=first.method.parameters,
        label=label(first),
        preset=first.preset,
        seed=first.seed,
        choice=first.choice,
        keys=_keys(attacks or [record for record in records if record.kind == MEMBERSHIP], records),
        cell=first.cell,
        unrated=why,
        entries={column.name: marked(entry(records, column, certified)) for column in shown},
        attacks={
            record.evaluator: {c.name: marked(entry([record], c, certified)) for c in shown if c.name in record.metrics}
            for record in attacks
        },
        panel=not_rated(pairs, why),
        membership=not_rated(membership, why),
        claim=claim,
        claim_text=claim_text(claim, reached=any(record.status == "ok" for record in records)),
        audited=None if claim is None else _audited(claim, audit),
        throughput_machine=machine(throughput) if throughput else "",
        earlier=frozenset(record.evaluator for record in records if (record.cell, record.evaluator) in earlier),
        records=tuple(records),
    )


def _audited(claim: ClaimRecord, audit: Record | None) -> Verdict:
    """The verdict of an audit's record on the claim."""
    if audit is None or METRIC not in audit.scores:
        return verdict(claim, None, None)
    try:  # a figure below the claim needs its ceiling at that confidence, too
        return verdict(claim, audit.scores[METRIC], at(audit, SURE), left_out(audit))
    except CountsError as error:  # a figure that cannot be counted again at this confidence refutes nothing
        return verdict(claim, None, None, str(error))


def missing(board: Iterable[Row]) -> list[tuple[Row, Status, str, list[str]]]:
    """Reasons for missing figures: row, status, reason, and evaluators or metrics."""
    gaps: list[tuple[Row, Status, str, list[str]]] = []
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
        gaps += [(row, status, why, names) for (status, why), names in sorted(reasons.items())]
    return gaps


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
    """A bound on ε in print; None is infinite."""
    return "∞" if epsilon is None or math.isinf(epsilon) else number(epsilon, None)


def machine(record: Record) -> str:
    """Name of the processor or accelerator of a record; empty if unknown."""
    for name in ("accelerator", "processor", "device"):
        value = record.hardware.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


THROUGHPUT = "throughput"
"""The evaluator and the metric."""
YARDSTICK = "resnet18_images_per_second"


def relative_speed(record: Record) -> float | None:
    """A rate over the ResNet-18's of the same record; None without both."""
    score, reference = record.scores.get(THROUGHPUT), positive(record.details.get(YARDSTICK))
    return None if score is None or reference is None else float(f"{score.value / reference:.3g}")


def positive(value: object) -> float | None:
    """A finite number above 0; None for anything else in details."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < math.inf else None


def used(shown: Sequence[Column], some: Sequence[Row]) -> list[Column]:
    """The columns of a table: main ones, and those with a figure."""
    idle = {name for row in some for name, entry in row.entries.items() if entry.status == "no-power"}
    return [
        c for c in shown
        if (c.name in MAIN and c.name not in idle) or any(row.entries[c.name].status not in SILENT for row in some)
    ]  # fmt: skip


def apart(shown: Sequence[Column]) -> tuple[list[Column], list[Column], list[Column]]:
    """The columns before formal claims, beside them, and after them."""
    before = GROUPS[: GROUPS.index(FORMAL)]
    beside = [column for column in shown if column.group == FORMAL]
    left = [column for column in shown if column.group in before]
    return left, beside, [column for column in shown if column.group not in (*before, FORMAL)]


def unrated(records: Sequence[Record]) -> str:
    """The reason why a cell's privacy figures are not rated; else empty.

    Reference methods serve as controls of attacks, and are never ranked.
    """
    if records[0].method.role is not None:
        return ""
    if any(_exposed(record) for record in records):
        return "a third-party plug-in ran without a sandbox"
    if failed := _of_ours(records, lambda record: record.status in ("failed", "timed-out")):
        return f"attacks on it failed: {', '.join(failed)}"
    scored = {record.kind for record in records if record.attack is not None and record.scores}
    if refused := _of_ours(records, lambda record: record.code == "refused" and record.kind in scored):
        return f"it refused requests of attacks: {', '.join(refused)}"
    check = next((record for record in records if record.kind == KIND), None)
    figure = None if check is None else check.scores.get(FIGURE)
    if check is None or (check.status == "ok" and figure is None):
        return "the check of its promises did not run"
    if check.status == "not-applicable":  # the method releases nothing
        attacked = any(record.attack is not None and record.scores for record in records)
        return "attacks found a release, but the check of its promises found none" if attacked else ""
    if figure is None:
        return f"the check of its promises {check.status.replace('-', ' ')}"
    from bench.evaluators.honesty import Honesty  # imports SciPy, which the board of honest methods does without

    return ", ".join(Honesty.said.get(name, name) for name, part in sorted(figure.parts.items()) if part.value)


def _exposed(record: Record) -> bool:
    """True if third-party code could reach secrets, for lack of a sandbox."""
    outside = [plugin for plugin in (record.method, record.attack) if plugin is not None and plugin.origin != HOME]
    return bool(outside) and record.isolation != "sandbox"


def _of_ours(records: Sequence[Record], ended: Callable[[Record], bool]) -> list[str]:
    """This project's attacks that a third-party method may have stopped."""
    if records[0].method.origin == HOME:
        return []
    return sorted(
        {
            each.attack.name if each.attack else each.evaluator
            for each in records
            if (each.kind == ClassifierMembership.name if each.attack is None else each.attack.origin == HOME)
            and ended(each)
        }
    )


def by_earlier_code(records: Iterable[Record], undated: Set[str] = frozenset()) -> frozenset[tuple[str, str]]:
    """Cell and name of the records that older code computed.

    Pages do not know the installed code, but they see that two records of one method, attack, evaluator or metric were
    not computed alike. Records that are `undated` (digests) are older than all others.
    """
    newest: dict[tuple[str, str], tuple[str, str]] = {}
    known = list(records)
    for record in known:
        for what, code in _codes(record):
            date = "" if record.digest in undated else record.created
            newest[what] = max(newest.get(what, ("", "")), (date, code))
    return frozenset(
        (record.cell, record.evaluator)
        for record in known
        if any(code != newest[what][1] for what, code in _codes(record))
    )


def versions_text(record: Record) -> str:
    """The versions of Python and packages behind a record."""
    return ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))


def _codes(record: Record) -> Iterator[tuple[tuple[str, str], str]]:
    """Code hashes behind a record, by kind and name."""
    of = {
        "method code": _plugin(record.method),
        "attack code": "" if record.attack is None else _plugin(record.attack),
        "evaluator code": record.kind,
    }
    for name, value in record.inputs.items():
        if is_code(name) and isinstance(value, str):
            yield (name, of.get(name, "")), value


def _plugin(plugin: PluginRecord) -> str:
    """The identity of a plug-in with code of its own."""
    nested = any(isinstance(value, str) and "[" in value for value in plugin.parameters.values())
    return f"{plugin.origin} {plugin.written if nested else plugin.name}"


def mixed(records: Sequence[Record]) -> str:
    """The differing versions or run secrets of a row's records; else empty.

    Under several run secrets, an author could pick the luckiest record of each evaluator.
    """
    texts = sorted({versions_text(record) for record in records})
    secrets = {record.inputs.get(COMMITMENT) for record in records if record.dataset is not None}
    differences = [f"mixed versions: {' and '.join(texts)}"] if len(texts) > 1 else []
    if len(secrets) > 1:
        differences.append(f"mixed run secrets: {len(secrets)} of them")
    return "; ".join(differences)
