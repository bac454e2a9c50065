from __future__ import annotations

import numpy as np
import pytest

from bench.data import verification as module
from bench.data.verification import ALIKE, near_identical


def images(n: int, shape: tuple[int, int, int] = (1, 28, 28)) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, *shape), dtype=np.uint8)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 13, 9), (1, 5, 5)])
@pytest.mark.parametrize("bucket", [2000, 8])
def test_groups_are_those_of_all_pairs_compared(
    shape: tuple[int, int, int], bucket: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUCKET", bucket)
    random = np.random.default_rng(1)
    made = images(20, shape)
    noise = np.repeat([1.0, 3.0, 6.0], 4)[:, None, None, None] * random.choice([-1, 1], (12, *shape))
    whole = np.concatenate((made, np.clip(made[:12] + noise, 0, 255).astype(np.uint8)))
    apart = np.square(whole[:, None].astype(float) - whole[None]).mean(axis=(2, 3, 4))
    found = near_identical(whole)
    for row in range(12):
        assert (found[row] == found[20 + row] >= 0) == (apart[row, 20 + row] <= ALIKE**2)
    assert (found[12:20] == -1).all()


def test_what_is_like_a_common_third_is_joined() -> None:
    first = images(1).clip(20, 200)
    chain = np.concatenate([first + np.uint8(3 * step) for step in range(4)])
    assert len(set(near_identical(chain).tolist())) == 1


def test_images_that_differ_are_left_alone() -> None:
    assert near_identical(images(50)).tolist() == [-1] * 50
