"""SSIM, MS-SSIM and PSNR: a known implementation's number, hand values, invariances."""

from __future__ import annotations

import pytest
import torch

from bench.statistics.structural_similarity import TOGETHER, mean_ssims, ms_ssim, psnr, scales, ssim


def waves() -> tuple[torch.Tensor, torch.Tensor]:
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    first = 0.5 + 0.5 * torch.sin(x / 3) * torch.cos(y / 5)
    return first[None, None], (0.8 * first + 0.1 * torch.sin(x * y / 17)).clamp(0, 1)[None, None]


def test_ssim_is_that_of_scikit_image() -> None:
    # skimage.metrics.structural_similarity(data_range=1, gaussian_weights=True, sigma=1.5, use_sample_covariance=False)
    assert float(ssim(*waves())) == pytest.approx(0.8017083891738497, abs=1e-6)


def test_an_image_is_as_like_itself_as_can_be() -> None:
    image = torch.rand(3, 3, 40, 24, generator=torch.Generator().manual_seed(0))
    for figure in (ssim, ms_ssim):
        assert torch.allclose(figure(image, image), torch.ones(3, dtype=torch.float64))
    assert psnr(image, image).tolist() == [100.0] * 3


def test_the_order_of_both_images_does_not_count() -> None:
    first, second = waves()
    for figure in (ssim, ms_ssim, psnr):
        assert float(figure(first, second)) == pytest.approx(float(figure(second, first)))


def test_constant_images_differ_by_their_light_alone() -> None:
    dark, bright = torch.full((1, 1, 16, 16), 0.2), torch.full((1, 1, 16, 16), 0.6)
    assert float(ssim(dark, bright)) == pytest.approx((2 * 0.12 + 1e-4) / (0.04 + 0.36 + 1e-4), abs=1e-6)
    assert float(psnr(dark, bright)) == pytest.approx(-10 * torch.tensor(0.16).log10().item(), abs=1e-4)


@pytest.mark.parametrize(("side", "count"), [(4, 1), (16, 1), (22, 2), (64, 3), (160, 4), (176, 5), (512, 5)])
def test_small_images_have_fewer_scales(side: int, count: int) -> None:
    assert scales(side, side) == count
    image = torch.rand(1, 1, side, side, generator=torch.Generator().manual_seed(1))
    assert 0 <= float(ms_ssim(image, 1 - image)) < 1


def test_one_scale_is_ssim() -> None:
    first, second = (each[..., :16, :16] for each in waves())
    assert float(ms_ssim(first, second)) == pytest.approx(float(ssim(first, second)))


def test_means_by_order_are_those_of_reordered_images() -> None:
    random = torch.Generator().manual_seed(3)
    first, second = (torch.rand(TOGETHER + 3, 1, 12, 14, generator=random) for _ in range(2))
    orders = torch.stack([torch.randperm(len(first), generator=random) for _ in range(3)])
    expected = torch.stack([ssim(first, second[rows]).mean() for rows in orders])
    assert torch.allclose(mean_ssims(first, second, orders), expected, atol=1e-12)
    assert mean_ssims(first, second, orders[:0]).shape == (0,)
