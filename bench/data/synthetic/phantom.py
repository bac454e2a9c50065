"""The chest phantom: draws a person's anatomy under a study's pose as attenuation, then exposes it as a film.

Path lengths through soft tissue, air and bone add up to an attenuation in which 1 is a trunk without lungs. Every shape
is a signed distance in continuous coordinates with an edge at least a pixel wide, so that the same study looks the same
at any resolution.
"""

from __future__ import annotations

import numpy as np

from bench.data.synthetic.anatomy import GRID, Person
from bench.data.synthetic.detector import expose
from bench.data.synthetic.devices import implants
from bench.data.synthetic.opacities import atelectasis, consolidation, edema
from bench.data.synthetic.plane import place, sample
from bench.data.synthetic.skeleton import skeleton
from bench.data.synthetic.study import Study
from bench.data.synthetic.thorax import Chest, airways, chest, tissue, vessels

AIR = 0.74


def attenuation(person: Person, study: Study, size: int) -> tuple[np.ndarray, Chest]:
    """What the rays meet, (size, size) float32 of about 0 to 1.6, and the spaces it was drawn in."""
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
    """The film, (size, size) uint8; bright is dense. Raises ValueError for a size below 32."""
    if size < 32:
        raise ValueError(f"size must be at least 32 pixels, got {size}: a chest cannot be drawn in fewer")
    return expose(attenuation(person, study, size)[0], study)
