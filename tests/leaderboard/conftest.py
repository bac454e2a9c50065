from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.results.records import Record, dumps
from bench.results.results import Results


def save(folder: Path, *records: Record, dataset: str = "synth-cxr") -> Results:
    """Write records into a results folder below `folder`, as the harness does."""
    for number, one in enumerate(records):
        place = folder / "results" / "cells" / dataset / f"cell{number:03d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "evaluator.json").write_text(dumps(one), encoding="utf-8")
    return Results(folder / "results")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Results]:
    """Writes records into a results folder."""

    def here(*records: Record, folder: str = "synth-cxr") -> Results:
        return save(tmp_path, *records, dataset=folder)

    return here


@pytest.fixture(scope="module")
def write_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Results]:
    """The same for records that several tests only read."""

    def here(*records: Record) -> Results:
        return save(tmp_path_factory.mktemp("written"), *records)

    return here
