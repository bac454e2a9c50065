"""Checks of a data set: it opens, as preparing it will ask, and alike each time; or it says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import cast

import numpy as np
import torch

from bench.conformance.cause import blaming
from bench.conformance.outcome import PRESET, Skip, require
from bench.contract.source import DataError, Scan, Source
from bench.data.prepare import check_scan
from bench.data.raw_files import resolve
from bench.plugins import registry
from bench.plugins.spec import PluginSpec, parse


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


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "says whose it is": _public_is_known,
    "data open or say why not": _data_open,
}
