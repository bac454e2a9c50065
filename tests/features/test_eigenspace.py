from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made.feature_images import images, table

from bench.features.eigenspace import Eigenspace, principal_components
from bench.types import NotApplicable


@pytest.mark.parametrize(("rows", "side"), [(200, 4), (20, 8)], ids=["more rows than pixels", "more pixels than rows"])
def test_components_are_those_of_a_singular_value_decomposition(rows: int, side: int) -> None:
    data = images(rows, side=side)
    flat = data.samples.flatten(1).double()
    centred = flat - flat.mean(dim=0)
    _, singular, right = torch.linalg.svd(centred, full_matrices=False)
    fitted = Eigenspace(components=5).fit(data, 0)
    coefficients = fitted.embed(data.samples).double()
    by_svd = centred @ right[:5].T
    signs = (coefficients * by_svd).sum(dim=0).sign()
    assert torch.allclose(coefficients, by_svd * signs, atol=1e-5)
    explained = float((singular[:5] ** 2).sum() / (singular**2).sum())
    assert fitted.notes()["explained variance"] == pytest.approx(explained, rel=1e-9)


def test_components_are_orthonormal_and_point_to_their_largest_coefficient() -> None:
    data = images(20, side=8)
    _, basis, _, _ = principal_components(data.samples.flatten(1), 19)
    assert torch.allclose(basis @ basis.T, torch.eye(19, dtype=torch.float64), atol=1e-9)
    largest = basis.gather(1, basis.abs().argmax(dim=1, keepdim=True))
    assert bool((largest > 0).all())


def test_vectors_do_not_depend_on_the_order_of_public_rows() -> None:
    data = images(40)
    turned = data.take(torch.arange(39, -1, -1))
    first, second = (Eigenspace(components=4).fit(each, 0).embed(data.samples) for each in (data, turned))
    assert torch.allclose(first, second, atol=1e-6)


def test_too_many_components_are_refused_with_the_number_there_are() -> None:
    with pytest.raises(NotApplicable, match=r"vary in 23 directions: choose at most eigenspace\[components=23\]"):
        Eigenspace(components=24).fit(images(24), 0)


def test_images_that_are_all_the_same_are_refused() -> None:
    data = images(10)
    with pytest.raises(NotApplicable, match="vary in 0 directions"):
        Eigenspace(components=1).fit(replace(data, samples=torch.full_like(data.samples, 0.3)), 0)


def test_wrong_parameters_and_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="components must be at least 1, got 0"):
        Eigenspace(components=0)
    with pytest.raises(NotApplicable, match="vectors already"):
        Eigenspace(components=2).fit(table(), 0)
    with pytest.raises(NotApplicable, match=r"reads rows of shape \(1, 8, 8\)"):
        Eigenspace(components=2).fit(images(), 0).embed(torch.zeros(1, 1, 9, 9))
