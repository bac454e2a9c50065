"""Mosaic: squares of pixels become their means, with optional Laplace noise.

An `epsilon` switches the noise on: then it is DP-Pix, which `dp-pix` names.

Source: pixelation as it is used to hide faces; with noise, Fan, Image Pixelization with Differential Privacy (2018):
images that differ in at most m pixels are neighbours, and a cell of b x b pixels gets noise of scale range * m /
(b * b * epsilon).

Differences from the paper:
- If the cells do not divide the image, those at its edge hold fewer pixels, and one pixel moves their mean further:
  a cell of p pixels gets scale range * m / (p * epsilon). If m_i pixels of cell i change, sum m_i at most m, the loss
  is at most sum of (m_i / p_i) / (m / (p_i * epsilon)) = epsilon, with equality whenever m pixels go from black to
  white.
- A colour pixel changes in all c channels: c times the noise.
- `neighbour_pixels` none makes any two images neighbours: the L1 sensitivity is range * c * cells, the noise the same
  in all cells. For cells of one size, this is the formula above with m = all pixels.
- Means are rounded to a grid of a 65,536th of the least scale or less, and the noise is the discrete Laplace
  distribution on it, so that epsilon holds for the bits published. With `neighbour_pixels` rounding may add a step to
  the difference of two means, for which the scale grows by a few parts in 65,536.
- Pixels are clipped to [0, 1], where they lie anyway, so that the range is 1. Noisy means are not clipped.
- Released at the size of the original, each cell painted in its mean, so that the same classifiers read it. Labels are
  released as they are, outside the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench.randomness import Grid, Secret
from bench.types import (
    Dataset,
    Key,
    Mechanism,
    Method,
    NotApplicable,
    PrivacyClaim,
    Release,
    Scheme,
    State,
    by_blocks,
    paired,
)
from bench.validation import at_least, positive_and_finite

FINE = 1 << 24
ROWS = 256
ROUNDED = 1 + 2.0**-20  # the step that rounding adds, and what a quotient of float64 adds to it


@dataclass(frozen=True)
class Mosaic(Method):
    """Pixelation, by choice with the noise that makes it differentially private.

    Args:
        cell: Side of a square cell in pixels.
        epsilon: Of the noise on the cells' means; None adds no noise and claims nothing.
        neighbour_pixels: Pixels in which neighbouring images may differ; None stands for all: any two images.
    """

    name: ClassVar[str] = "mosaic"
    raw_like: ClassVar[bool] = True
    source: ClassVar[str] = "reference row: pixelation; with epsilon: Fan 2018 (DP-Pix)"
    needs_public: ClassVar[bool] = False
    claims: ClassVar[str] = "with epsilon: epsilon-differential privacy for images that differ in neighbour_pixels"
    unlearned: ClassVar[frozenset[str]] = frozenset({"cell", "epsilon", "neighbour_pixels"})

    cell: int = 8
    epsilon: float | None = None
    neighbour_pixels: int | None = None

    def __post_init__(self) -> None:
        if self.cell < 1:
            raise ValueError(f"cell must be at least 1 pixel, got {self.cell}")
        positive_and_finite(epsilon=self.epsilon)
        at_least(1, neighbour_pixels=self.neighbour_pixels)
        if self.neighbour_pixels is not None and self.epsilon is None:
            raise ValueError("neighbour_pixels says what epsilon protects: give an epsilon too")

    def fit(self, public: Dataset, seed: int) -> MosaicScheme:
        """Reads the images' shape. Raises NotApplicable for tables."""
        if public.samples.ndim != 4:
            raise NotApplicable(f"mosaic averages neighbouring pixels: {public.name} is a table")
        return self.load({"shape": torch.tensor(public.samples.shape[1:], device=public.samples.device)})

    def load(self, state: State) -> MosaicScheme:
        """The scheme that `MosaicScheme.state` described, with this method's cells and noise."""
        c, h, w = (int(side) for side in state["shape"])
        return MosaicScheme((c, h, w), self.cell, self.epsilon, self.neighbour_pixels, state["shape"].device)


@dataclass(frozen=True)
class DPPix(Mosaic):
    """DP-Pix: pixelation with differentially private noise.

    `mosaic` with an epsilon, under the name that comparisons know. Equal parameters give equal releases.
    """

    name: ClassVar[str] = "dp-pix"
    source: ClassVar[str] = "Fan 2018, Image Pixelization with Differential Privacy (DP-Pix)"
    claims: ClassVar[str] = "epsilon-differential privacy for images that differ in neighbour_pixels"

    epsilon: float | None = 0.5
    neighbour_pixels: int | None = 16

    def __post_init__(self) -> None:
        if self.epsilon is None:
            raise ValueError("dp-pix adds noise: give an epsilon (without one, the method is mosaic)")
        super().__post_init__()


@dataclass(frozen=True)
class MosaicScheme(Scheme):
    """`Mosaic`'s cells and noise for images of `shape` (c, h, w)."""

    shape: tuple[int, int, int]
    cell: int
    epsilon: float | None
    neighbour_pixels: int | None
    device: torch.device

    def sample_key(self, secret: Secret) -> MosaicKey:
        """A key, with a noise stream if noise is added."""
        return MosaicKey(self, None if self.epsilon is None else secret.derive("mosaic"))

    def load_key(self, state: State) -> MosaicKey:
        """The key that `MosaicKey.state` described."""
        return MosaicKey(self, Secret.load(state["secret"]) if state else None)

    def state(self) -> State:
        """The images' shape, int64."""
        return {"shape": torch.tensor(self.shape, device=self.device)}

    def means(self, samples: torch.Tensor) -> torch.Tensor:
        """Means (n, c, rows, columns) float64 of the images' cells.

        Images are (n, c, h, w); a cell at the edge averages the pixels that it has. Pixels are rounded to multiples of
        2^-24, so that their sums are exact.
        """
        fine = (samples.double().clamp(0, 1) * FINE).round()
        return torch.nn.functional.avg_pool2d(fine, self.cell, ceil_mode=True, divisor_override=1) / (
            FINE * self.pixels().to(fine)
        )

    def pixels(self) -> torch.Tensor:
        """(rows, columns) float64: how many pixels each cell has."""
        rows, columns = (
            torch.tensor([min(self.cell, side - start) for start in range(0, side, self.cell)], dtype=torch.float64)
            for side in self.shape[1:]
        )
        return torch.outer(rows, columns)

    def grid(self, epsilon: float) -> Grid:
        """The grid of means and noise."""
        return Grid.for_noise(float(self._real_scales(epsilon).min()), 1.0)

    def paint(self, cells: torch.Tensor) -> torch.Tensor:
        """Images (n, c, h, w) with every cell in its colour."""
        spread = cells.repeat_interleave(self.cell, dim=2).repeat_interleave(self.cell, dim=3)
        return spread[..., : self.shape[1], : self.shape[2]].contiguous()

    def read(self, painted: torch.Tensor) -> torch.Tensor:
        """The cells (n, c, rows, columns) of painted images."""
        return painted[..., :: self.cell, :: self.cell]

    def scales(self, epsilon: float) -> torch.Tensor:
        """Laplace scale (c, rows, columns) of every cell's mean, float64."""
        scales, step = self._real_scales(epsilon), self.grid(epsilon).step
        if self.neighbour_pixels is None:
            # A mean moves by 1 / step steps at most if that is whole, and to a single other point if it is not.
            more = max(1.0, step)
        else:
            # m_i pixels move a mean of p by at most m_i / (p step) + 1 steps: epsilon (m_i + p step) / m in all.
            m = min(self.neighbour_pixels, self.shape[1] * self.shape[2])
            touched = self.pixels().flatten().sort(descending=True).values[:m]
            more = 1 + ROUNDED * step * float(touched.sum()) / m
        return (scales * more).expand(self.shape[0], -1, -1).to(self.device)

    def _real_scales(self, epsilon: float) -> torch.Tensor:
        """(rows, columns) float64: the noise scales of means that are not rounded."""
        c, h, w = self.shape
        pixels = self.pixels()
        if self.neighbour_pixels is None:
            return torch.full_like(pixels, c * pixels.numel() / epsilon)
        return c * min(self.neighbour_pixels, h * w) / (pixels * epsilon)

    def claim(self) -> PrivacyClaim | None:
        """epsilon for images that differ in `neighbour_pixels`; None without noise."""
        if self.epsilon is None:
            return None
        m = self.neighbour_pixels
        return PrivacyClaim(
            unit="image" if m is None else "pixel",
            units=m or 1,
            epsilon=self.epsilon,
            delta=0.0,
            assumptions=(
                ("Any two images count as neighbours" if m is None else f"Neighbours differ in at most {m} pixels")
                + ", each image is released once, and labels are outside the claim; it holds for the bits published: "
                "means and noise are whole steps of a public grid."
            ),
            basis=(
                "Discrete Laplace mechanism on cell means (Fan 2018), rounding included, for edge cells by the number "
                "of pixels they have."
            ),
        )

    def mechanism(self) -> MosaicMechanism | None:
        """Laplace noise on the cells' means; None without an epsilon."""
        return None if self.epsilon is None else MosaicMechanism(self, self.epsilon)


@dataclass(frozen=True)
class MosaicMechanism(Mechanism):
    """An image's code: its cells' means by channel, released with noise."""

    scheme: MosaicScheme
    epsilon: float

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: by the cell's pixels."""
        return self.scheme.scales(self.epsilon).flatten()

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: the means, on the grid."""
        grid = self.scheme.grid(self.epsilon)
        return grid.values(grid.places(self.scheme.means(data.samples))).flatten(1).double()

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: the painted means."""
        return self.scheme.read(release.samples).flatten(1).double()

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """A black image, and one with `neighbour_pixels` white pixels, cell by cell."""
        scheme = self.scheme
        row = like.take(torch.zeros(1, dtype=torch.int64, device=like.samples.device))
        c, h, w = scheme.shape
        count = h * w if scheme.neighbour_pixels is None else min(scheme.neighbour_pixels, h * w)
        across = -(-w // scheme.cell)
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        by_cell = (y // scheme.cell * across + x // scheme.cell).flatten().argsort(stable=True)
        white = torch.zeros(h * w).index_fill(0, by_cell[:count], 1.0).reshape(h, w).expand(1, c, h, w)
        black = torch.zeros_like(row.samples)
        return ((replace(row, samples=black), replace(row, samples=white.to(black).contiguous())),)


@dataclass(frozen=True)
class MosaicKey(Key):
    """A secret, None without noise; it seeds each call with the rows."""

    scheme: MosaicScheme
    secret: Secret | None

    def release(self, private: Dataset) -> Release:
        """Painted images. Equal rows repeat their noise; other rows get new noise."""
        return paired(self._pixelate(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Painted images, never with the release's noise. Raises ValueError by shape."""
        return self._pixelate(samples, "query")

    def state(self) -> State:
        """The secret, uint8 (32,); without noise nothing is secret."""
        return {} if self.secret is None else {"secret": self.secret.tensor()}

    def _pixelate(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        if tuple(samples.shape[1:]) != self.scheme.shape:
            raise ValueError(f"this key takes images of shape {self.scheme.shape}, got {tuple(samples.shape[1:])}")
        scheme = self.scheme
        means = torch.cat([scheme.means(part) for part in torch.split(samples, ROWS)])
        if scheme.epsilon is None or self.secret is None:
            return by_blocks(means.float(), scheme.paint, ROWS, like=samples)
        grid, scales = scheme.grid(scheme.epsilon), scheme.scales(scheme.epsilon).cpu()
        secret, noise = self.secret.derive(call).bound_to(samples), torch.zeros(means.shape, dtype=torch.int64)
        for number, scale in enumerate(torch.unique(scales).tolist()):  # of whole cells, and of those at the edges
            cells = scales == scale
            noise[:, cells] = grid.laplace(secret.stream(number), scale, (len(means), int(cells.sum())))
        noisy = grid.values(grid.places(means) + noise.to(means.device))
        return by_blocks(noisy, scheme.paint, ROWS, like=samples)
