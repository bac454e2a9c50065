from __future__ import annotations

import pytest
import torch
from made.feature_images import images, table

from bench.features.pixels import Pixels
from bench.types import NotApplicable


def test_a_vector_is_the_image_row_by_row() -> None:
    data = images(channels=3)
    vectors = Pixels().fit(data, 0).embed(data.samples)
    assert vectors.shape == (24, 192)
    assert vectors[5, 64 + 8 + 3] == data.samples[5, 1, 1, 3]


def test_tables_are_refused() -> None:
    with pytest.raises(NotApplicable, match="the rows of made are vectors already"):
        Pixels().fit(table(), 0)


def test_images_of_another_shape_are_refused_with_both_shapes() -> None:
    fitted = Pixels().fit(images(), 0)
    with pytest.raises(NotApplicable, match=r"shape \(1, 8, 8\), and these have \(16,\)"):
        fitted.embed(torch.zeros(3, 16))
