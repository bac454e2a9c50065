"""A cell of the benchmark (method x data set x preset x seed), its evaluators, and the content keys of its stages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from bench.contract.source import Source
from bench.plugins import registry
from bench.plugins.registry import without_paths
from bench.plugins.slug import slug
from bench.plugins.source_hash import modules_hash, plugin_hash, source_hash
from bench.plugins.spec import PluginSpec, parameters
from bench.results.records import DatasetRecord, Kind, PluginRecord
from bench.types import Attack, Method, Plugin
from bench.workbench.presets import PRESETS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PROTOCOL = 1
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Place:
    """Where things lie on this machine; no figure depends on it."""

    results: Path
    cache: Path
    roots: tuple[Path, ...]

    @property
    def artefacts(self) -> Path:
        """Fitted schemes and releases."""
        return self.results / "artefacts"


@dataclass(frozen=True)
class DataChoice:
    """Which rows are scored: everything that decides them.

    Args:
        dataset: The private data set.
        public: The public one; None stands for the one that the data set names.
        size: Side in pixels; None stands for the data set's own.
        skip_corrupt: Leave unreadable images out.
        preset, seed, limit: They size and draw the splits.
        features: The extractor that turns images into the rows that methods get; None leaves rows as they are.
        scored_in: The extractor through which linear probes and figures on sets see raw and released images; None
            leaves them as they are.
        balanced: Whether a random surplus of labels is withheld, so that each finding is as often yes as no (Syfer).
        weights: The extractor's own word (`Extractor.stamp`) on the file that its parameters name: which weights these
            are, wherever they lie. None where they name none.
    """

    dataset: PluginSpec
    public: PluginSpec | None
    size: int | None
    skip_corrupt: bool
    preset: str
    seed: int
    limit: int | None
    features: PluginSpec | None = None
    scored_in: PluginSpec | None = None
    balanced: bool = True
    weights: str | None = None


@dataclass(frozen=True)
class Cell:
    """One method on one choice of data, on one kind of device."""

    method: PluginSpec
    data: DataChoice
    device: str

    @property
    def folder(self) -> str:
        """Where its records lie below `cells/`: readable, and unique through a short hash of the whole cell."""
        # Without what was not asked for, so that results of earlier versions stay where they are.
        usual = ", features=None", ", scored_in=None", ", balanced=True", ", weights=None"
        features, scored_in = (each and without_paths(each) for each in (self.data.features, self.data.scored_in))
        placeless = replace(self, data=replace(self.data, features=features, scored_in=scored_in))
        asked = reduce(lambda text, part: text.replace(part, ""), usual, repr(placeless))
        whole = hashlib.sha256(asked.encode()).hexdigest()[:8]
        name = f"{slug(self.method.shown)}--{self.data.preset}-seed{self.data.seed}--{whole}"
        dataset = self.data.dataset
        # An argument that never enters a record (a path) stays out of the folder's name, which does.
        shown = dataset.argument if dataset.argument and not _confidential(dataset) else ""
        return f"{slug(f'{dataset.name}-{shown}' if shown else dataset.name)}/{name}"

    def build(self) -> Method:
        """The method, sized for the preset."""
        return cast(Method, registry.build("methods", self.method, self.data.preset))


@dataclass(frozen=True)
class Evaluator:
    """One thing that is measured on a cell, with a record of its own."""

    kind: Kind
    attack: PluginSpec | None
    metrics: tuple[str, ...]

    @property
    def name(self) -> str:
        """File name of its record, without the ending."""
        return self.kind if self.attack is None else f"{self.kind}-{slug(self.attack.shown)}"

    def build(self, preset: str) -> Attack | None:
        """The attack, sized for the preset."""
        return None if self.attack is None else cast(Attack, registry.build("attacks", self.attack, preset))


def _confidential(dataset: PluginSpec) -> bool:
    return bool(cast("type[Source]", registry.load("datasets", dataset.name)).confidential)


def plugin_record(group: registry.Group, spec: PluginSpec, plugin: Plugin) -> PluginRecord:
    """A method or attack as it ran."""
    return PluginRecord(
        name=plugin.name,
        parameters=cast(dict[str, JsonValue], parameters(plugin)),
        source=plugin.source,
        code=plugin_hash(plugin),
        origin=registry.origin(group, spec.name),
        role=vars(type(plugin)).get("role"),  # a method derived from a reference method is none itself
    )


def to_fit(method: Method) -> Method:
    """The method that is fitted: parameters that fit does not read stand at their defaults."""
    stands = {field.name: field.default for field in fields(cast("DataclassInstance", method))}
    return cast(Method, replace(cast("DataclassInstance", method), **{name: stands[name] for name in method.unlearned}))


def fit_inputs(cell: Cell, data: DatasetRecord) -> dict[str, JsonValue]:
    """Everything a fitted scheme depends on, before `Method.load` adds what need not be learned."""
    return _method_inputs(cell, data, to_fit(cell.build()))


def _method_inputs(cell: Cell, data: DatasetRecord, built: Method) -> dict[str, JsonValue]:
    method = plugin_record("methods", cell.method, built)
    features = {} if data.features is None else {"features": data.features.fingerprint}
    balanced = {} if data.balanced else {"balanced": False}
    return {
        **features,
        **balanced,
        "protocol": PROTOCOL,
        "method": method.name,
        "method parameters": method.parameters,
        "method code": method.code,
        "data": data.fingerprint,
        "public data": data.public_fingerprint,
        "rows": cast(dict[str, JsonValue], data.rows),
        "splits code": modules_hash(HERE.parent / "data" / "splits.py"),
        "seed": cell.data.seed,
        "limit": cell.data.limit,
        "device": cell.device,
        "torch": version("torch"),
    }


def release_inputs(cell: Cell, data: DatasetRecord, key: int) -> dict[str, JsonValue]:
    """Everything the sealed release under one key depends on."""
    return {**_method_inputs(cell, data, cell.build()), "key": key, "release code": modules_hash(HERE / "workbench.py")}


def evaluator_inputs(cell: Cell, data: DatasetRecord, evaluator: Evaluator) -> dict[str, JsonValue]:
    """Everything a record depends on."""
    attack = evaluator.build(cell.data.preset)
    if attack is not None and evaluator.attack is not None:
        record = plugin_record("attacks", evaluator.attack, attack)
        attacking: dict[str, JsonValue] = {
            "attack": record.name,
            "attack parameters": record.parameters,
            "attack code": record.code,
        }
    else:
        attacking = {}
    scored_in = {} if data.scored_in is None else {"scored in": data.scored_in.fingerprint}
    metrics = {f"metric {name}": source_hash(registry.load("metrics", name)) for name in sorted(evaluator.metrics)}
    preset = cast(dict[str, JsonValue], json.loads(json.dumps(asdict(PRESETS[cell.data.preset]))))
    del preset["timeout"]
    return {
        **_method_inputs(cell, data, cell.build()),
        **attacking,
        **scored_in,
        **metrics,
        "preset": preset,
        "evaluator": evaluator.name,
        "evaluator code": modules_hash(HERE.parent / "runs" / "tasks.py"),
    }
