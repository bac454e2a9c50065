"""What a run consists of: cells and evaluators, and how each of them stands against the records that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import yaml
from pydantic import JsonValue

from bench.contract.extractor import Extractor
from bench.plugins import registry
from bench.plugins.registry import without_paths
from bench.plugins.spec import PluginSpec, UsageError, parse
from bench.results.records import ROLES, DatasetRecord, Kind, Record, RecordError, loads
from bench.results.store import content_key, write_atomically
from bench.runs.tasks import EVIDENCE
from bench.types import Attack, Method, Role, evidence_type
from bench.workbench.cell import Cell, DataChoice, Evaluator, Place, evaluator_inputs

Overwrite = Literal["never", "failed", "always"]
State = Literal["done", "failed", "stale", "missing"]
SCORED: Mapping[Kind, Literal["pairs", "membership"]] = {"attack": "pairs", "membership": "membership"}


@dataclass(frozen=True)
class RunSpec:
    """Everything that `bench run` was asked for.

    Args:
        methods, datasets, attacks: Plug-ins as written.
        metrics: Metric names.
        public, size, skip_corrupt, preset, limit, features, scored_in, balanced: As in `DataChoice`.
        seeds: One cell each.
        device: "cpu" or "cuda".
        jobs: Worker processes at a time.
        timeout: Seconds a job; None for the preset's.
        memory: Bytes a worker.
        controls: Also run every attack on the reference methods, without which no attack is certified.
        overwrite: What to run again: nothing, what failed, or all.
        keep_releases: Keep stored releases after a cell is complete.
    """

    methods: tuple[PluginSpec, ...]
    datasets: tuple[PluginSpec, ...]
    attacks: tuple[PluginSpec, ...]
    metrics: tuple[str, ...]
    public: PluginSpec | None
    size: int | None
    skip_corrupt: bool
    preset: str
    seeds: tuple[int, ...]
    limit: int | None
    device: str
    jobs: int
    timeout: float | None
    memory: int
    controls: bool
    overwrite: Overwrite
    keep_releases: bool
    features: PluginSpec | None = None
    scored_in: PluginSpec | None = None
    balanced: bool = True


@dataclass(frozen=True)
class Standing:
    """How one evaluator of one cell stands, and why it would be run.

    `evaluator` is the one to run: with the metrics that its record already holds beside those asked for.
    """

    state: State
    reason: str
    record: Record | None
    evaluator: Evaluator


def cells(spec: RunSpec) -> list[Cell]:
    """Every cell of a run, plug-ins written in one way only; wrong names and values show before any work.

    Raises:
        UsageError: A wrong name or value.
        DataError: A file of weights that is named is not there.
    """
    found = []
    public = None if spec.public is None else registry.canonical("datasets", spec.public, spec.preset)
    features, scored_in = (
        None if each is None else registry.canonical("features", each, spec.preset)
        for each in (spec.features, spec.scored_in)
    )
    weights = next((_weights(each, spec.preset) for each in (features, scored_in) if each is not None), None)
    for dataset in (registry.canonical("datasets", each, spec.preset) for each in spec.datasets):
        for method in spec.methods:
            for seed in spec.seeds:
                choice = DataChoice(
                    dataset, public, spec.size, spec.skip_corrupt, spec.preset, seed, spec.limit, features, scored_in,
                    spec.balanced, weights,
                )  # fmt: skip
                found.append(Cell(registry.canonical("methods", method, spec.preset), choice, spec.device))
    return list(dict.fromkeys(found))


def _weights(spec: PluginSpec, preset: str) -> str | None:
    """What an extractor says of the file that it was given; None where it was given none."""
    return None if without_paths(spec) == spec else cast(Extractor, registry.build("features", spec, preset)).stamp()


def evaluators(attacks: Sequence[PluginSpec], metrics: Sequence[str], preset: str) -> list[Evaluator]:
    """One evaluator an attack, and one for each other kind of evidence that a metric needs."""
    found = []
    chosen = dict.fromkeys(registry.canonical("attacks", attack, preset) for attack in attacks)
    for kind, evidence in EVIDENCE.items():
        wanted = tuple(name for name in metrics if evidence_type(registry.load("metrics", name)) is evidence)
        if not wanted:
            continue
        if kind in SCORED:
            found += [Evaluator(kind, attack, wanted) for attack in chosen if _scores(attack) == SCORED[kind]]
        else:
            found.append(Evaluator(kind, None, wanted))
    if not found:
        raise UsageError(
            f"nothing to measure: the metrics {', '.join(metrics) or '(none)'} need an attack, and none is chosen"
        )
    return found


def _scores(attack: PluginSpec) -> str:
    return cast("type[Attack]", registry.load("attacks", attack.name)).scores


def work(spec: RunSpec) -> dict[Cell, list[Evaluator]]:
    """Every cell of a run with its evaluators: those asked for, then the controls of the attacks."""
    asked = evaluators(spec.attacks, spec.metrics, spec.preset)
    found = dict.fromkeys(cells(spec), asked)
    for kind, roles in ROLES.items():
        attacking = [evaluator for evaluator in asked if evaluator.kind == kind]
        if spec.controls and attacking:
            for cell in cells(replace(spec, methods=controls(roles))):
                found[cell] = list(dict.fromkeys([*found.get(cell, []), *attacking]))
    return found


def controls(roles: tuple[Role, Role]) -> tuple[PluginSpec, ...]:
    """The reference methods of those roles."""
    methods = (cast("type[Method]", registry.load("methods", name)) for name in registry.working("methods"))
    return tuple(PluginSpec(method.name) for method in methods if vars(method).get("role") in roles)


def record_path(place: Place, cell: Cell, evaluator: Evaluator) -> Path:
    """Where the record of an evaluator lies."""
    return place.results / "cells" / cell.folder / f"{evaluator.name}.json"


def standing(place: Place, cell: Cell, evaluator: Evaluator, data: DatasetRecord | None) -> Standing:
    """Compare the record that is there with what would be computed now; metrics beyond those asked for do no harm."""
    path = record_path(place, cell, evaluator)
    try:
        record = loads(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return Standing("missing", "never ran", None, evaluator)
    except (RecordError, OSError, UnicodeDecodeError) as error:
        return Standing("stale", str(error), None, evaluator)
    held = {name.removeprefix("metric ") for name in record.inputs if name.startswith("metric ")}
    whole = replace(evaluator, metrics=tuple(sorted({*evaluator.metrics, *held})))
    if record.status in ("failed", "timed-out"):
        return Standing("failed", f"{record.status} in {record.phase}: {record.reason}", record, evaluator)
    data = data or record.dataset
    if data is None:
        return Standing("missing", "its data were never opened", record, evaluator)
    try:
        inputs = evaluator_inputs(cell, data, whole)
    except UsageError:  # a metric of an earlier run is no longer installed
        whole, inputs = evaluator, evaluator_inputs(cell, data, evaluator)
    if record.key == content_key(inputs):
        return Standing(
            "done", record.status if record.status == "ok" else f"not applicable: {record.reason}", record, whole
        )
    return Standing("stale", "changed since: " + "; ".join(_differences(record.inputs, inputs)), record, whole)


def to_run(found: Standing, overwrite: Overwrite) -> bool:
    """Whether an evaluator is run, given how it stands."""
    if overwrite == "always":
        return True
    return found.state in ("missing", "stale") or (found.state == "failed" and overwrite == "failed")


def _differences(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> list[str]:
    """Which inputs changed, and for values (not hashes of code) from what to what."""
    before, after = _flat(old), _flat(new)
    changed = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    return [
        name
        if name.endswith("code") or name.startswith("metric ")
        else f"{name} ({before.get(name)} -> {after.get(name)})"
        for name in changed
    ] or ["how content keys are made"]


def _flat(inputs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in inputs.items():
        found |= {f"{name} {key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return found


def remember_data(place: Place, choice: DataChoice, data: DatasetRecord) -> None:
    """Keep what a data choice came to, so that a dry run knows it without opening the data."""
    write_atomically(_data_path(place, choice), data.model_dump_json())


def recall_data(place: Place, choice: DataChoice) -> DatasetRecord | None:
    """What the data choice came to when it was last opened, or None."""
    try:
        return DatasetRecord.model_validate_json(_data_path(place, choice).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _data_path(place: Place, choice: DataChoice) -> Path:
    return place.results / "data" / f"{content_key({'choice': repr(choice)})}.json"


def write_plan(place: Place, cell: Cell, planned: Sequence[Evaluator]) -> None:
    """Note what a cell consists of, adding to what was planned before; among the artefacts, for paths may be in it."""
    place.artefacts.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = place.artefacts / "plans" / f"{cell.folder}.yaml"
    known = read_plan(path)[1] if path.exists() else []
    data = cell.data
    text = yaml.safe_dump({
        "method": str(cell.method), "dataset": str(data.dataset), "public": data.public and str(data.public),
        "size": data.size, "skip_corrupt": data.skip_corrupt, "preset": data.preset, "seed": data.seed,
        "limit": data.limit, "device": cell.device,
        "features": data.features and str(data.features), "scored_in": data.scored_in and str(data.scored_in),
        "balanced": data.balanced, "weights": data.weights,
        "evaluators": [
            {"kind": each.kind, "attack": each.attack and str(each.attack), "metrics": list(each.metrics)}
            for each in {each.name: each for each in [*known, *planned]}.values()
        ],
    }, sort_keys=True)  # fmt: skip
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)


def read_plan(path: Path) -> tuple[Cell, list[Evaluator]]:
    """The cell and evaluators that `write_plan` noted."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    public, features, scored_in = (
        parse(found[name]) if found.get(name) else None for name in ("public", "features", "scored_in")
    )
    choice = DataChoice(
        dataset=parse(found["dataset"]), public=public, size=found["size"], skip_corrupt=found["skip_corrupt"],
        preset=found["preset"], seed=found["seed"], limit=found["limit"], features=features, scored_in=scored_in,
        balanced=found.get("balanced", True), weights=found.get("weights"),
    )  # fmt: skip
    planned = [
        Evaluator(each["kind"], parse(each["attack"]) if each["attack"] else None, tuple(each["metrics"]))
        for each in found["evaluators"]
    ]
    return Cell(parse(found["method"]), choice, cast(str, found["device"])), planned
