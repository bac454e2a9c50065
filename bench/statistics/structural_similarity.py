"""SSIM, MS-SSIM and PSNR of pairs of images in [0, 1].

Source: Wang, Bovik, Sheikh and Simoncelli 2004, "Image quality assessment: from error visibility to structural
similarity", equations 13 to 16: a Gaussian window of 11 pixels and deviation 1.5, K1 = .01, K2 = .03, biased moments,
places where the window fits, the mean over places and channels. MS-SSIM: Wang, Simoncelli and Bovik 2003, "Multiscale
structural similarity for image quality assessment", equation 7, means over 2 x 2 pixels between scales. Its five scales
need 161 pixels a side: a smaller image has the first scales at which the window fits, with weights that sum to 1.
Images smaller than the window have a window of their largest odd side.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

WINDOW, DEVIATION = 11, 1.5
C1, C2 = 0.01**2, 0.03**2
WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
TOGETHER = 512
LEAST = 1e-10  # mean squared error: 100 dB at most


def scales(height: int, width: int) -> int:
    """The number of scales of MS-SSIM, 1 to 5.

    >>> scales(224, 224), scales(64, 64), scales(8, 8)
    (5, 3, 1)
    """
    side, count = min(height, width), 1
    while count < len(WEIGHTS) and side // 2**count >= WINDOW:
        count += 1
    return count


def ssim(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """SSIM (n,) float64 of images (n, c, h, w), row by row."""
    pairs = zip(torch.split(a, TOGETHER), torch.split(b, TOGETHER), strict=True)
    return torch.cat([_parts(x.double(), y.double())[0] for x, y in pairs])


def mean_ssims(a: torch.Tensor, b: torch.Tensor, orders: torch.Tensor) -> torch.Tensor:
    """Mean SSIM (s,) float64 of images with others in several orders.

    Images are `a` (n, c, h, w) and `b[order]`, for orders (s, n) of rows of `b`. What is of one image alone is computed
    once, so that an order takes half of the time of `ssim`.
    """
    total = torch.zeros(len(orders), dtype=torch.float64)
    others = _Windows.of(b.double())
    for start in range(0, len(a), TOGETHER):
        own = _Windows.of(a[start : start + TOGETHER].double())
        for number, rows in enumerate(orders[:, start : start + TOGETHER]):
            total[number] += _compared(own, others[rows])[0].sum().cpu()
    return total / max(1, len(a))


def ms_ssim(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """MS-SSIM (n,) float64; negative terms of a scale count as 0."""
    pairs = zip(torch.split(a, TOGETHER), torch.split(b, TOGETHER), strict=True)
    return torch.cat([_several(x.double(), y.double()) for x, y in pairs])


def psnr(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Peak signal-to-noise ratio (n,) float64 in dB, 100 at most."""
    errors = (a.double() - b.double()).square().flatten(1).mean(dim=1)
    return -10 * errors.clamp_min(LEAST).log10()


def _several(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    count = scales(a.shape[2], a.shape[3])
    weights = torch.tensor(WEIGHTS[:count], dtype=torch.float64)
    weights = weights / weights.sum()
    product = a.new_ones(len(a))
    for scale in range(count):
        whole, contrast = _parts(a, b)
        term = whole if scale == count - 1 else contrast
        product = product * term.clamp_min(0) ** float(weights[scale])
        a, b = torch.nn.functional.avg_pool2d(a, 2), torch.nn.functional.avg_pool2d(b, 2)
    return product


def _parts(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """SSIM, and its part of contrast and structure, (n,) each."""
    return _compared(_Windows.of(a), _Windows.of(b))


@dataclass(frozen=True, eq=False)
class _Windows:
    """Images (n, c, h, w), and means and variances by place."""

    images: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor

    @classmethod
    def of(cls, images: torch.Tensor) -> _Windows:
        mean = _smoothed(images)
        return cls(images, mean, _smoothed(images * images) - mean**2)

    def __getitem__(self, rows: torch.Tensor) -> _Windows:
        return _Windows(self.images[rows], self.mean[rows], self.variance[rows])


def _smoothed(images: torch.Tensor) -> torch.Tensor:
    """Weighted means of images (n, c, h, w) where the window fits."""
    side = min(*images.shape[2:], WINDOW)
    side -= 1 - side % 2
    line = torch.exp(-0.5 * ((torch.arange(side) - side // 2) / DEVIATION).double().square())
    line = (line / line.sum()).to(images)

    def band(length: int) -> torch.Tensor:
        # A product of matrices is faster than a convolution in float64.
        places = torch.arange(length - side + 1, device=images.device)[:, None]
        found = images.new_zeros(len(places), length)
        return found.scatter_(1, places + torch.arange(side, device=images.device), line.expand(len(places), -1))

    return band(images.shape[2]) @ (images @ band(images.shape[3]).T)


def _compared(a: _Windows, b: _Windows) -> tuple[torch.Tensor, torch.Tensor]:
    product = a.mean * b.mean
    contrast = (2 * (_smoothed(a.images * b.images) - product) + C2) / (a.variance + b.variance + C2)
    light = (2 * product + C1) / (a.mean**2 + b.mean**2 + C1)
    return (light * contrast).flatten(1).mean(dim=1), contrast.flatten(1).mean(dim=1)
