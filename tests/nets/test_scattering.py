"""The scattering transform against what is known of it: sizes, translations, energy, and the group norm of its maps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from bench.nets import scattering as module
from bench.nets.scattering import filters, scattered, scattering
from bench.seeds import generator


def blob(side: int = 32, centre: tuple[float, float] = (16, 16)) -> Tensor:
    """A smooth bar in the middle of an image whose borders are 0."""
    y, x = (torch.arange(side)[:, None] - centre[0], torch.arange(side)[None] - centre[1])
    return torch.exp(-((y / 1.5) ** 2 + (x / 2.5) ** 2) / 2)[None, None]


@pytest.mark.parametrize(
    ("shape", "maps"),
    [((1, 28, 28), (81, 7, 7)), ((3, 32, 32), (243, 8, 8)), ((1, 8, 8), (81, 2, 2)), ((1, 30, 33), (81, 8, 9))],
)
def test_there_are_81_maps_a_colour_at_a_quarter_of_the_side(shape: tuple[int, ...], maps: tuple[int, ...]) -> None:
    images = torch.rand(2, *shape, generator=generator(0))
    assert tuple(scattering(images).shape) == (2, *maps)
    assert tuple(scattered(images).shape) == (2, math.prod(maps))
    assert tuple(scattered(images[:0]).shape) == (0, math.prod(maps))


def test_images_below_eight_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match="8 pixels a side at least, got 7x8"):
        scattering(torch.zeros(1, 1, 7, 8))


def test_the_filters_lengthen_no_frequency_and_wavelets_have_no_mean() -> None:
    kept = filters(36, 40)
    spectra = kept.wavelets.to(torch.complex128)
    mirrored = spectra.flip(1, 2).roll((1, 1), (1, 2))
    low = module._low(36)[:, None] * module._low(40)[None]
    whole = low.square() + 0.5 * (spectra.abs().square() + mirrored.abs().square()).sum(dim=0)
    assert float(whole.max()) == pytest.approx(1, abs=1e-5)
    assert float(spectra[:, 0, 0].abs().max()) < 1e-6
    assert float(whole.min()) > 0.1  # and none is lost


def test_the_first_maps_are_plain_averages_and_wavelet_moduli() -> None:
    """A slow twin: convolutions in space with the wavelets' own numbers, on an image whose borders are 0."""
    image, kept = blob(), filters(40, 40)
    found = scattering(image)[0]
    whole = pad(image, (4, 4, 4, 4)).double()
    phi = torch.fft.ifft2((module._low(40)[:, None] * module._low(40)[None]).to(torch.complex128)).real
    for place, spectrum in ((0, None), (1, kept.wavelets[0]), (12, kept.wavelets[11])):
        moduli = whole
        if spectrum is not None:
            kernel = torch.fft.ifft2(spectrum.to(torch.complex128))
            parts = [_round(whole, part) for part in (kernel.real, kernel.imag)]
            moduli = (parts[0].square() + parts[1].square()).sqrt()
        expected = _round(moduli, phi)[0, 0, 4:-4:4, 4:-4:4]
        assert torch.allclose(found[place].double(), expected, atol=1e-5)


def _round(images: Tensor, kernel: Tensor) -> Tensor:
    """The circular convolution of images (1, 1, h, w) with a kernel (h, w), by sums over space."""
    h, w = kernel.shape
    wide = pad(images, (w - 1, 0, h - 1, 0), mode="circular")
    return conv2d(wide, kernel.flip(0, 1)[None, None])


def test_a_shift_by_four_pixels_shifts_the_maps_and_one_by_a_pixel_hardly_changes_them() -> None:
    still, near, far = (scattering(blob(centre=(16 + by, 16))) for by in (0, 1, 4))
    assert torch.allclose(far[:, :, 1:], still[:, :, :-1], atol=1e-4)
    moved = float((near - still).norm() / still.norm())
    in_pixels = float((blob(centre=(17, 16)) - blob()).norm() / blob().norm())
    assert moved < 0.75 * in_pixels


def test_no_energy_is_added() -> None:
    """Sixteen times the energy of maps at every fourth pixel, in the mean over shifts of the image by 0 to 3 pixels."""
    noise = torch.randn(1, 1, 16, 16, generator=generator(1))
    image = pad(noise, (12, 12, 12, 12))
    shifted = torch.cat([image.roll((down, along), (2, 3)) for down in range(4) for along in range(4)])
    energy = float(scattering(shifted).square().sum())
    assert 0.05 * float(image.square().sum()) < energy <= float(image.square().sum())


def test_an_image_is_normalised_by_itself_alone() -> None:
    images = 100 * torch.rand(5, 1, 28, 28, generator=generator(2))
    whole = scattered(images)
    assert torch.allclose(whole[3:4], scattered(images[3:4]), atol=1e-4)
    groups = whole.reshape(5, 27, -1)
    assert torch.allclose(groups.mean(dim=2), torch.zeros(5, 27), atol=1e-4)
    assert torch.allclose(groups.var(dim=2, correction=0), torch.ones(5, 27), atol=0.01)
