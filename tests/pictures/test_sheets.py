from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bench.cli import main
from bench.pictures import sheets
from bench.pictures.sheets import MOST, OTHERS, Cloud, embed, scatter_sheet
from bench.types import NotApplicable


def vectors(n: int, seed: int, d: int = 5) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def classes(n: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.arange(n) % 3, 3).float()


def test_equal_rows_lie_at_one_place_whatever_set_they_are_in() -> None:
    rows = vectors(30, 1)
    first, second = embed([rows, rows[:4].repeat_interleave(5, dim=0)], 0)
    assert first.shape == (30, 2)
    assert np.array_equal(second, first[:4].repeat(5, axis=0))
    assert len(np.unique(first, axis=0)) == 30


def test_groups_that_are_far_apart_stay_apart() -> None:
    near, far = embed([vectors(40, 1), vectors(40, 2) + 30], 0)
    within = max(np.linalg.norm(part - part.mean(axis=0), axis=1).mean() for part in (near, far))
    assert np.linalg.norm(near.mean(axis=0) - far.mean(axis=0)) > 2 * within


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 1), (3, 2)])
def test_few_rows_and_single_columns_have_places_too(n: int, d: int) -> None:
    first, second = embed([vectors(n, 1, d), torch.zeros(1, d)], 0)
    assert (first.shape, second.shape) == ((n, 2), (1, 2))
    assert np.isfinite(first).all()


def test_rows_that_are_all_the_same_lie_at_one_place() -> None:
    first, second = embed([torch.ones(4, 3), torch.ones(2, 3)], 0)
    assert not first.any()
    assert not second.any()


def test_the_sheet_has_a_panel_a_set_and_the_same_bytes_each_time() -> None:
    original = Cloud("original", vectors(30, 1), classes(30))
    others = [Cloud(f"release\n{number}", vectors(20, number), None) for number in range(2)]
    sheets = [scatter_sheet(original, others, ("a", "b", "c"), "", seed=3) for _ in range(2)]
    assert sheets[0] == sheets[1]
    with Image.open(io.BytesIO(sheets[0])) as picture:
        assert 3 * 300 < picture.width < 3 * 400  # 2.4 inches a panel at 150 dots an inch


def test_rows_are_named_by_what_is_known_of_them_and_large_sets_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(sheets, "embed", lambda sets, seed: [seen.append(len(s)) or s[:, :2].numpy() for s in sets])
    labels = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, torch.nan]])
    cloud = Cloud("many", vectors(4, 1).repeat(200, 1), labels.repeat(200, 1))
    assert sheets._kinds(cloud, ("a", "b"))[:4] == ["a", "a + b", "no finding", OTHERS]
    assert scatter_sheet(cloud, [Cloud("few", vectors(9, 1), None)], ("a", "b"), "", seed=0)
    assert seen == [MOST, 9]


def test_sets_of_different_spaces_have_no_common_picture() -> None:
    with pytest.raises(NotApplicable, match="one space"):
        scatter_sheet(Cloud("a", vectors(5, 1), None), [Cloud("b", vectors(5, 1, 4), None)], (), "", seed=0)


def test_feature_vectors_are_shown_by_method_in_one_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Cloud] = []

    def caught(original: Cloud, releases: list[Cloud], findings: tuple[str, ...], heading: str, *, seed: int) -> bytes:
        seen.extend([original, *releases])
        return b"a picture"

    monkeypatch.setattr("bench.runs.released_picture.scatter_sheet", caught)
    chosen = ["--dataset", "digits", "--features", "pixels", "--method", "identity", "--method", "noise"]
    where = ["--preset", "smoke", "--results", str(tmp_path / "r"), "--out", str(tmp_path / "a.png")]
    assert main(["show", *chosen, *where]) == 0
    assert (tmp_path / "a.png").read_bytes() == b"a picture"
    assert [cloud.title for cloud in seen] == ["original\n(digits as pixels)", "identity", "noise"]
    original, identity, _ = seen
    assert original.vectors.ndim == 2
    # Labels went with their rows through the shuffle.
    order = torch.cdist(identity.vectors, original.vectors).argmin(dim=1)
    assert torch.equal(identity.vectors, original.vectors[order])
    assert original.labels is not None
    assert identity.labels is not None
    assert torch.equal(identity.labels, original.labels[order])
    assert main(["show", *chosen, *where, "--rows", "3"]) == 2
