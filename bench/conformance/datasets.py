"""Checks of a data set: it opens, or says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import torch

from bench.conformance.outcome import PRESET, Skip, require
from bench.contract.source import DataError, Source
from bench.data.roots import resolve
from bench.plugins import registry
from bench.plugins.spec import PluginSpec


def _data_open(spec: PluginSpec, device: torch.device) -> None:
    source = cast(Source, registry.build("datasets", spec, PRESET))
    try:
        scan = source.scan(resolve(), source.default_size)
    except DataError as error:
        require(len(str(error)) > 40, "the error about missing data must say what was expected and where to get it")
        raise Skip("its files are not here; the error says what was expected") from error
    n = len(scan.labels)
    require(scan.labels.shape == (n, len(scan.findings)), "labels must have one column a finding")
    require(scan.subjects is None or len(scan.subjects) == n, "subjects must have one entry a row")
    require((scan.samples is None) != (scan.paths is None), "a scan must give samples or paths, and not both")
    rows = scan.samples if scan.samples is not None else scan.paths
    require(rows is not None and len(rows) == n, "samples or paths must have one entry a row")


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {"data open or say why not": _data_open}
