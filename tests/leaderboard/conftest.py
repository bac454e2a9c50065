from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.results.records import Record, dumps


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes records into a results folder as the harness does, and returns the folder."""

    def save(*records: Record, folder: str = "synth-cxr") -> Path:
        for number, one in enumerate(records):
            place = tmp_path / "results" / "cells" / folder / f"cell{number:03d}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "evaluator.json").write_text(dumps(one), encoding="utf-8")
        return tmp_path / "results"

    return save
