"""Detectors of raw images: they depend on the choice of data alone, so that they are made once for all methods."""

from __future__ import annotations

from collections.abc import Callable

from bench.results.store import Artefact, Inputs
from bench.workbench.inputs import fit_inputs
from bench.workbench.workbench import Workbench


def detector(bench: Workbench, inputs: Inputs, make: Callable[[], Artefact]) -> Artefact:
    """What `make` gives for this choice of data, seed and device, from the store where it is there.

    Args:
        bench: The cell; its method counts for nothing.
        inputs: Everything else that it depends on, its code among them.
        make: Trains it, on public and on raw private rows only.
    """
    found = fit_inputs(bench.cell, bench.record, apart=bench.apart)
    data = {name: value for name, value in found.items() if not name.startswith("method")}
    return bench.store.ensure("detectors", {**data, **inputs}, make)
