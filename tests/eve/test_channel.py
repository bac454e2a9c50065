import pytest
import torch

from bench.eve.channel import PrincipalSpace
from bench.types import NotApplicable


def test_whitened_coordinates_of_the_known_rows_are_uncorrelated_and_of_unit_deviation():
    known = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 9) + 5
    found = PrincipalSpace.of(known, 3, whiten=True).coordinates(known)
    assert torch.allclose(torch.cov(found.T, correction=0), torch.eye(3, dtype=torch.float64), atol=1e-9)


def test_all_axes_keep_distances_in_units_of_deviation():
    known = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 2.0, 3.0, 4.0])
    found = PrincipalSpace.of(known, 9, whiten=False).coordinates(known)
    scaled = known.double() / known.double().std(dim=0, correction=0)
    assert torch.allclose(torch.cdist(found, found), torch.cdist(scaled, scaled), atol=1e-6)


@pytest.mark.parametrize("known", [torch.full((9, 4), 0.5), torch.rand(1, 4)])
@pytest.mark.parametrize("whiten", [False, True])
def test_rows_that_do_not_vary_have_no_axes(known, whiten):
    with pytest.raises(NotApplicable, match="do not vary"):
        PrincipalSpace.of(known, 3, whiten=whiten)
