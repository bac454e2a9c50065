"""The planner: cells, evaluators, their state, and reasons to run them again.

`--dry-run`, `status` and `run` use this one planner, so that the forecast and the run agree.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import yaml
from pydantic import JsonValue

from bench.contract.evaluator import NAME
from bench.contract.source import DataError, Source
from bench.data.prepare import prepared_fingerprint
from bench.data.yaml_text import YamlError, parse_yaml
from bench.plugins import registry
from bench.plugins.configured import Configured, configure
from bench.plugins.spec import UsageError, parse
from bench.results.journal import AlteredWarning
from bench.results.records import METRIC, DatasetRecord, NewerRecordError, Record, RecordError
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.runs.cost import ROWS, Work
from bench.runs.run_spec import Overwrite, RunSpec
from bench.sandbox import FROM_WEAKEST, Isolation
from bench.types import Attack, Evaluator, Method, Role, evidence_type
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import COMMITMENT, cell_commitment, is_code, record_inputs
from bench.workbench.place import Place

Condition = Literal["done", "stale", "weaker", "changed", "unreadable", "newer", "failed", "missing"]
RUNS: Mapping[Overwrite, frozenset[Condition]] = {
    "never": frozenset({"missing"}),
    "failed": frozenset({"missing", "failed", "changed", "unreadable"}),
    "stale": frozenset({"missing", "failed", "changed", "unreadable", "stale", "weaker"}),
    "always": frozenset({"missing", "failed", "changed", "unreadable", "stale", "weaker", "done"}),
}


@dataclass(frozen=True)
class Standing:
    """The state of an evaluator of a cell, with the reason.

    Args:
        state: "stale" if earlier code computed the record; "weaker" if only its isolation was weaker than today's;
            "changed" if it is for other data, sizes, versions or metrics; "unreadable" if it was altered or is no
            record of this schema; "newer" if it is of a later schema, which is never overwritten.
        reason: In words.
        record: None if there is none that can be read.
        planned: What to run: with the metrics that its record already holds beside those asked for.
        foreign: Whether the record was made under a secret that the folder does not hold: by another person, say.
    """

    state: Condition
    reason: str
    record: Record | None
    planned: Planned
    foreign: bool = False


def cells(spec: RunSpec) -> list[Cell]:
    """Every cell of a run."""
    return list(dict.fromkeys(Cell(method, choice, spec.device) for choice in spec.choices for method in spec.methods))


def evaluators(
    attacks: Sequence[Configured[Attack]], metrics: Sequence[str], more: Sequence[str] = ()
) -> list[Planned]:
    """The evaluator of each metric's evidence: once, or once for each attack.

    `more` are evaluators beside those that are registered.
    """
    found = []
    given = set()
    wanted = {name: evidence_type(registry.load("metrics", name)) for name in metrics}
    for written in (*registry.working("evaluators"), *more):
        cls = cast("type[Evaluator[Any]]", registry.load("evaluators", written))
        asked = tuple(name for name, evidence in wanted.items() if evidence is cls.evidence)
        given.add(cls.evidence)
        if not asked:
            continue
        if cls.scores is None:
            found.append(Planned(written, None, asked))
        else:
            found += [
                Planned(written, attack, asked)
                for attack in dict.fromkeys(attacks)
                if attack.plugin.scores == cls.scores
            ]
    if homeless := [name for name, evidence in wanted.items() if evidence not in given]:
        raise UsageError(
            f"metric {homeless[0]} takes {wanted[homeless[0]].__name__}, which no evaluator provides: name the "
            "evaluator with --evaluator FILE.py:CLASS, or register it"
        )
    if not found:
        raise UsageError(
            f"nothing to measure: the metrics {', '.join(metrics) or '(none)'} need an attack, and none is selected"
        )
    return found


def idle(spec: RunSpec) -> list[str]:
    """Attacks whose scores no metric reads; empty if all were chosen."""
    at_work = {planned.attack for planned in evaluators(spec.attacks, spec.metrics, spec.evaluators)}
    found = [attack for attack in dict.fromkeys(spec.attacks) if attack not in at_work]
    if not found:  # as nearly always: else every attack would be imported to say nothing
        return []
    known = {name: cast("type[Attack]", registry.load("attacks", name)) for name in registry.own("attacks")}
    all_meant = {name for name, cls in known.items() if cls.scores == "pairs"} <= {each.name for each in spec.attacks}
    return [] if all_meant else [attack.spec.shown for attack in found]


def work(spec: RunSpec) -> dict[Cell, list[Planned]]:
    """Every cell of a run with its evaluators, controls last.

    Raises:
        UsageError: Nothing to measure, two plug-ins whose records would have one name, or a plug-in that needs public
            rows without any.
    """
    asked = evaluators(spec.attacks, spec.metrics, spec.evaluators)
    found = dict.fromkeys(cells(spec), asked)
    for choice in spec.choices:
        for attack in spec.attacks:
            choice.check_public(attack)
    _check_apart(list(found), asked)
    if not spec.controls:
        return found
    own = list(found)
    for kind in dict.fromkeys(planned.kind for planned in asked):
        attacking = [
            planned
            for planned in asked
            if planned.kind == kind and planned.attack is not None and not all(cell.refusal(planned) for cell in own)
        ]
        if attacking and (roles := attacking[0].evaluator.controls) is not None:
            for cell in cells(replace(spec, methods=controls(roles, spec.preset))):
                found[cell] = list(dict.fromkeys([*found.get(cell, []), *attacking]))
    return found


def _check_apart(found: Sequence[Cell], asked: Sequence[Planned]) -> None:
    """Raise UsageError if two cells or evaluators would share records."""
    for what, names in (("methods", [cell.folder for cell in found]), ("evaluators", [each.name for each in asked])):
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise UsageError(f"two {what} would write the records {twice[0]}: rename one of them, or run it by itself")
    for each in asked:
        if NAME.fullmatch(each.kind) is None:
            raise UsageError(f"an evaluator's name must be of a-z, 0-9 and single hyphens, got {each.kind!r}")


def controls(roles: tuple[Role, ...], preset: str) -> tuple[Configured[Method], ...]:
    """The reference methods of those roles."""
    names = registry.own("methods")
    return tuple(
        configure("methods", name, preset)
        for name in names
        if vars(registry.load("methods", name)).get("role") in roles
    )


@dataclass(frozen=True, eq=False)
class Plan:
    """A run compared with the records; made once for each command.

    `known` holds for each choice the data when they were last opened, None if never; `cells` every evaluator's state.
    """

    spec: RunSpec
    known: Mapping[Choice, DatasetRecord | None]
    cells: Mapping[Cell, tuple[Standing, ...]]

    def again(self, cell: Cell) -> list[Standing]:
        """The evaluators of a cell that are to run."""
        return [each for each in self.cells[cell] if to_run(each, self.spec.overwrite)]

    def of(self, choice: Choice) -> list[Cell]:
        """The cells of a choice of data."""
        return [cell for cell in self.cells if cell.choice == choice]

    @property
    def names(self) -> set[tuple[str, str]]:
        """Each job's folder and evaluator, as its record is named."""
        return {(cell.folder, each.planned.name) for cell, found in self.cells.items() for each in found}

    def work(self, *, kept: bool = False, besides: Set[tuple[str, str]] = frozenset()) -> list[Work]:
        """The jobs that are to run, for a forecast.

        With `kept`, those whose results are kept, too; never those `besides`, which earlier parts do.
        """
        found: list[Work] = []
        for choice, data in self.known.items():
            private = choice.sizes.private if data is None else data.rows.get("private")
            by_cell: list[list[Standing]] = []
            for cell in self.of(choice):
                asked = self.cells[cell] if kept else self.again(cell)
                by_cell.append([each for each in asked if (cell.folder, each.planned.name) not in besides])
            if not kept and not any(by_cell):
                continue
            found.append(Work("data"))
            for jobs in by_cell:
                found += [Work("fit")] if kept or jobs else []
                found += [
                    Work(each.planned.name, each.planned.evaluator.keys(choice.sizes), private or ROWS) for each in jobs
                ]
        return found


def plan_run(spec: RunSpec, results: Results) -> Plan:
    """Compare a run with the records. Raises as `work` does."""
    planned = work(spec)
    known = {
        choice: results.journal.data(data_key(choice)) for choice in dict.fromkeys(cell.choice for cell in planned)
    }
    cells = {cell: standings(results, cell, asked, known[cell.choice], spec) for cell, asked in planned.items()}
    return Plan(spec, known, cells)


def standing(
    results: Results, cell: Cell, planned: Planned, data: DatasetRecord | None, isolation: Isolation
) -> Standing:
    """Compare a record with today's inputs; additional metrics do no harm.

    `isolation` is what a run would use. A record made with less is offered for another run, by `--overwrite stale`.
    """
    try:
        record = results.record(cell.folder, planned.name)
    except FileNotFoundError:
        return Standing("missing", "never ran", None, planned)
    except NewerRecordError as error:
        return Standing("newer", str(error), None, planned)
    except (RecordError, OSError) as error:
        return Standing("unreadable", str(error), None, planned)
    # What a file's metric was measured by is known where it is asked for, and only there.
    asked = {f"{METRIC}{parse(name).shown}" for name in planned.metrics}
    held_inputs = {
        name: value
        for name, value in record.inputs.items()
        if name in asked or not (name.startswith(METRIC) and ".py:" in name)
    }
    held = {name.removeprefix(METRIC) for name in held_inputs if name.startswith(METRIC) and ".py:" not in name}
    whole = replace(planned, metrics=tuple(sorted({*planned.metrics, *held})))
    if record.status in ("failed", "timed-out"):
        return Standing("failed", f"{record.status} in {record.phase}: {record.reason}", record, whole)
    data = data or record.dataset
    if data is None:
        return Standing("missing", "its data were never opened", record, planned)
    own = cell_commitment(results, cell, data)
    under = record.inputs.get(COMMITMENT)
    commitment = under if isinstance(under, str) else own
    try:
        inputs = record_inputs(cell, data, whole, commitment)
    except UsageError:  # a metric of an earlier run is no longer installed
        whole, inputs = planned, record_inputs(cell, data, planned, commitment)
    if content_key(held_inputs) == content_key(inputs):
        if FROM_WEAKEST.index(record.isolation) < FROM_WEAKEST.index(isolation):
            reason = f"made with isolation {record.isolation}; --overwrite stale makes it again with {isolation}"
            return Standing("weaker", reason, record, whole)
        reason = record.status if record.status == "ok" else f"not applicable: {record.reason}"
        foreign = commitment != own
        return Standing("done", f"{reason}; {FOREIGN}" if foreign else reason, record, whole, foreign)
    changes = _differences(held_inputs, inputs)
    state: Condition = "stale" if changes and all(only_code for _, only_code in changes) else "changed"
    reason = "changed since: " + ("; ".join(text for text, _ in changes) or "how content keys are made")
    return Standing(state, reason, record, whole)


FOREIGN = "made under a run secret that is not in this folder"


def standings(
    results: Results, cell: Cell, asked: Sequence[Planned], data: DatasetRecord | None, spec: RunSpec
) -> tuple[Standing, ...]:  # fmt: skip
    """The state of each measurement of a cell.

    Records of one row are of one secret: if anything of it is to run under this folder's, foreign ones are made again.
    """
    found = tuple(standing(results, cell, each, data, spec.isolation) for each in asked)
    if not any(to_run(each, spec.overwrite) for each in found):
        return found
    again = f"{FOREIGN}, and the rest of its row is to be made under this folder's"
    return tuple(replace(each, state="changed", reason=again) if each.foreign else each for each in found)


def to_run(found: Standing, overwrite: Overwrite) -> bool:
    """True if an evaluator in this state is run."""
    return found.state in RUNS[overwrite]


def _differences(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> list[tuple[str, bool]]:
    """Inputs that changed, each with a flag for changes of code only."""
    before, after = _flat(old), _flat(new)
    changed = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    found = []
    for name in changed:
        code = is_code(name)
        text = name if code else f"{name} ({before.get(name)} -> {after.get(name)})"
        found.append((text, code and name in before and name in after))
    return found


def _flat(inputs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in inputs.items():
        found |= {f"{name} {key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return found


def title(cell: Cell) -> str:
    """A cell in words, for display."""
    seed = f" seed {cell.choice.seed}" if cell.choice.seed else ""
    return f"{cell.choice.dataset}{seed} | {cell.method.shown}"


def present(specs: Sequence[RunSpec], place: Place) -> tuple[list[RunSpec], Mapping[str, str]]:
    """The parts of a run without absent data, and the reasons.

    Raises UsageError if nothing is left.
    """
    absent: dict[str, str] = {}
    found = []
    for spec in specs:
        if spec.skip_absent:
            reasons = {choice: _absence(choice, place) for choice in spec.choices}
            absent |= {str(choice.dataset): reason for choice, reason in reasons.items() if reason is not None}
            spec = replace(spec, choices=tuple(choice for choice, reason in reasons.items() if reason is None))
        if spec.choices:
            found.append(spec)
    if not found:
        raise UsageError("none of the data sets is on this machine: " + "; ".join(absent.values()))
    return found, absent


def _absence(choice: Choice, place: Place) -> str | None:
    """The reason for data without files; None if they are there."""
    try:
        choice.dataset.plugin.stamp(place.roots)
        if (beside := choice.beside) is not None:
            beside.plugin.stamp(place.roots)
    except DataError as error:
        return str(error)
    return None


def unchanged(choice: Choice, place: Place, data: DatasetRecord) -> bool:
    """True if the prepared rows still have the recorded fingerprints.

    Features cannot be checked without the extractor: False.
    """
    if choice.extractor is not None or (choice.dataset.plugin.draws_people and place.results.commitment is None):
        return False

    def fingerprint(source: Source) -> str | None:
        return prepared_fingerprint(
            source, roots=place.roots, cache=place.cache, size=choice.side(source), skip_corrupt=choice.skip_corrupt,
            max_pixels=choice.max_pixels,
        )  # fmt: skip

    try:
        beside = choice.beside
        same_public = beside is None or fingerprint(beside.plugin) == data.public_fingerprint
        return same_public and fingerprint(place.source(choice.dataset)) == data.fingerprint
    except (DataError, OSError):  # opening them says what is wrong
        return False


def data_key(choice: Choice) -> str:
    """The name of a choice of data in the journal."""
    return content_key(cast(dict[str, JsonValue], choice.values()))


def write_plan(results: Results, cell: Cell, planned: Sequence[Planned]) -> None:
    """Note what a cell consists of, adding to what was planned before."""
    while not _written(results, cell, planned):
        pass  # another run has added to it just now


def _written(results: Results, cell: Cell, planned: Sequence[Planned]) -> bool:
    text, known = None, dict[str, Any]()
    try:
        text = results.journal.plan(cell.folder)
        known = {} if text is None else {each["name"]: each for each in parsed_plan(text)["evaluators"]}
    except (RecordError, YamlError) as error:
        said = f"the plan of {cell.folder}: {error}; it is written anew, with what is asked for now"
        warnings.warn(said, AlteredWarning, stacklevel=3)
    for each in planned:
        attack = None if each.attack is None else str(each.attack)
        known[each.name] = {"name": each.name, "evaluator": each.written, "attack": attack, "metrics": [*each.metrics]}
    content = {**cell.values(), "evaluators": [*known.values()]}
    return results.journal.keep_plan(cell.folder, yaml.safe_dump(content, sort_keys=True), text)


def parsed_plan(text: str) -> dict[str, Any]:
    """A parsed plan. Raises YamlError if it lists no named evaluators."""
    found = parse_yaml(text)
    listed = found.get("evaluators") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in listed
    ):
        raise YamlError("a plan must be a mapping with a list of evaluators that have names")
    return cast("dict[str, Any]", found)


FROM_A_FILE = "a plug-in from a file, which must run to be read: use --files, only in your own folders"
"""The reason for a job whose state is unknown until files may run."""


def read_plan(text: str, *, files: bool = False) -> tuple[Cell, dict[str, Planned | UsageError]]:
    """The cell of a journal's plan, and its evaluators or reasons.

    `files` allows plug-ins from files, which are run: anybody may have written a plan that names some.

    Raises:
        UsageError: The cell's own method or data cannot be had any more, or come from a file that may not be run.
    """
    found = parsed_plan(text)
    _runnable({name: value for name, value in found.items() if name != "evaluators"}, files=files)
    cell = Cell.read(found)
    planned: dict[str, Planned | UsageError] = {}
    for each in found["evaluators"]:
        try:
            _runnable(each, files=files)
            attack = configure("attacks", each["attack"], cell.choice.preset) if each["attack"] else None
            made = Planned(each["evaluator"], attack, tuple(each["metrics"]))
            registry.load("evaluators", made.written)
            for metric in made.metrics:
                registry.load("metrics", metric)
            planned[each["name"]] = made
        except UsageError as error:
            planned[each["name"]] = error
    return cell, planned


def _runnable(told: object, *, files: bool) -> None:
    """Raise UsageError if a plan names a file that may not run."""
    if not files and ".py:" in json.dumps(told, ensure_ascii=False, default=str):
        raise UsageError(FROM_A_FILE)
