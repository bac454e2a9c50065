"""X-ray attenuation of the chest phantom: soft tissue, air, bones, findings, devices.

`Plane` holds the coordinates and draws soft edges at any resolution. Findings inside the lungs replace a share of air;
cardiomegaly is drawn by `mediastinum`, the volume loss of atelectasis by `chest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin

import numpy as np

from bench.data.synthetic.anatomy import Person, Point, Study


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
        """Smooth step from 0 to 1, over `soft` or a pixel."""
        ramp = np.clip(inside / hypot(soft, 1.25 * self.pixel) + 0.5, 0.0, 1.0)
        return ramp * ramp * (3.0 - 2.0 * ramp)

    def line(self, distance: np.ndarray, width: float) -> np.ndarray:
        """A bar around `distance` 0; fainter, not narrower, below a pixel."""
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
    """Coordinates of pixel centres, two (size, size) float32 in (-1, 1)."""
    ticks = ((np.arange(size, dtype=np.float32) + 0.5) * (2.0 / size) - 1.0).astype(np.float32)
    x, y = np.meshgrid(ticks, ticks)
    return x, y


def place(size: int, *, shift_x: float, shift_y: float, angle: float, zoom: float) -> Plane:
    """The plane of a shifted, turned and magnified patient, (size, size) pixels."""
    x, y = film(size)
    x, y = (x - shift_x) / zoom, (y - shift_y) / zoom
    return Plane(x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle), 2.0 / size / zoom)


def sample(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Smooth values at (x, y) of a grid over [-1.3, 1.3]^2."""
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


@dataclass(frozen=True, eq=False)
class Chest:
    """The spaces of the thorax on a plane, all (h, w) float32.

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
    """Heart (`study.ratio` wide), great vessels and aortic knob, in [0, 1].

    Both borders are smooth functions of the height: fourth powers add smoothly.
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
    """Attenuation of trunk, neck, shoulders, arms and breasts, without lungs."""
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
    """Opacity of pulmonary vessels, from hila to wall, thicker in heart failure."""
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


def skeleton(plane: Plane, person: Person, study: Study, space: Chest) -> np.ndarray:
    """All bones, (h, w) attenuation."""
    bone: np.ndarray = ribs(plane, person, study, space) + girdle(plane, person, study) + spine(plane, person)
    return bone


def ribs(plane: Plane, person: Person, study: Study, space: Chest) -> np.ndarray:
    """Back and front ribs; each kind is one periodic function of height."""
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


def edema(plane: Plane, person: Person, study: Study, space: Chest, grain: np.ndarray) -> np.ndarray:
    """Haze at hila and bases, thick interstitium, Kerley B lines."""
    if study.edema == 0:
        return np.zeros_like(grain)
    x = np.abs(plane.x - space.shift)
    haze = np.exp(-(((x - 0.2) / 0.20) ** 2) - ((plane.y - person.hilum_height - 0.12) / 0.34) ** 2)
    base = 0.45 / (1.0 + np.exp(-(plane.y - 0.15) / 0.12))
    lines = np.cos(2.0 * pi * plane.y / 0.065 + 3.0 * space.across) ** 4 * plane.edge(space.span - 0.84, 0.1)
    lines = lines * plane.edge(plane.y - 0.02, 0.15)
    share: np.ndarray = study.edema * ((haze + base) * (0.15 + 0.04 * grain) + 0.09 * lines)
    return share


def consolidation(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """One or two fluffy opacities without borders of their own."""
    if study.consolidation == 0:
        return np.zeros_like(plane.x)
    total = np.zeros_like(plane.x)
    ragged = sample(study.fluff, plane.x, plane.y)
    for focus in (study.focus, study.second):
        if focus is not None:
            x, y, size = focus
            reach = size * (0.7 + 0.5 * study.consolidation)
            far = np.hypot(plane.x - x * person.width, 0.85 * (plane.y - y)) / reach
            total = total + 1.0 / (1.0 + np.exp(np.minimum(7.0 * (far - 0.85 - 0.18 * ragged), 30.0)))
    share: np.ndarray = (0.24 + 0.44 * study.consolidation) * np.minimum(total, 1.0) * (0.9 + 0.1 * ragged)
    return share


def atelectasis(plane: Plane, study: Study, space: Chest) -> np.ndarray:
    """Plates above the diaphragm of the collapsed side, and crowding below them."""
    if study.atelectasis == 0:
        return np.zeros_like(plane.x)
    total = np.zeros_like(plane.x)
    thin = 0.022
    seen = hypot(thin, 0.5 * plane.pixel)
    for height, tilt, length in study.plates:
        x, y = 0.41 * study.side + 0.05, space.floor - height
        dx, dy = plane.x - x, plane.y - y
        along, aside = dx * cos(tilt) + dy * sin(tilt), dy * cos(tilt) - dx * sin(tilt) + 0.6 * dx * dx
        total = total + np.exp(-((along / length) ** 4) - (aside / seen) ** 2)
    near = np.exp(-np.maximum(space.dome - plane.y, 0.0) / 0.10) * (space.side == study.side)
    share: np.ndarray = (0.1 + 0.9 * study.atelectasis) * (0.58 * thin / seen * np.minimum(total, 1.0) + 0.32 * near)
    return share


def implants(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """Attenuation (h, w) of the person's device and the study's monitor leads."""
    total = np.zeros_like(plane.x)
    for start, bend, end in study.leads:
        total = np.maximum(total, 0.13 * path(plane, curve(start, bend, end), 0.012))
        total = np.maximum(total, 0.22 * plane.edge(0.026 - np.hypot(plane.x - end[0], plane.y - end[1])))
    if person.device == "pacemaker":
        total += pacemaker(plane, person, study)
    elif person.device == "port":
        total += port(plane, person)
    elif person.device == "wires":
        total += wires(plane, person, study)
    return total


def curve(start: Point, bend: Point, end: Point) -> tuple[Point, ...]:
    """Nine points of the quadratic Bezier curve of `start`, `bend`, `end`."""
    points = []
    for step in range(9):
        t = step / 8
        near, middle, far = (1 - t) ** 2, 2 * t * (1 - t), t * t
        points.append(
            (near * start[0] + middle * bend[0] + far * end[0], near * start[1] + middle * bend[1] + far * end[1])
        )
    return tuple(points)


def path(plane: Plane, points: tuple[Point, ...], width: float) -> np.ndarray:
    """A bar along a chain of points, in [0, 1]."""
    total = np.zeros_like(plane.x)
    for start, end in pairwise(points):
        total = np.maximum(total, plane.stroke(start, end, width))
    return total


def pacemaker(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """Can below the left collar bone, lead into the right ventricle."""
    x, y = 0.46 + person.device_x, -0.42 + person.device_y
    box = ((plane.x - x) / 0.095) ** 4 + ((plane.y - y) / 0.080) ** 4
    can = plane.edge((1.0 - box) * 0.025, 0.01)
    apex = (1.1 * study.ratio * person.width * person.heart_share, person.heart_height + 0.06)
    vein = ((x - 0.05, y - 0.07), (0.25, -0.60), (0.02, -0.52), (-0.075, -0.40), (-0.10, -0.1), (-0.085, 0.13))
    return 0.55 * can + 0.22 * path(plane, (*vein, (0.03, 0.30), apex), 0.014)


def port(plane: Plane, person: Person) -> np.ndarray:
    """Reservoir below the right collar bone, catheter to the vena cava."""
    x, y = -0.42 + person.device_x, -0.40 + person.device_y
    ring = plane.line(np.hypot(plane.x - x, plane.y - y) - 0.045, 0.026)
    line = ((x, y - 0.04), (x + 0.08, -0.62), (-0.2, -0.70), (-0.08, -0.55), (-0.085, -0.12))
    return 0.40 * ring + 0.14 * path(plane, line, 0.014)


def wires(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """Six wire loops around the breast bone."""
    total = np.zeros_like(plane.x)
    for loop in range(6):
        y = -0.50 + 0.135 * loop + 0.3 * person.device_y
        wobble = 0.012 * ((loop * 7) % 3 - 1)
        far = np.hypot((plane.x - study.yaw - wobble) * 0.75, plane.y - y)
        total = np.maximum(total, plane.line(far - 0.018, 0.012))
    return 0.30 * total
