"""Row statistics: what a change of key leaves."""

from __future__ import annotations

import pytest
import torch

from bench.eve import row_statistics
from bench.eve.row_statistics import geometry, statistics


def rows(n: int = 40) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.rand(n, 12, generator=random) ** 3 * torch.arange(1.0, 13.0)


def test_a_rotation_and_a_shift_leave_the_geometry() -> None:
    turn = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(1)))[0]
    assert torch.allclose(geometry(rows()), geometry(3 * rows() @ turn + 5), atol=1e-2)


def test_the_order_of_rows_leaves_the_geometry_of_each() -> None:
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(geometry(rows())[order], geometry(rows()[order]), atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_a_small_release_has_as_many_columns_all_finite(n: int) -> None:
    for samples in (rows(n), torch.ones(n, 1, 8, 8)):
        assert geometry(samples).shape == (n, geometry(rows()).shape[1])
        assert geometry(samples).isfinite().all()


def test_a_shuffle_of_pixels_leaves_the_statistics_of_a_vector() -> None:
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(statistics(rows()), statistics(rows()[:, order]))


def test_beyond_the_reference_rows_the_nearest_neighbour_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_statistics, "LEARNT_FROM", 10)
    samples = rows(19)  # every second row is a reference row
    near = samples.clone()
    near[1] = samples[0] + 1e-3  # no reference row itself, beside one
    place = geometry(near).shape[1] - len(row_statistics.NEIGHBOURS)
    assert float(geometry(near)[1, place]) < float(geometry(samples)[1, place]) - 3
    assert abs(float(geometry(near)[0, place] - geometry(samples)[0, place])) < 1


def test_a_row_is_no_neighbour_of_itself() -> None:
    from scipy.spatial.distance import cdist

    distances = torch.from_numpy(cdist(rows().numpy(), rows().numpy())) ** 2
    distances.fill_diagonal_(torch.inf)
    unit = (rows() - rows().mean(dim=0)).double().square().sum(dim=1).mean()
    place = geometry(rows()).shape[1] - len(row_statistics.NEIGHBOURS)
    expected = (distances.amin(dim=1) / unit + 1e-12).log()
    assert torch.allclose(geometry(rows())[:, place], expected, atol=1e-4)
