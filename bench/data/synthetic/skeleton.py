"""Bones of the chest phantom: ribs, collar bones, shoulder blades, arms and spine."""

from __future__ import annotations

import numpy as np

from bench.data.synthetic.anatomy import Person
from bench.data.synthetic.plane import Plane
from bench.data.synthetic.study import Study
from bench.data.synthetic.thorax import Chest


def skeleton(plane: Plane, person: Person, study: Study, space: Chest) -> np.ndarray:
    """All bones, (h, w) attenuation."""
    bone: np.ndarray = ribs(plane, person, study, space) + girdle(plane, person, study) + spine(plane, person)
    return bone


def ribs(plane: Plane, person: Person, study: Study, space: Chest) -> np.ndarray:
    """Back and front parts of the ribs; all ribs of a kind are one periodic function of the height."""
    spacing = person.rib_spacing * (1.0 + 0.02 * study.breath)
    span = np.minimum(space.span, 1.05)
    start = person.apex + spacing * person.rib_phase + 0.01 * space.side
    back = plane.y - start - person.rib_drop * span**2.5
    start = start + 0.22 * spacing * np.sin(5.0 * plane.y + 6.3 * person.rib_phase)
    front = plane.y - start - person.rib_drop - person.rib_slope * (1.0 - span)
    total = np.zeros_like(span)
    for height, wide, dense, fade in (
        (back, person.rib_width, 1.0, plane.edge(span - 0.1, 0.15)),
        (front, 1.1 * person.rib_width, 0.45, plane.edge(span - 0.5, 0.4)),
    ):
        gap = np.abs(height / spacing - np.floor(height / spacing) - 0.5)
        total = total + dense * fade * plane.edge((0.5 * wide - gap) * spacing, 0.3 * spacing) * (0.75 + gap / wide)
    cage = plane.edge((1.03 - space.span) * person.width, 0.03) * plane.edge(plane.y - person.apex + 0.02, 0.05)
    wall = 0.35 * plane.edge(0.03 - np.abs(space.span - 1.0), 0.05)
    dim = 0.45 + 0.55 * space.air * (1.0 - space.heart)
    bone: np.ndarray = person.rib_density * dim * (total + wall) * cage * plane.edge(0.8 - plane.y, 0.4)
    return bone


def girdle(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """Collar bones, shoulder blades and upper arms."""
    x = np.abs(plane.x - study.yaw)
    reach = np.clip((x - 0.07) / 0.6, 0.0, 1.0)
    height = person.clavicle_height - person.clavicle_rise * reach + person.clavicle_bend * np.sin(6.0 * reach)
    clavicle = plane.line(plane.y - height, 0.056) * plane.edge(x - 0.075, 0.03) * plane.edge(0.70 - x, 0.04)
    top = person.shoulder + 0.24
    head = plane.edge(0.105 - np.hypot(x - person.body + 0.005, plane.y - top), 0.02)
    shaft_x = person.body + 0.04 + 0.35 * (plane.y - top)
    shaft = plane.line(x - shaft_x, 0.09) * plane.edge(plane.y - top, 0.05)
    out = (0.0 if study.supine else 0.09) + 0.62
    blade = plane.line(x - out - 0.10 * (top - plane.y), 0.03) * plane.edge(0.33 - np.abs(plane.y - top - 0.24), 0.1)
    spur = plane.line(plane.y - top + 0.10 - 0.35 * (x - 0.75), 0.04) * plane.edge(x - 0.5, 0.1) * plane.edge(0.8 - x)
    bone: np.ndarray = 0.19 * clavicle + 0.08 * np.maximum(head, shaft) + 0.06 * blade + 0.05 * spur
    return bone


def spine(plane: Plane, person: Person) -> np.ndarray:
    """Vertebrae with their discs and spinous processes."""
    middle = person.bend * np.sin(2.2 * plane.y + 0.5)
    x = plane.x - middle
    phase = plane.y / (0.9 * person.rib_spacing) + person.rib_phase
    gap = np.abs(phase - np.floor(phase) - 0.5)
    column = plane.edge(0.078 - np.abs(x), 0.025) * (0.62 + 0.38 * plane.edge(0.40 - gap, 0.15))
    process = plane.line(x, 0.022) * plane.edge(0.25 - gap, 0.2)
    bone: np.ndarray = (0.09 * column + 0.05 * process) * np.clip(1.1 + plane.y, 0.3, 1.0)
    return bone
