"""Soft tissue and air of the chest phantom: trunk, lungs, mediastinum, airways and vessels."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin, sqrt

import numpy as np

from bench.data.anatomy import Person
from bench.data.plane import Plane
from bench.data.study import Study


@dataclass(frozen=True, eq=False)
class Chest:
    """The spaces of the thorax on a plane, all (h, w) float32; what is drawn later refers to them.

    Args:
        side: -1 on the patient's right, 1 on the left.
        across: 0 at the midline, 1 at the chest wall of the widest level.
        span: 0 at the midline, 1 at the chest wall of the same level.
        rim: 0 in the middle of a lung, 1 at its wall.
        air: In [0, 1], the lungs as if there were no heart.
        heart: In [0, 1], heart and great vessels.
        dome: y of the diaphragm at each column.
        shift: How far the mediastinum stands to a side, in patient units (a number).
    """

    side: np.ndarray
    across: np.ndarray
    span: np.ndarray
    rim: np.ndarray
    air: np.ndarray
    heart: np.ndarray
    dome: np.ndarray
    shift: float


def chest(plane: Plane, person: Person, study: Study) -> Chest:
    """Lay out lungs, diaphragm and mediastinum."""
    x, y = plane.x, plane.y
    side = np.where(x < 0, np.float32(-1), np.float32(1))
    across = np.abs(x) / (person.width * (1.0 + person.asymmetry * side))
    offset = across - 0.44
    rise = np.clip((person.waist - y) / (person.waist - person.apex), 0.0, 1.5) ** 2.3
    rim = (np.abs(np.where(offset > 0, offset / 0.56, offset / 0.44)) ** 2.3 + rise) ** (1 / 2.3)
    wall = 0.44 + 0.56 * np.maximum(1.0 - rise, 0.0) ** (1 / 2.3)
    lift = 0.10 * study.atelectasis
    right = person.dome_right + 0.055 * study.breath - (lift if study.side < 0 else 0.0)
    left = person.dome_left + 0.055 * study.breath - (lift if study.side > 0 else 0.0)
    reach = across - 0.45
    fall = np.where(reach > 0, person.dome_fall * (reach / 0.55) ** 2, 0.35 * person.dome_fall * (reach / 0.45) ** 2)
    dome = np.where(x < 0, np.float32(right), np.float32(left)) + fall
    air = plane.edge((1.0 - rim) * (0.56 * person.width), 0.02) * plane.edge(dome - y, 0.02)
    shift = study.side * 0.06 * study.atelectasis + study.yaw
    return Chest(side, across, across / wall, rim, air, mediastinum(plane, person, study, shift), dome, shift)


def mediastinum(plane: Plane, person: Person, study: Study, shift: float) -> np.ndarray:
    """Heart, great vessels and aortic knob, (h, w) in [0, 1]. The heart is `study.ratio` of the thorax wide."""
    half = study.ratio * person.width
    tilt, aspect = person.heart_tilt, person.heart_aspect
    long = half / sqrt(cos(tilt) ** 2 + (aspect * sin(tilt)) ** 2)
    x = plane.x - shift
    dx, dy = x - 2.0 * person.heart_offset * half, plane.y - person.heart_height - 0.03 * study.breath
    along, aside = (dx * cos(tilt) + dy * sin(tilt)) / long, (dy * cos(tilt) - dx * sin(tilt)) / (aspect * long)
    heart = plane.edge((1.0 - np.sqrt(along * along + aside * aside)) * (aspect * long), 0.025)
    trunk = plane.edge(0.105 + 0.035 * (plane.y + 0.25) ** 2 - np.abs(x - 0.005), 0.03)
    knob = plane.edge(person.knob_size - np.hypot(x - 0.075, plane.y - person.knob_height), 0.02)
    artery = plane.edge(0.085 - np.hypot(x - 0.105, 0.7 * (plane.y - person.hilum_height + 0.06)), 0.04)
    return np.maximum(np.maximum(heart, trunk), np.maximum(knob, artery))


def tissue(plane: Plane, person: Person) -> np.ndarray:
    """Trunk, neck, shoulders, arms and breasts as if there were no lungs, as attenuation."""
    x, y = np.abs(plane.x), plane.y
    half = person.body + 0.05 * np.clip(0.2 - y, 0.0, 0.5) - 0.02 * np.clip(y, 0.0, 1.0)
    ratio = np.clip(x / half, 0.0, 1.0)
    roof = person.shoulder - 0.30 * np.exp(-((x / 0.42) ** 2)) - 1.2 * np.exp(-((x / person.neck) ** 6))
    depth = np.clip((y - roof) / 0.55, 0.0, 1.0)
    body = plane.edge(half - x, 0.03) * plane.edge(y - roof, 0.03)
    body = body * (1.0 - 0.97 * ratio * ratio) ** 0.25 * (0.45 + 0.55 * np.sqrt(depth))
    arm_x, arm_y = person.body + 0.04, person.shoulder + 0.17
    along = np.clip((0.35 * (x - arm_x) + y - arm_y) / 1.12, 0.0, 1.4)
    limb = np.hypot(x - arm_x - 0.35 * along, y - arm_y - along) / 0.19
    total = person.thickness * np.maximum(body, 0.62 * np.sqrt(np.clip(1.0 - limb * limb, 0.0, 1.0)))
    if person.breast > 0:
        drop = np.hypot((x - 0.36) / 0.27, (y - 0.22 - 0.08 * person.breast) / (0.24 + 0.05 * person.breast))
        lower = 0.4 + 0.6 * np.clip(y / 0.4, 0.0, 1.0)
        total = total + 0.11 * person.breast * plane.edge((1.0 - drop) * 0.25, 0.03) * lower
    return total


def airways(plane: Plane, person: Person, space: Chest) -> np.ndarray:
    """Trachea and main bronchi: the attenuation their air saves."""
    fork = person.knob_height + 0.12
    middle = 0.6 * space.shift - 0.012
    tube = plane.line(plane.x - middle, 0.075) * plane.edge(fork - plane.y, 0.04)
    right = plane.stroke((middle, fork), (middle - 0.13, fork + 0.14), 0.045)
    left = plane.stroke((middle, fork), (middle + 0.17, fork + 0.12), 0.04)
    return 0.15 * tube + 0.07 * np.maximum(right, left)


def vessels(plane: Plane, person: Person, study: Study, space: Chest, grain: np.ndarray) -> np.ndarray:
    """Pulmonary vessels that leave the hila and branch towards the wall, thicker in heart failure; opacity of air."""
    root_x = space.shift + 0.17 * space.side
    dx, dy = plane.x - root_x, plane.y - person.hilum_height - 0.02 * space.side
    far = np.hypot(dx, dy)
    angle = np.arctan2(dy, dx * space.side) + 0.25 * grain * np.minimum(2.0 * far, 1.0)
    turns = person.branches
    phase = 2.0 * pi * person.twist + 0.7 * space.side
    trunks = np.maximum(np.cos(turns * angle + phase), 0.0) ** 3 * np.exp(-far / 0.22)
    twigs = np.maximum(np.cos(2.0 * turns * angle + phase + 5.0 * far), 0.0) ** 3 * np.exp(-far / 0.40)
    strength = person.vessels * (1.0 + 1.6 * study.edema)
    hilum = np.exp(-((dx / 0.075) ** 2) - (dy / 0.12) ** 2)
    return strength * (2.2 * trunks + 1.6 * twigs * np.minimum(4.0 * far, 1.0) + 3.6 * hilum)
