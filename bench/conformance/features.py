"""Checks of a feature extractor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import torch

from bench.conformance.outcome import PRESET, Skip, require, sample_data
from bench.contract.extractor import Embedding, Extractor, batches
from bench.contract.seal import fingerprint
from bench.contract.source import DataError
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
from bench.seeds import derive
from bench.types import Dataset, NotApplicable

TOLERANCE = 1e-4  # of the largest number: sums in another order


def _extractor(spec: PluginSpec) -> Extractor:
    return cast(Extractor, registry.build("features", spec, PRESET))


def _fit(spec: PluginSpec, public: Dataset) -> tuple[Extractor, Embedding]:
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
        vectors = _read(_fit(spec, public)[1], private.samples)  # finite, or else an error
        require(
            vectors.ndim == 2 and len(vectors) == len(private) and vectors.dtype == torch.float32,
            f"vectors must be float32 of shape ({len(private)}, d), got {vectors.dtype} {tuple(vectors.shape)} from "
            f"images of {channels} channels",
        )
        require(vectors.device.type == device.type, f"vectors must be on the device of the images, {device}")


def _inputs_stay_untouched(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    before = fingerprint(public), fingerprint(private)
    _read(_fit(spec, public)[1], private.samples)
    require((fingerprint(public), fingerprint(private)) == before, "fit or embed wrote into its input")


def _same_seed_same_bits(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    first, second = (_read(_fit(spec, public)[1], private.samples) for _ in range(2))
    require(torch.equal(first, second), "two fits with one seed gave different vectors")


def _saves_and_loads(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    extractor, fitted = _fit(spec, public)
    loaded = extractor.load(dict(fitted.state()))
    same = torch.equal(_read(fitted, private.samples), _read(loaded, private.samples))
    require(same, "an embedding and its loaded state gave different vectors")


def _rows_stand_alone(spec: PluginSpec, device: torch.device) -> None:
    public, private = (_images(seed, 1).to(device) for seed in (1, 2))
    embedding = _fit(spec, public)[1]
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
        _fit(spec, sample_data("table", seed=1).to(device))
    except NotApplicable:
        return
    require(False, "fit must raise NotApplicable for a table, whose rows are vectors already")


def _device_moves(spec: PluginSpec, device: torch.device) -> None:
    if not torch.cuda.is_available():
        raise Skip("no CUDA device here")
    public, private = (_images(seed, 1) for seed in (1, 2))
    extractor, fitted = _fit(spec, public)
    cuda = torch.device("cuda")
    loaded = extractor.load({name: tensor.to(cuda) for name, tensor in fitted.state().items()})
    require(_read(loaded, private.samples.to(cuda)).is_cuda, "vectors must be on the device of the images")


def _images(seed: int, channels: int) -> Dataset:
    grey = sample_data(seed=seed)
    return replace(grey, samples=grey.samples.repeat(1, channels, 1, 1) if channels > 1 else grey.samples)


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "vectors are well-formed": _vectors_are_well_formed,
    "inputs stay untouched": _inputs_stay_untouched,
    "same seed, same bits": _same_seed_same_bits,
    "saves and loads": _saves_and_loads,
    "rows stand alone": _rows_stand_alone,
    "refuses tables": _refuses_tables,
    "device moves": _device_moves,
}
