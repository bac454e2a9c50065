from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made.board_records import keyed

from bench.results.records import Record
from bench.results.results import Results
from bench.wire.text import slug


def save(folder: Path, *records: Record, dataset: str = "synth-cxr") -> Results:
    """Write records into a results folder below `folder`, as the harness does."""
    results = Results(folder / "results")
    for one in records:
        results.keep(keyed(one, cell=f"{dataset}/{slug(one.cell)}"), {})
    return results


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
