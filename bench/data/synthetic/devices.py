"""Metal and plastic in and on the chest phantom: pacemaker, port, sternal wires, monitor leads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bench.data.synthetic.anatomy import Person
from bench.data.synthetic.plane import Plane
from bench.data.synthetic.study import Point, Study


def implants(plane: Plane, person: Person, study: Study) -> np.ndarray:
    """The person's device and the monitor leads of the study, (h, w) attenuation."""
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
    """Nine points of the quadratic curve that leaves `start` and reaches `end` in the direction of `bend`."""
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
    """A can below the left collar bone and a lead through the vein into the right ventricle."""
    x, y = 0.46 + person.device_x, -0.42 + person.device_y
    box = ((plane.x - x) / 0.095) ** 4 + ((plane.y - y) / 0.080) ** 4
    can = plane.edge((1.0 - box) * 0.025, 0.01)
    apex = (1.1 * study.ratio * person.width * person.heart_share, person.heart_height + 0.06)
    vein = ((x - 0.05, y - 0.07), (0.25, -0.60), (0.02, -0.52), (-0.075, -0.40), (-0.10, -0.1), (-0.085, 0.13))
    return 0.55 * can + 0.22 * path(plane, (*vein, (0.03, 0.30), apex), 0.014)


def port(plane: Plane, person: Person) -> np.ndarray:
    """A reservoir below the right collar bone and a catheter that ends in the vena cava."""
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
