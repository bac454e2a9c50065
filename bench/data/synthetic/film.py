"""Films of the chest phantom: attenuation, quanta, display curve, collimator, side letter.

Path lengths through soft tissue, air and bone add up to an attenuation in which 1 is a trunk without lungs. Every shape
is a signed distance in continuous coordinates with an edge at least a pixel wide, so that the same study looks the same
at any resolution.
"""

from __future__ import annotations

import numpy as np

from bench.data.synthetic.anatomy import GRAIN, GRID, Person, Study
from bench.data.synthetic.attenuation import (
    Chest,
    airways,
    atelectasis,
    chest,
    consolidation,
    edema,
    film,
    implants,
    place,
    sample,
    skeleton,
    tissue,
    vessels,
)

GLYPHS = {
    "L": ("1....", "1....", "1....", "1....", "1....", "1....", "11111"),
    "R": ("1111.", "1...1", "1...1", "1111.", "1.1..", "1..1.", "1...1"),
}
AIR = 0.74


def shrink(grain: np.ndarray, size: int) -> np.ndarray:
    """Mean grain over each pixel, by running sums, without threads."""
    middle = (np.arange(size) + 0.5) * (GRAIN / size)
    reach = 0.5 * max(1.0, GRAIN / size)
    low, high = np.maximum(middle - reach, 0.0), np.minimum(middle + reach, float(GRAIN))
    width = (high - low).astype(np.float32)[:, None]
    for _ in range(2):
        total = np.zeros((GRAIN + 1, grain.shape[1]), dtype=np.float32)
        np.cumsum(grain, axis=0, out=total[1:])
        grain = ((at(total, high) - at(total, low)) / width).T
    return grain


def at(total: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Rows of a running sum at fractional places (size,)."""
    row = np.minimum(place.astype(np.intp), GRAIN - 1)
    rest = (place - row).astype(np.float32)[:, None]
    value: np.ndarray = total[row] * (1.0 - rest) + total[row + 1] * rest
    return value


def expose(attenuation: np.ndarray, study: Study) -> np.ndarray:
    """The film of an attenuation (size, size): uint8, bright is dense.

    Noise grows with attenuation because fewer quanta arrive: its spread in the logarithm is exp(A / 2) / sqrt(N0).
    """
    size = len(attenuation)
    x, y = film(size)
    seen = attenuation + 0.028 * study.noise * np.exp(0.5 * attenuation - 0.35) * shrink(study.grain, size)
    low = 0.10 - study.bright + study.slope_x * x + study.slope_y * y
    grey = np.clip((seen - low) / (1.22 * study.contrast), 0.0, None) ** study.gamma
    # The shoulder of the display curve: what is dense saturates softly.
    grey = 1.0 - np.log1p(np.exp((0.9 - np.minimum(grey, 4.0)) / 0.1)) / 9.0
    left, right, top, bottom = study.collimator
    seen_part = (x > -left) & (x < right) & (y > -top) & (y < bottom)
    grey = np.maximum(np.clip(grey, 0.0, 1.0), 0.9 * marker(x, y, study))
    value: np.ndarray = np.rint(grey * seen_part * 255.0).astype(np.uint8)
    return value


def marker(x: np.ndarray, y: np.ndarray, study: Study) -> np.ndarray:
    """The lead letter, (size, size) in [0, 1], in dots of 0.016."""
    soft = max(0.012, 2.0 / len(x))
    total = np.zeros_like(x)
    for column, dots in enumerate(zip(*GLYPHS[study.letter], strict=True)):
        rows = np.array([row for row, dot in enumerate(dots) if dot == "1"], dtype=np.float32)
        off = np.abs(y[:, :1] - study.marker[1] - 0.016 * (rows - 3.0))
        high = np.clip(0.5 + (0.008 - off) / soft, 0.0, 1.0).sum(axis=1, keepdims=True)
        aside = np.abs(x[:1] - study.marker[0] - 0.016 * (column - 2))
        total += high * np.clip(0.5 + (0.008 - aside) / soft, 0.0, 1.0)
    np.minimum(total, 1.0, out=total)
    return total


def attenuation(person: Person, study: Study, size: int) -> tuple[np.ndarray, Chest]:
    """Attenuation, (size, size) float32 of about 0 to 1.6, and its spaces."""
    plane = place(size, shift_x=study.shift_x, shift_y=study.shift_y, angle=study.angle, zoom=study.zoom)
    space = chest(plane, person, study)
    fine = sample(person.texture, plane.x, plane.y)
    grain = sample(person.texture[: GRID // 2, : GRID // 2], plane.x, plane.y)
    lung = space.air * (1.0 - 0.9 * space.heart)
    opaque = vessels(plane, person, study, space, grain) + 0.012 * fine + 0.012 * grain
    opaque = opaque + edema(plane, person, study, space, fine)
    opaque = opaque + consolidation(plane, person, study)
    opaque = opaque + atelectasis(plane, study, space)
    depth = lung * (0.80 + 0.20 * (1.0 - np.minimum(space.rim, 1.0) ** 2))
    soft = tissue(plane, person)
    body = np.clip(soft * 3.0, 0.0, 1.0)
    soft = soft * (1.0 + 0.012 * grain) - AIR * depth + np.minimum(opaque, 0.92 * AIR) * depth
    soft = soft + 0.02 * space.heart * space.air - airways(plane, person, space)
    bubble = plane.blob(0.30 * person.width / 0.6, person.dome_left + 0.17, 0.11, 0.07) * (1.0 - space.air)
    soft = soft - 0.22 * person.bubble * bubble * plane.edge(plane.y - space.dome, 0.04)
    return np.maximum(soft, 0.0) + body * skeleton(plane, person, study, space) + implants(plane, person, study), space


def draw(person: Person, study: Study, size: int) -> np.ndarray:
    """The film, (size, size) uint8; bright is dense; ValueError below 32."""
    if size < 32:
        raise ValueError(f"size must be at least 32 pixels, got {size}: a chest cannot be drawn in fewer")
    return expose(attenuation(person, study, size)[0], study)
