"""The plane a chest phantom is drawn on: coordinates, soft edges and smooth random fields, at any resolution."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, hypot, sin

import numpy as np


@dataclass(frozen=True, eq=False)
class Plane:
    """Patient coordinates of every pixel.

    Args:
        x, y: (size, size) float32, patient units; x grows towards the patient's left, y downwards.
        pixel: Side of a pixel in patient units.
    """

    x: np.ndarray
    y: np.ndarray
    pixel: float

    def edge(self, inside: np.ndarray, soft: float = 0.015) -> np.ndarray:
        """1 where the signed distance `inside` is positive, 0 elsewhere, over `soft` or a pixel, whichever is wider."""
        ramp = np.clip(inside / hypot(soft, 1.25 * self.pixel) + 0.5, 0.0, 1.0)
        return ramp * ramp * (3.0 - 2.0 * ramp)

    def line(self, distance: np.ndarray, width: float) -> np.ndarray:
        """A bar of full `width` around `distance` 0; narrower than a pixel it gets fainter, not narrower."""
        seen = hypot(width, 0.8 * self.pixel)
        return (width / seen) * self.edge(0.5 * seen - np.abs(distance), 0.6 * width)

    def blob(self, x: float, y: float, wide: float, high: float) -> np.ndarray:
        """A Gaussian of height 1."""
        return np.exp(-(((self.x - x) / wide) ** 2) - ((self.y - y) / high) ** 2)

    def stroke(self, start: tuple[float, float], end: tuple[float, float], width: float) -> np.ndarray:
        """A straight bar with round ends from `start` to `end`."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = np.clip(((self.x - start[0]) * dx + (self.y - start[1]) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
        return self.line(np.hypot(self.x - start[0] - along * dx, self.y - start[1] - along * dy), width)


def film(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Film coordinates x and y of the pixel centres, (size, size) float32 in (-1, 1)."""
    ticks = ((np.arange(size, dtype=np.float32) + 0.5) * (2.0 / size) - 1.0).astype(np.float32)
    x, y = np.meshgrid(ticks, ticks)
    return x, y


def place(size: int, *, shift_x: float, shift_y: float, angle: float, zoom: float) -> Plane:
    """The plane of a patient who stands shifted, turned and magnified on a film of `size` x `size` pixels."""
    x, y = film(size)
    x, y = (x - shift_x) / zoom, (y - shift_y) / zoom
    return Plane(x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle), 2.0 / size / zoom)


def sample(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Smooth values of a square grid that spans [-1.3, 1.3]^2, at (x, y) in patient units; clamped outside."""
    top = len(grid) - 1
    u = np.clip((x + 1.3) * (top / 2.6), 0.0, top - 1e-3)
    v = np.clip((y + 1.3) * (top / 2.6), 0.0, top - 1e-3)
    column, row = u.astype(np.intp), v.astype(np.intp)
    u, v = u - column.astype(np.float32), v - row.astype(np.float32)
    u, v = u * u * (3.0 - 2.0 * u), v * v * (3.0 - 2.0 * v)
    flat = grid.ravel()
    corner = row * len(grid) + column
    upper = flat[corner] * (1.0 - u) + flat[corner + 1] * u
    lower = flat[corner + len(grid)] * (1.0 - u) + flat[corner + len(grid) + 1] * u
    value: np.ndarray = upper * (1.0 - v) + lower * v
    return value
