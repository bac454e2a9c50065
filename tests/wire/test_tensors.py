"""Tensors between processes: what is handed over comes back bit for bit, and nothing else is taken."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from bench.wire.tensor_file import KINDS, MOST_DIMENSIONS, TensorsError, pack_tensors, unpack_tensors

CAP = 1 << 20


def written(path: Path, header: Mapping[str, object], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def bits_of(tensor: torch.Tensor) -> list[int]:
    plain: list[int] = tensor.reshape(-1).clone().view(torch.uint8).tolist()
    return plain


def test_every_kind_comes_back_bit_for_bit(tmp_path: Path) -> None:
    bits = torch.arange(256, dtype=torch.uint8)
    tensors = {kind: bits.view(getattr(torch, kind)) for kind in KINDS - {"bool"}}
    tensors |= {"bool": torch.tensor([True, False]), "empty": torch.empty(0, 3), "number": torch.tensor(2.5)}
    tensors |= {"view": torch.arange(6).view(2, 3).T, "net.0.weight": torch.zeros(1).expand(4)}
    pack_tensors(tensors, tmp_path / "a")
    found = unpack_tensors(tmp_path / "a", CAP)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert bits_of(found[name]) == bits_of(tensor)


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    pack_tensors({"a": torch.zeros(1)}, tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_what_comes_back_is_no_view_of_the_file(tmp_path: Path) -> None:
    pack_tensors({"a": torch.zeros(4)}, tmp_path / "a")
    found = unpack_tensors(tmp_path / "a", CAP)
    (tmp_path / "a").write_bytes(b"\xff" * (tmp_path / "a").stat().st_size)
    assert not found["a"].any()
    found["a"] += 1  # and may be written to


@pytest.mark.parametrize("name", ["", "../a", "a/b", "a\nb", "\x1b[2J", ".a", "ü", "a" * 201])
def test_a_name_that_is_none_is_refused_on_both_sides(tmp_path: Path, name: str) -> None:
    with pytest.raises(TensorsError, match="named"):
        pack_tensors({name: torch.zeros(1)}, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    path = written(tmp_path / "b", {name: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"\0")
    with pytest.raises(TensorsError):
        unpack_tensors(path, CAP)


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(1, dtype=torch.complex64), torch.zeros(1).to_sparse(), torch.zeros([1] * (MOST_DIMENSIONS + 1))],
)
def test_a_tensor_of_another_kind_is_not_packed(tmp_path: Path, tensor: torch.Tensor) -> None:
    with pytest.raises(TensorsError):
        pack_tensors({"a": tensor}, tmp_path / "a")


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("F8_E4M3", [1], b"\0"),
        ("C64", [1], b"\0" * 8),
        ("OBJECT", [1], b"\0"),
        ("U8", [2], b"\0"),
        ("U8", [-1], b"\0"),
        ("U8", [2**63, 2], b"\0"),
        ("U8", [1] * 50_000, b"\0"),
        ("BOOL", [1], b"\x02"),
    ],
)
def test_a_file_with_other_tensors_is_refused(tmp_path: Path, dtype: str, shape: list[int], data: bytes) -> None:
    header = {"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    with pytest.raises(TensorsError) as error:
        unpack_tensors(written(tmp_path / "a", header, data), CAP)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\xff" * 100, pickle.dumps([1]), b"\0" * 100])
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(TensorsError, match="safetensors"):
        unpack_tensors(tmp_path / "a", CAP)


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    pack_tensors({"a": torch.zeros(100)}, tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "a").write_bytes(whole[:length])
        with pytest.raises(TensorsError):
            unpack_tensors(tmp_path / "a", CAP)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would not end
    with pytest.raises(TensorsError, match="at most"):
        unpack_tensors(tmp_path / "a", CAP)


def test_links_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    pack_tensors({"a": torch.zeros(1)}, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "nowhere").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("link", "fifo", "folder"):
        with pytest.raises(TensorsError, match="regular file"):
            unpack_tensors(tmp_path / name, CAP)
    for name in ("link", "nowhere", "real", "fifo"):
        with pytest.raises(FileExistsError):
            pack_tensors({"a": torch.ones(1)}, tmp_path / name)
    assert not (tmp_path / "target").exists()
    assert not unpack_tensors(tmp_path / "real", CAP)["a"].any()


def test_a_fifo_with_a_writer_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    keep = os.open(tmp_path / "fifo", os.O_RDWR)
    with pytest.raises(TensorsError, match="regular file"):
        unpack_tensors(tmp_path / "fifo", CAP)
    os.close(keep)


def test_nothing_there_is_said_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack_tensors(tmp_path / "a", CAP)
