import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from bench.contract.source import DataError
from bench.data.prepare import prepare
from bench.data.sets.mnist import MNIST


def idx(values: np.ndarray) -> bytes:
    magic = {3: 2051, 1: 2049}[values.ndim]
    return struct.pack(f">{1 + values.ndim}i", magic, *values.shape) + values.tobytes()


def parts() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    made = {}
    for part, n in (("train", 12), ("t10k", 8)):
        made[f"{part}-images-idx3-ubyte"] = random.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        made[f"{part}-labels-idx1-ubyte"] = (np.arange(n) % 10).astype(np.uint8)
    return made


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    raw = tmp_path / "mnist/MNIST/raw"
    raw.mkdir(parents=True)
    for name, values in parts().items():
        (raw / name).write_bytes(idx(values))
    return raw


def test_train_and_test_are_joined_with_exclusive_classes(raw: Path, tmp_path: Path) -> None:
    prepared = prepare(MNIST(), roots=[tmp_path], cache=tmp_path / "cache")
    made = parts()
    pixels = np.concatenate([made["train-images-idx3-ubyte"], made["t10k-images-idx3-ubyte"]])
    np.testing.assert_array_equal(prepared.samples[:, 0], pixels)
    assert prepared.labels.argmax(axis=1).tolist() == [*range(10), 0, 1, *range(8)]
    assert prepared.exclusive
    assert prepared.subjects is None
    assert prepared.size == 28
    assert "12 train rows, the official set has 60000" in prepared.notes


def test_images_are_resized_on_request(raw: Path, tmp_path: Path) -> None:
    assert prepare(MNIST(), roots=[raw], cache=tmp_path / "cache", size=32).samples.shape == (20, 1, 32, 32)


def test_gzipped_files_give_the_same_rows(raw: Path, tmp_path: Path) -> None:
    plain = prepare(MNIST(), roots=[raw], cache=tmp_path / "cache")
    for path in list(raw.iterdir()):
        (raw / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert prepare(MNIST(), roots=[raw], cache=tmp_path / "cache").fingerprint == plain.fingerprint


def test_torchvision_reads_the_same_layout(raw: Path, tmp_path: Path) -> None:
    from torchvision import datasets

    theirs = datasets.MNIST(str(tmp_path / "mnist"), train=True)
    ours = MNIST().scan([tmp_path], None)
    assert ours.samples is not None
    np.testing.assert_array_equal(ours.samples[:12, 0], theirs.data.numpy())
    assert ours.labels[:12].argmax(axis=1).tolist() == theirs.targets.tolist()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<!DOCTYPE html><html></html>", "found an HTML page"),
        (idx(np.zeros((12, 28, 28), np.uint8))[:-1], "truncated: expected 9408 values, found 9407"),
        (idx(np.zeros(12, np.uint8)), "starts with 2051, got 00000801"),
        (idx(np.zeros((11, 28, 28), np.uint8)), "as many 28x28 images as labels"),
        (idx(np.zeros((12, 32, 32), np.uint8)), "as many 28x28 images as labels"),
    ],
)
def test_wrong_files_are_refused_with_the_reason(raw: Path, content: bytes, reason: str) -> None:
    (raw / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(DataError, match=f"{reason}.*--download"):
        MNIST().scan([raw], None)


def test_damaged_gzip_is_refused(raw: Path) -> None:
    whole = gzip.compress((raw / "t10k-images-idx3-ubyte").read_bytes())
    (raw / "t10k-images-idx3-ubyte").unlink()
    (raw / "t10k-images-idx3-ubyte.gz").write_bytes(whole[:100])
    with pytest.raises(DataError, match="damaged gzip file"):
        MNIST().scan([raw], None)


def test_missing_file_is_named(raw: Path) -> None:
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"expected t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte\.gz"):
        MNIST().scan([raw], None)


def test_absent_data_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)expected train-images-idx3-ubyte.*bench data prepare mnist --download"):
        MNIST().scan([tmp_path], None)


def test_failed_download_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision import datasets

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no network")

    monkeypatch.setattr(datasets, "MNIST", fail)
    with pytest.raises(DataError, match=r"the download failed \(no network\)"):
        MNIST().download(tmp_path)
