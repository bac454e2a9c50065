"""Checks of a metric, on evidence of the kind it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch

from bench.conformance.outcome import PRESET, ROWS, Skip, blaming, require, sample_data
from bench.contract.evaluator import NAME, check_measurement, check_pictures
from bench.contract.extractor import Embedding, Extractor, batches
from bench.contract.preset import PRESETS
from bench.contract.seal import fingerprint
from bench.contract.sound_score import sound
from bench.contract.source import DataError, Scan, Source
from bench.data.prepare import check_scan
from bench.data.raw_files import resolve
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import PluginSpec, parse
from bench.results.results import Results
from bench.seeds import derive
from bench.types import Attack, Dataset, Evaluator, Metric, NotApplicable, column_of, evidence_type
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench


def _carries_its_column(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    column_of(cls)
    better = getattr(cls, "better", None)
    require(better in ("higher", "lower"), f"{cls.__name__}.better must be 'higher' or 'lower', got {better!r}")


def _metric_is_sound(spec: PluginSpec, device: torch.device) -> None:
    cls = registry.load("metrics", spec.name)
    metric = cast("Metric[object]", registry.build("metrics", spec, PRESET))
    for evidence in _evidence(evidence_type(cls)):
        with blaming(cls.__call__):
            before = list(_bits(evidence))
            first = sound(metric(evidence))
            require(list(_bits(evidence))[: len(before)] == before, "it wrote into its evidence: work on a copy")
            require(first == metric(evidence), "the same evidence gave two different scores")


def _bits(held: object) -> Iterator[bytes]:
    """The numbers of every tensor and array in evidence, in order."""
    if isinstance(held, torch.Tensor | np.ndarray):
        yield np.asarray(held.detach().cpu() if isinstance(held, torch.Tensor) else held).tobytes()
    elif isinstance(held, Mapping):
        for value in held.values():
            yield from _bits(value)
    elif isinstance(held, Sequence) and not isinstance(held, str | bytes):
        for value in held:
            yield from _bits(value)
    elif hasattr(held, "__dict__"):
        yield from _bits(vars(held))


def _evidence(kind: type) -> Iterator[object]:
    """Small pieces of evidence of one kind; other kinds are skipped."""
    known = [cast("type[Evaluator[object]]", registry.load("evaluators", name))
             for name in registry.working("evaluators")]  # fmt: skip
    pieces = [piece for cls in known if cls.evidence is kind for piece in cls.samples()]
    if not pieces:
        raise Skip(f"no evidence of the kind {kind.__name__} at hand")
    yield from pieces


METRICS_CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "carries its column": _carries_its_column,
    "score is sound": _metric_is_sound,
}


def _data_open(spec: PluginSpec, device: torch.device) -> None:
    source, scan = _scan(spec)
    with blaming(type(source).scan):
        require(isinstance(scan, Scan), f"scan must return a Scan, got {type(scan).__name__}")
        require(scan.labels.ndim == 2, f"labels must have one column a finding, got shape {scan.labels.shape}")
        check_scan(source, scan, source.default_size)
        missing = next((path for path in scan.paths or () if not Path(path).is_file()), None)
        require(missing is None, f"scan names a file that is not there: {missing}")
        finite = scan.samples is None or bool(np.isfinite(scan.samples).all())
        require(finite, "samples must be finite numbers")
        again = _scan(spec)[1]
        differ = [each.name for each in fields(Scan) if not _alike(getattr(scan, each.name), getattr(again, each.name))]
        require(not differ, f"two scans of the same files differ in {', '.join(differ)}: seed what is drawn")


def _public_is_known(spec: PluginSpec, device: torch.device) -> None:
    source = cast(Source, registry.build("datasets", spec, PRESET))
    named = parse(source.public).name
    if named != source.name and ".py:" not in named:
        registry.load("datasets", named)  # raises with the nearest name
    require(type(source.shareable) is bool, f"shareable must be True or False, got {source.shareable!r}")


def _scan(spec: PluginSpec) -> tuple[Source, Scan]:
    source = cast(Source, registry.build("datasets", spec, PRESET))
    try:
        return source, source.scan(resolve(), source.default_size)
    except DataError as error:
        require(len(str(error)) > 40, "the error about missing data must say what was expected and where to get it")
        raise Skip("its files are not here; the error says what was expected") from error


def _alike(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b


DATASETS_CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "says whose it is": _public_is_known,
    "data open or say why not": _data_open,
}


QUICK = {"pairs": "chance", "membership": "dcr"}  # an attack that takes no time, for evaluators that need one


def _class(spec: PluginSpec) -> type[Evaluator[Any]]:
    return cast("type[Evaluator[Any]]", registry.load("evaluators", spec.name))


def _fields_fit(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    require(isinstance(getattr(cls, "evidence", None), type), f"{cls.__name__}.evidence must be the type that it gives")
    names = [field.name for field in fields(cast(Any, cls))]
    if cls.scores is None:
        require(names == [], f"only an evaluator of attacks has a field, its attack: got {names}")
        require(cls.controls is None, "only an evaluator of attacks has controls")
    else:
        require(names == ["attack"], f"an evaluator of attacks has one field, attack: got {names}")


def _keys_count(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    made = cls() if cls.scores is None else cast(Any, cls)(cast(Attack, None))
    for name, preset in PRESETS.items():
        require(made.keys(preset) >= 1, f"keys must be at least 1, got {made.keys(preset)} at preset {name}")


def _samples_are_evidence(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    samples = list(cls.samples())
    if not samples:
        raise Skip("it gives no samples, so that metrics of its evidence cannot be tried without a run")
    for sample in samples:
        require(
            isinstance(sample, cls.evidence), f"a sample must be {cls.evidence.__name__}, got {type(sample).__name__}"
        )


def _measures_a_cell(spec: PluginSpec, device: torch.device) -> None:
    """The smallest cell: `identity` on some digits, with a quick attack."""
    cls = _class(spec)
    require(NAME.fullmatch(cls.name) is not None, f"its name must be of a-z, 0-9 and single hyphens, got {cls.name!r}")
    attack = None if cls.scores is None else configure("attacks", QUICK[cls.scores], PRESET)
    choice = Choice.read({"dataset": "digits", "preset": PRESET, "limit": ROWS})
    cell = Cell(configure("methods", "identity", PRESET), choice, device.type)
    with TemporaryDirectory() as folder:
        place = Place(Results(Path(folder, "results")), Path(folder, "cache"), ())
        bench = Workbench.open(cell, place)
        evaluator = Planned(spec.name, attack, ()).evaluator
        measurement = check_measurement(evaluator, evaluator.measure(bench))
        check_pictures(evaluator.pictures(bench, measurement))


EVALUATORS_CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "fields fit": _fields_fit,
    "keys count": _keys_count,
    "samples are evidence": _samples_are_evidence,
    "measures a cell": _measures_a_cell,
}


TOLERANCE = 1e-4  # of the largest number: sums in another order


def _extractor(spec: PluginSpec) -> Extractor:
    return cast(Extractor, registry.build("features", spec, PRESET))


def _fit_extractor(spec: PluginSpec, public: Dataset) -> tuple[Extractor, Embedding]:
    extractor = _extractor(spec)
    try:
        extractor.stamp()
        return extractor, extractor.fit(public, derive(0, "fit"))
    except DataError as error:
        require(len(str(error)) > 40, "the error about missing weights must say where they were looked for")
        raise Skip(str(error)) from error


def _read(embedding: Embedding, samples: torch.Tensor) -> torch.Tensor:
    return torch.cat(list(batches(embedding, samples, who="it", device=samples.device)))


def _vectors_are_well_formed(spec: PluginSpec, device: torch.device) -> None:
    for channels in (1, 3):
        public, private = (_images(seed, channels).to(device) for seed in (1, 2))
        vectors = _read(_fit_extractor(spec, public)[1], private.samples)  # finite, or else an error
        require(
            vectors.ndim == 2 and len(vectors) == len(private) and vectors.dtype == torch.float32,
            f"vectors must be float32 of shape ({len(private)}, d), got {vectors.dtype} {tuple(vectors.shape)} from "
            f"images of {channels} channels",
        )
        require(vectors.device.type == device.type, f"vectors must be on the device of the images, {device}")


def _inputs_stay_untouched(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    before = fingerprint(public), fingerprint(private)
    _read(_fit_extractor(spec, public)[1], private.samples)
    require((fingerprint(public), fingerprint(private)) == before, "fit or embed wrote into its input")


def _same_seed_same_bits(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    first, second = (_read(_fit_extractor(spec, public)[1], private.samples) for _ in range(2))
    require(torch.equal(first, second), "two fits with one seed gave different vectors")


def _saves_and_loads(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    extractor, fitted = _fit_extractor(spec, public)
    loaded = extractor.load(dict(fitted.state()))
    same = torch.equal(_read(fitted, private.samples), _read(loaded, private.samples))
    require(same, "an embedding and its loaded state gave different vectors")


def _rows_stand_alone(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    embedding = _fit_extractor(spec, public)[1]
    with torch.no_grad():
        whole = embedding.embed(private.samples)
        alone = torch.cat([embedding.embed(row[None]) for row in private.samples[:5]])
        turned = embedding.embed(private.samples.flip(0)).flip(0)
    scale = float(whole.abs().amax().clamp_min(1e-12))
    for other, what in ((alone, "alone"), (turned, "in another order")):
        gap = float((whole[: len(other)] - other).abs().amax()) / scale
        require(gap <= TOLERANCE, f"a row read {what} differs by {gap:.2g} of the largest number (at most {TOLERANCE})")


def _refuses_tables(spec: PluginSpec, device: torch.device) -> None:
    try:
        _fit_extractor(spec, sample_data("table", seed=1).to(device))
    except NotApplicable:
        return
    require(False, "fit must raise NotApplicable for a table, whose rows are vectors already")


def _device_moves(spec: PluginSpec, device: torch.device) -> None:
    if not torch.cuda.is_available():
        raise Skip("no CUDA device here")
    public, private = (_images(seed, 1) for seed in (1, 2))
    extractor, fitted = _fit_extractor(spec, public)
    cuda = torch.device("cuda")
    loaded = extractor.load({name: tensor.to(cuda) for name, tensor in fitted.state().items()})
    require(_read(loaded, private.samples.to(cuda)).is_cuda, "vectors must be on the device of the images")


def _images(seed: int, channels: int) -> Dataset:
    grey = sample_data(seed=seed)
    return replace(grey, samples=grey.samples.repeat(1, channels, 1, 1) if channels > 1 else grey.samples)


FEATURES_CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "vectors are well-formed": _vectors_are_well_formed,
    "inputs stay untouched": _inputs_stay_untouched,
    "same seed, same bits": _same_seed_same_bits,
    "saves and loads": _saves_and_loads,
    "rows stand alone": _rows_stand_alone,
    "refuses tables": _refuses_tables,
    "device moves": _device_moves,
}
