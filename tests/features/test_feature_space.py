from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from made.feature_images import images
from torch import Tensor

from bench.contract.extractor import Embedding, batches
from bench.contract.source import DataError
from bench.features.eigenspace import Eigenspace
from bench.features.feature_space import DamagedVectorsWarning, VectorCache
from bench.features.pixels import Pixels

ROWS = np.array([8, 1, 5, 3])
PICTURES = torch.arange(10.0).view(10, 1, 1, 1).expand(10, 1, 2, 2)


def shown(rows: np.ndarray) -> Tensor:
    return PICTURES[torch.from_numpy(rows)]


class Reader:
    """Gives twice each image, two at a time, counts what it read, and stops before the image of the given number."""

    def __init__(self, stop: float = -1.0) -> None:
        self.stop, self.seen = stop, []

    def __call__(self, samples: Tensor) -> Iterator[Tensor]:
        for part in samples.split(2):
            if (part == self.stop).any():
                raise KeyboardInterrupt
            self.seen += part[:, 0, 0, 0].tolist()
            yield 2 * part.flatten(1)


def test_only_wanted_rows_are_read_and_only_once(tmp_path: Path) -> None:
    cache, first, second = VectorCache(tmp_path / "v", 10), Reader(), Reader()
    found = cache.vectors(ROWS, shown, first, block=3)
    assert torch.equal(found, 2 * PICTURES[ROWS].flatten(1))
    assert first.seen == [8, 1, 5, 3]
    more = np.array([0, 1, 2, 3])
    assert torch.equal(
        VectorCache(tmp_path / "v", 10).vectors(more, shown, second, block=3), 2 * PICTURES[:4].flatten(1)
    )
    assert second.seen == [0, 2]
    assert (tmp_path / "v").stat().st_mode & 0o077 == 0


def test_a_kill_loses_no_batch_that_was_done(tmp_path: Path) -> None:
    cache, again = VectorCache(tmp_path / "v", 10), Reader()
    with pytest.raises(KeyboardInterrupt):
        cache.vectors(ROWS, shown, Reader(stop=5.0), block=3)
    assert torch.equal(cache.vectors(ROWS, shown, again, block=3), 2 * PICTURES[ROWS].flatten(1))
    assert again.seen == [5, 3]


def test_damaged_vectors_are_made_again(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v", 10)
    cache.vectors(ROWS, shown, Reader(), block=3)
    for name, content in (("vectors.npy", b""), ("vectors.npy", b"\x93NUMPY nonsense"), ("done.npy", b"PK")):
        (tmp_path / "v" / name).write_bytes(content)
        with pytest.warns(DamagedVectorsWarning, match="computed again"):
            assert torch.equal(cache.vectors(ROWS, shown, Reader(), block=3), 2 * PICTURES[ROWS].flatten(1))
    with pytest.warns(DamagedVectorsWarning, match="expected"):
        VectorCache(tmp_path / "v", 11).vectors(ROWS, shown, Reader(), block=3)


def test_a_row_has_the_same_bits_in_any_company() -> None:
    data = images(40)
    fitted = Eigenspace(components=6).fit(data, 0)
    cpu = torch.device("cpu")
    whole = torch.cat(list(batches(fitted, data.samples, who="it", device=cpu)))
    alone = torch.cat([next(batches(fitted, row[None], who="it", device=cpu)) for row in data.samples])
    assert torch.equal(whole, alone)


def test_vectors_that_are_not_finite_name_the_extractor_and_the_rows() -> None:
    samples = images(6).samples
    samples[2, 0, 1, 1] = torch.nan
    samples[4] = torch.inf
    fitted: Embedding = Pixels().fit(images(6), 0)
    with pytest.raises(DataError, match="pixels must give finite vectors: 2 of the 6 rows"):
        list(batches(fitted, samples, who="pixels", device=torch.device("cpu")))


def test_no_more_images_are_held_than_a_block(tmp_path: Path) -> None:
    held: list[int] = []

    def counted(rows: np.ndarray) -> Tensor:
        held.append(len(rows))
        return shown(rows)

    rows = np.arange(10)
    found = VectorCache(tmp_path / "v", 10).vectors(rows, counted, Reader(), block=4)
    assert held == [4, 4, 2]
    assert torch.equal(found, 2 * PICTURES.flatten(1))
