"""Replicates that a forger may put into a record: what no figure can be is refused when it is read."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from pydantic import ValidationError

from bench.results.record_parts import ReplicatesRecord


def written(by_key: list[float], table: list[list[float]], scale: str = "plain") -> str:
    content = base64.b64encode(np.asarray(table, dtype="<f4").tobytes()).decode()
    return json.dumps({"by_key": by_key, "resampled": content, "degrees": 5, "people": "0" * 16, "scale": scale})


def test_a_table_is_read_as_it_was_written() -> None:
    found = ReplicatesRecord.model_validate_json(written([1.0, 2.0], [[1, 1.5], [2, 2.5]], "log")).read()
    assert (found.by_key, found.resampled) == ([1.0, 2.0], [[1.0, 1.5], [2.0, 2.5]])


@pytest.mark.parametrize(
    ("by_key", "table", "scale"),
    [
        ([1.0, 2.0], [[1], [2]], "plain"),
        ([1.0, 2.0], [[1, 1, 1]], "plain"),
        ([0.0, 1.0], [[1, 1], [1, 1]], "log"),
        ([1.0, 1.0], [[1, -1], [1, 1]], "log"),
        ([1e308, 1.0], [[1, 1], [1, 1]], "plain"),
        ([1.0, 1.0], [[3e38, 1], [1, 1]], "plain"),
        ([1.0, 1.0], [[float("nan"), 1], [1, 1]], "plain"),
    ],
)
def test_what_could_not_be_compared_is_refused(by_key: list[float], table: list[list[float]], scale: str) -> None:
    with pytest.raises(ValidationError, match=r"resample"):
        ReplicatesRecord.model_validate_json(written(by_key, table, scale))
