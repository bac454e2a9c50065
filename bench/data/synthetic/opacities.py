"""Findings of the chest phantom inside the lungs, as the share of air that something denser has replaced.

Cardiomegaly is drawn by `thorax.mediastinum`, the volume loss of atelectasis by `thorax.chest`.
"""

from __future__ import annotations

from math import cos, hypot, pi, sin

import numpy as np

from bench.data.synthetic.anatomy import Person
from bench.data.synthetic.plane import Plane, sample
from bench.data.synthetic.study import Study
from bench.data.synthetic.thorax import Chest


def edema(plane: Plane, person: Person, study: Study, space: Chest, grain: np.ndarray) -> np.ndarray:
    """Haze around both hila and at the bases, thickened interstitium, and Kerley B lines at the lower side walls."""
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
