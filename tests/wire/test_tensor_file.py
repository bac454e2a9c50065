"""Files of tensors are those of safetensors, whatever is written, and are read without a copy of what is large."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.wire.tensor_file import pack_tensors, read_tensor, read_tensors, unpack_tensors, write_tensors

MIXED = {
    "a": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "whole": torch.arange(5),
    "number": torch.tensor(3.5),
    "none": torch.zeros(0, 2),
    "turned": torch.arange(24.0).view(4, 6).T,
    "mask": torch.tensor([True, False]),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "wide": torch.ones(7, dtype=torch.float64),
}
LARGE = np.random.default_rng(0).integers(0, 256, (300, 2, 5, 5), dtype=np.uint8)


def test_the_bytes_are_those_that_safetensors_writes(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("wb") as file:
        write_tensors(file, MIXED)
    save_file({name: tensor.contiguous() for name, tensor in MIXED.items()}, tmp_path / "theirs")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_rows_are_written_as_they_are_stored_and_read_where_they_lie(tmp_path: Path) -> None:
    budget = Budget(100_000, tmp_path / "own")
    index = torch.arange(299, 99, -1)
    pack_tensors({"rows": Rows.of(LARGE, budget, divisor=255.0, index=index), **MIXED}, tmp_path / "file")
    expected = torch.from_numpy(LARGE)[index]
    assert torch.equal(load_file(tmp_path / "file")["rows"], expected)
    for found in (
        read_tensors(tmp_path / "file", budget), unpack_tensors(tmp_path / "file", 1 << 30, budget),
        {**MIXED, "rows": read_tensor(tmp_path / "file", "rows", budget)},
    ):  # fmt: skip
        assert [name for name, tensor in found.items() if isinstance(tensor, Rows)] == ["rows"]
        assert torch.equal(found["rows"][50:60], expected[50:60])
        assert all(torch.equal(found[name], tensor) for name, tensor in MIXED.items())


def test_what_came_stays_as_it_came_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    path, budget = tmp_path / "file", Budget(1000, tmp_path)
    pack_tensors({"rows": torch.ones(500, 4)}, path)
    found = unpack_tensors(path, 1 << 20, budget)["rows"]
    with path.open("r+b") as file:
        file.seek(-400, 2)
        file.write(bytes(400))
    path.unlink()
    assert isinstance(found, Rows)
    assert float(found.sum()) == 2000
    assert list(tmp_path.iterdir()) == []  # the copy has no name


def test_computed_rows_are_written_as_what_they_are(tmp_path: Path) -> None:
    computed = Rows.of(LARGE, Budget(50_000), divisor=255.0).flatten(1).double() - 1
    with (tmp_path / "file").open("wb") as file:
        write_tensors(file, {"x": computed})
    assert torch.equal(
        load_file(tmp_path / "file")["x"], torch.from_numpy(LARGE.reshape(300, -1) / np.float32(255)).double() - 1
    )


def test_a_kind_without_a_name_is_refused() -> None:
    with (
        tempfile.TemporaryFile() as file,
        pytest.raises(ValueError, match=r"tensor x cannot be written: torch.complex64"),
    ):
        write_tensors(file, {"x": torch.ones(2, dtype=torch.complex64)})
