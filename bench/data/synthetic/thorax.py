"""Soft tissue and air of the chest phantom: trunk, lungs, mediastinum, airways and vessels."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

from bench.data.synthetic.anatomy import Person
from bench.data.synthetic.plane import Plane
from bench.data.synthetic.study import Study


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
        floor: y of the top of the diaphragm on the side of `study.side` (a number).
    """

    side: np.ndarray
    across: np.ndarray
    span: np.ndarray
    rim: np.ndarray
    air: np.ndarray
    heart: np.ndarray
    dome: np.ndarray
    shift: float
    floor: float


def chest(plane: Plane, person: Person, study: Study) -> Chest:
    """Lay out lungs, diaphragm and mediastinum."""
    x, y = plane.x, plane.y
    side = np.where(x < 0, np.float32(-1), np.float32(1))
    across = np.abs(x) / (person.width * (1.0 + person.asymmetry * side))
    offset = across - 0.44
    rise = np.clip((person.waist - y) / (person.waist - person.apex), 0.0, 1.5) ** 2.3
    rim = (np.abs(np.where(offset > 0, offset / 0.56, offset / 0.44)) ** 2.3 + rise) ** (1 / 2.3)
    wall = 0.44 + 0.56 * np.maximum(1.0 - rise, 0.0) ** (1 / 2.3)
    lift = 0.15 * study.atelectasis
    right = person.dome_right + 0.055 * study.breath - (lift if study.side < 0 else 0.0)
    left = person.dome_left + 0.055 * study.breath - (lift if study.side > 0 else 0.0)
    reach = across - 0.45
    fall = np.where(reach > 0, person.dome_fall * (reach / 0.55) ** 2, 0.35 * person.dome_fall * (reach / 0.45) ** 2)
    dome = np.where(x < 0, np.float32(right), np.float32(left)) + fall
    air = plane.edge((1.0 - rim) * (0.56 * person.width), 0.035) * plane.edge(dome - y, 0.02)
    shift = study.side * 0.08 * study.atelectasis + study.yaw
    heart = mediastinum(plane, person, study, shift)
    floor = right if study.side < 0 else left
    return Chest(side, across, across / wall, rim, air, heart, dome, shift, floor)


def mediastinum(plane: Plane, person: Person, study: Study, shift: float) -> np.ndarray:
    """Heart, great vessels and aortic knob, (h, w) in [0, 1]; the heart is `study.ratio` of the thorax wide.

    Both borders are smooth functions of the height: on the left knob, pulmonary artery and ventricle, on the right vena
    cava and atrium. The fourth powers add smoothly, and the widest place is as wide as the ratio says.
    """
    y = plane.y
    whole = 2.0 * study.ratio * person.width
    left, right = (
        max((share * whole) ** 4 - root**4, 0.0) ** 0.25
        for share, root in ((person.heart_share, person.stem), (1.0 - person.heart_share, person.stem + 0.01))
    )
    low = y - person.heart_height - 0.03 * study.breath
    ventricle = left * np.exp(
        -(np.abs(low / np.where(low < 0, np.float32(person.heart_length), np.float32(0.42))) ** 2.4)
    )
    atrium = right * np.exp(-(np.abs((low + 0.04) / 0.36) ** 2.6))
    knob = person.knob_size * np.exp(-(((y - person.knob_height) / 0.085) ** 2))
    artery = 0.05 * np.exp(-(((y - person.hilum_height + 0.06) / 0.10) ** 2))
    root = person.stem + 0.10 * np.clip(-0.62 - y, 0.0, 0.3)
    left_border = ((root + knob + artery) ** 4 + ventricle**4) ** 0.25
    right_border = ((root + 0.01) ** 4 + atrium**4) ** 0.25
    x = plane.x - shift
    drawn: np.ndarray = plane.edge(left_border - x, 0.045) * plane.edge(right_border + x, 0.045)
    return drawn


def tissue(plane: Plane, person: Person) -> np.ndarray:
    """Trunk, neck, shoulders, arms and breasts as if there were no lungs, as attenuation."""
    x, y = np.abs(plane.x), plane.y
    half = person.body + 0.06 * np.clip(0.1 - y, 0.0, 0.5) - 0.03 * np.clip(y, 0.0, 1.0)
    ratio = np.clip(x / half, 0.0, 1.0)
    neck = np.exp(-((x / person.neck) ** 6))
    roof = person.shoulder + 0.16 * x * x - 0.26 * np.exp(-((x / 0.40) ** 2)) - 1.2 * neck
    depth = np.clip((y - person.shoulder + 0.20) / 1.1, 0.0, 1.0)
    body = plane.edge(half - x, 0.03) * plane.edge(y - roof, 0.04)
    body = body * (1.0 - 0.99 * ratio**2.4) ** 0.55 * (0.60 + 0.55 * depth)
    body = body * (0.40 + 0.60 * np.clip((y - roof) / 0.26, 0.0, 1.0) ** 0.6)
    arm_x, arm_y = person.body + 0.03, person.shoulder + 0.26
    along = np.clip((0.35 * (x - arm_x) + y - arm_y) / 1.12, 0.0, 1.4)
    limb = np.hypot(x - arm_x - 0.35 * along, y - arm_y - along) / 0.19
    total = person.thickness * np.maximum(body, 0.52 * np.sqrt(np.clip(1.0 - limb * limb, 0.0, 1.0)))
    if person.breast > 0:
        drop = np.hypot((x - 0.40) / 0.30, (y - 0.22 - 0.08 * person.breast) / (0.24 + 0.05 * person.breast))
        lower = 0.25 + 0.75 * np.clip((y + 0.1) / 0.5, 0.0, 1.0)
        total = total + 0.09 * person.breast * plane.edge((1.0 - drop) * 0.25, 0.03) * lower
    drawn: np.ndarray = total
    return drawn


def airways(plane: Plane, person: Person, space: Chest) -> np.ndarray:
    """Trachea and main bronchi: the attenuation their air saves."""
    fork = person.knob_height + 0.12
    middle = 0.6 * space.shift - 0.012
    tube = plane.line(plane.x - middle, 0.075) * plane.edge(fork - plane.y, 0.04)
    right = plane.stroke((middle, fork), (middle - 0.13, fork + 0.14), 0.045)
    left = plane.stroke((middle, fork), (middle + 0.17, fork + 0.12), 0.04)
    drawn: np.ndarray = 0.15 * tube + 0.07 * np.maximum(right, left)
    return drawn


def vessels(plane: Plane, person: Person, study: Study, space: Chest, grain: np.ndarray) -> np.ndarray:
    """Pulmonary vessels that leave the hila and branch towards the wall, thicker in heart failure; opacity of air."""
    root_x = space.shift + 0.16 * space.side
    dx, dy = (plane.x - root_x) * space.side, plane.y - person.hilum_height - 0.02 * space.side
    far = np.hypot(dx + 0.04, dy)
    bend = 0.30 * np.sin(6.0 * far + 6.3 * person.twist) + 0.24 * grain * np.minimum(1.5 * far, 1.0)
    angle = np.arctan2(dy, dx + 0.04) + bend
    phase = 2.0 * pi * person.twist + 0.7 * space.side
    trunks = np.maximum(np.cos(person.branches * angle + phase), 0.0) ** 4 * np.exp(-far / 0.20)
    twigs = np.maximum(np.cos(2.3 * person.branches * angle + phase + 5.0 * far), 0.0) ** 3 * np.exp(-far / 0.45)
    strength = person.vessels * (1.0 + 0.5 * study.edema) * np.clip(1.0 + 0.5 * grain, 0.3, 1.7)
    lower = np.clip((far - 0.04) / 0.15, 0.0, 1.0) * (1.0 + 0.5 * np.clip(dy, -0.5, 0.5))
    hilum = np.exp(-((dx / 0.085) ** 2) - (dy / 0.13) ** 2)
    drawn: np.ndarray = strength * ((2.2 * trunks + 1.5 * twigs) * lower + 5.0 * hilum)
    return drawn
