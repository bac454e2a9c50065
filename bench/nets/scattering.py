"""Scattering transform of order 2: fixed, unlearned image features.

Source: Bruna and Mallat 2013, Invariant scattering convolution networks; with J = 2 scales and L = 8 angles, 81 maps a
colour at a quarter of the side, as in Tramèr and Boneh 2021, Differentially private learning needs better features
(or much more data), who normalise every row's maps by 27 groups, which asks nothing of other rows.

x * phi; |x * psi1| * phi; ||x * psi1| * psi2| * phi with psi2 coarser than psi1, sampled every 4 pixels. Morlet
wavelets (a deviation of 0.8, a frequency of 3 pi / 4, an envelope twice as long across as along) and the Gaussian phi
(a deviation of 1.6) repeat at the borders of the image, to which its mirror image is put, 4 pixels wide. Wavelets are
scaled by one number so that the filters lengthen no image: |phi|^2 + sum |psi|^2 is 1 at most at every frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch

SCALES, ANGLES = 2, 8
STEP = 2**SCALES
MAPS = 1 + SCALES * ANGLES + ANGLES**2
GROUPS = 27
SIGMA, FREQUENCY, SLANT = 0.8, 3 * math.pi / 4, 4 / ANGLES
SMALLEST = 8
"""Pixels of a side: half of it is mirrored."""
ROWS = 64  # images at a time: 64 complex maps of each are held


@dataclass(frozen=True, eq=False)
class Filters:
    """For images of h x w pixels, borders included.

    Args:
        wavelets: (2 * 8, h, w) complex64, the finer scale first, at the frequencies of `torch.fft`.
        down, across: (h / 4 - 2, h) and (w / 4 - 2, w) float32: phi along one side, at every fourth pixel of the image.
    """

    wavelets: torch.Tensor
    down: torch.Tensor
    across: torch.Tensor


@cache
def filters(h: int, w: int) -> Filters:
    """On the CPU, for sides of multiples of 4, at least 16."""
    spectra = torch.stack(
        [_wavelet(h, w, scale, angle) for scale in range(SCALES) for angle in range(ANGLES)]
    )  # fmt: skip
    low = _low(h)[:, None] * _low(w)[None]
    mirrored = spectra.flip(1, 2).roll((1, 1), (1, 2))  # at the negative frequencies
    energy = 0.5 * (spectra.abs().square() + mirrored.abs().square()).sum(dim=0)
    left = 1 - low.square()
    counts = energy > 1e-9 * energy.max()
    factor = math.sqrt(float((left[counts] / energy[counts]).min()))
    return Filters((factor * spectra).to(torch.complex64), _average(h), _average(w))


def scattering(images: torch.Tensor) -> torch.Tensor:
    """Float32 maps (n, 81 c, down, across); ValueError below 8 pixels."""
    n, c, h, w = images.shape
    if min(h, w) < SMALLEST:
        raise ValueError(f"scattering needs images of {SMALLEST} pixels a side at least, got {h}x{w}")
    border = (STEP, STEP + -w % STEP, STEP, STEP + -h % STEP)
    bank = filters(h + border[2] + border[3], w + border[0] + border[1])
    if not n:  # which some transforms of Fourier refuse
        return images.new_zeros(0, c * MAPS, len(bank.down), len(bank.across))
    maps = [
        _scattered(torch.nn.functional.pad(part.reshape(-1, 1, h, w), border, mode="reflect"), bank)
        for part in torch.split(images, max(1, ROWS // c))
    ]
    return torch.cat(maps).reshape(n, c * MAPS, len(bank.down), len(bank.across))


def scattered(images: torch.Tensor) -> torch.Tensor:
    """Maps (n, d) float32 of each image, normalised within 27 groups."""
    maps = scattering(images)
    return torch.nn.functional.group_norm(maps, GROUPS).flatten(1)


def _scattered(images: torch.Tensor, bank: Filters) -> torch.Tensor:
    device = images.device
    wavelets, down, across = (part.to(device) for part in (bank.wavelets, bank.down, bank.across))
    first = torch.fft.ifft2(torch.fft.fft2(images) * wavelets).abs()
    fine = torch.fft.fft2(first[:, :ANGLES])[:, :, None]
    second = torch.fft.ifft2(fine * wavelets[ANGLES:]).abs().flatten(1, 2)
    return down @ torch.cat((images, first, second), dim=1) @ across.T


def _wavelet(h: int, w: int, scale: int, angle: int) -> torch.Tensor:
    """Spectrum (h, w) complex128 of a Morlet wavelet of mean 0."""
    sigma, frequency, theta = SIGMA * 2**scale, FREQUENCY / 2**scale, math.pi * angle / ANGLES
    total = torch.zeros(h, w, dtype=torch.complex128)
    envelope = torch.zeros(h, w, dtype=torch.float64)
    for turn in range(-2, 3):
        for side in range(-2, 3):
            y = (torch.arange(h, dtype=torch.float64) + turn * h)[:, None]
            x = (torch.arange(w, dtype=torch.float64) + side * w)[None]
            along, beside = math.cos(theta) * x + math.sin(theta) * y, -math.sin(theta) * x + math.cos(theta) * y
            around = torch.exp(-(along.square() + (SLANT * beside).square()) / (2 * sigma**2))
            envelope += around
            total += around * torch.exp(1j * frequency * along)
    total -= total.sum() / envelope.sum() * envelope
    spectrum: torch.Tensor = torch.fft.fft2(total) * SLANT / (2 * math.pi * sigma**2)
    return spectrum


def _gaussian(side: int) -> torch.Tensor:
    """(side,) float64: phi about 0, repeated, summing to 1."""
    sigma = SIGMA * 2 ** (SCALES - 1)
    places = torch.arange(side, dtype=torch.float64)[None] + side * torch.arange(-2, 3, dtype=torch.float64)[:, None]
    phi = torch.exp(-places.square() / (2 * sigma**2)).sum(dim=0)
    return phi / phi.sum()


def _low(side: int) -> torch.Tensor:
    spectrum: torch.Tensor = torch.fft.fft(_gaussian(side)).real
    return spectrum


def _average(side: int) -> torch.Tensor:
    """Float32 phi at every fourth pixel inside the border."""
    around = _gaussian(side)
    return torch.stack([around.roll(place) for place in range(STEP, side - STEP, STEP)]).float()
