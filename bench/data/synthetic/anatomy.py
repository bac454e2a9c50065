"""Persons and studies of the chest phantom.

A person is everything about a body that stays the same from one study to the next. A study is one visit to the X-ray
room, with pose, exposure and findings.

Lengths are in patient units: the plane of the film is 2 x 2, x grows towards the patient's left (the right of the
picture), y downwards, and (0, 0) is the middle of the chest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.seeds import derive

Device = Literal["none", "pacemaker", "port", "wires"]
Side = Literal["L", "R"]
GRID = 80
Point = tuple[float, float]
FINDINGS = ("Edema", "Consolidation", "Cardiomegaly", "Atelectasis")
GRAIN = 128
# Where the liability for a finding turns into the finding, in standard deviations of the latent sum.
THRESHOLDS = (0.56, 0.58, 0.56)


@dataclass(frozen=True)
class Hospital:
    """A domain: the patients and the films of a hospital.

    Args:
        name: Part of every seed, so that two hospitals never share a person.
        age: Mean age of adults in years.
        ratio: Mean cardiothoracic ratio.
        devices: Share of persons with a pacemaker, a port or sternal wires.
        supine: Share of films taken from the front (AP) at the bedside.
        dose: Relative number of quanta; less means noisier films.
        gamma: Exponent of the display curve; above 1 darkens.
        contrast: Width of the display curve relative to the range of attenuations; below 1 is harder.
        border: Share of films with visible collimator edges.
        marker: The side letter laid on the film.
        shift, angle, zoom: Spread of position in patient units, of rotation in radians, of relative size.
        sickness: Shift of the liability for all findings, in standard deviations.
    """

    name: str
    age: float
    ratio: float
    devices: float
    supine: float
    dose: float
    gamma: float
    contrast: float
    border: float
    marker: Side
    shift: float
    angle: float
    zoom: float
    sickness: float


@dataclass(frozen=True, eq=False)
class Person:
    """The anatomy of one person.

    Lengths are in patient units, angles in radians, densities in attenuation.

    Args:
        age: In years.
        female: As the anatomy was drawn.
        width: Half the inner width of the thorax.
        apex, waist: Heights of the lung apex and of the widest level.
        asymmetry: Relative difference between the two sides.
        rib_spacing, rib_phase, rib_drop, rib_slope, rib_width, rib_density: The course of ribs: distance of neighbours,
            position of the first, fall of the back part towards the side, fall of the front part towards the middle,
            share of the spacing that is bone, attenuation.
        clavicle_height, clavicle_rise, clavicle_bend: Course of the collar bones.
        ratio: Cardiothoracic ratio in a good breath, seen from the back.
        heart_share, heart_length, heart_height: Share of the heart that lies left of the middle, its length upwards
            from the widest level, and that level.
        stem: Half width of the great vessels above the heart.
        knob_size, knob_height: The aortic knob.
        dome_right, dome_left, dome_fall: Tops of the two diaphragm domes and their fall towards the side.
        hilum_height, vessels, branches, twist: Height of the lung roots, strength, number and phase of vessels.
        body, shoulder, neck, thickness: Half width of the trunk, height of the shoulders, half width of the neck, and
            attenuation of the trunk.
        breast: Size of the breast shadows; 0 for none.
        bend: Sideways bend of the spine.
        bubble: Size of the gas bubble in the stomach; 0 for none.
        device: What was implanted.
        device_x, device_y: Its place relative to the usual one.
        liability: (3,) tendency to edema, consolidation and atelectasis, in standard deviations.
        texture: (GRID, GRID) float32 standard normal: the grain of lungs and soft tissue; a quarter of it, spread
            wide, is their coarse structure.
    """

    age: float
    female: bool
    width: float
    apex: float
    waist: float
    asymmetry: float
    rib_spacing: float
    rib_phase: float
    rib_drop: float
    rib_slope: float
    rib_width: float
    rib_density: float
    clavicle_height: float
    clavicle_rise: float
    clavicle_bend: float
    ratio: float
    heart_share: float
    heart_length: float
    heart_height: float
    stem: float
    knob_size: float
    knob_height: float
    dome_right: float
    dome_left: float
    dome_fall: float
    hilum_height: float
    vessels: float
    branches: int
    twist: float
    body: float
    shoulder: float
    neck: float
    thickness: float
    breast: float
    bend: float
    bubble: float
    device: Device
    device_x: float
    device_y: float
    liability: tuple[float, float, float]
    texture: np.ndarray


def draw_person(hospital: Hospital, seed: int, number: int) -> Person:
    """Person `number` of a hospital; depends on seed, hospital and number only."""
    rng = np.random.default_rng(derive(seed, hospital.name, "person", number))

    def normal(mean: float, spread: float) -> float:
        return mean + spread * float(np.clip(rng.standard_normal(), -2.5, 2.5))

    age = float(np.clip(normal(hospital.age, 15.0), 18.0, 95.0))
    old = (age - 55.0) / 15.0
    female = bool(rng.random() < 0.47)
    fat = normal(0.0, 1.0)
    build = normal(0.0, 1.0)
    ratio = normal(hospital.ratio + 0.006 * old, 0.026)
    heart = (ratio - 0.475) / 0.03
    width = 0.655 + 0.026 * build - (0.02 if female else 0.0) + normal(0.0, 0.016)
    dome = normal(0.47, 0.05) - 0.012 * fat
    implants: tuple[Device, ...] = ("pacemaker", "port", "wires")
    device: Device = "none"
    if rng.random() < hospital.devices:
        device = implants[int(rng.choice(3, p=(0.45, 0.25, 0.30)))]
    return Person(
        age=age,
        female=female,
        width=width,
        apex=normal(-0.76, 0.03),
        waist=normal(0.30, 0.07),
        asymmetry=normal(0.0, 0.02),
        rib_spacing=normal(0.150, 0.011),
        rib_phase=float(rng.random()),
        rib_drop=normal(0.27, 0.06),
        rib_slope=normal(0.50, 0.09),
        rib_width=normal(0.40, 0.05),
        rib_density=normal(0.105 - 0.012 * old, 0.02),
        clavicle_height=normal(-0.60, 0.035),
        clavicle_rise=normal(0.12, 0.05),
        clavicle_bend=normal(0.03, 0.012),
        ratio=ratio,
        heart_share=normal(0.69, 0.04),
        heart_length=normal(0.40, 0.05),
        heart_height=normal(0.33, 0.03),
        stem=normal(0.112 + 0.004 * old, 0.014),
        knob_size=normal(0.060 + 0.014 * old, 0.014),
        knob_height=normal(-0.36, 0.03),
        dome_right=dome,
        dome_left=dome + normal(0.035, 0.03),
        dome_fall=normal(0.22, 0.05),
        hilum_height=normal(-0.08, 0.03),
        vessels=normal(0.055 + 0.003 * heart, 0.012),
        branches=int(rng.integers(8, 14)),
        twist=float(rng.random()),
        body=0.90 + 0.06 * fat + 0.02 * build + normal(0.0, 0.015),
        shoulder=normal(-0.80, 0.05),
        neck=normal(0.185 if female else 0.205, 0.015),
        thickness=1.0 + 0.06 * fat,
        breast=float(np.clip(normal(0.75 + 0.25 * fat, 0.25), 0.2, 1.6)) if female else 0.0,
        bend=normal(0.0, 0.03),
        bubble=float(np.clip(normal(0.5, 0.5), 0.0, 1.2)),
        device=device,
        device_x=normal(0.0, 0.04),
        device_y=normal(0.0, 0.05),
        liability=(0.55 * heart + normal(0.0, 0.65), normal(0.0, 0.7), normal(0.15 * old, 0.7)),
        texture=rng.standard_normal((GRID, GRID), dtype=np.float32),
    )


@dataclass(frozen=True, eq=False)
class Study:
    """One film of one person.

    Args:
        shift_x, shift_y, angle, zoom: Place and size of the patient on the film.
        yaw: How far the middle of the chest is turned off, in patient units.
        breath: Depth of inspiration relative to a good one; below 0 is shallow.
        supine: Taken from the front at the bedside.
        ratio: Cardiothoracic ratio on this film.
        edema, consolidation, atelectasis: Severity in [0, 1]; 0 is none.
        focus: (x, y, size) of the consolidation; x in units of the thorax half width.
        second: A second focus, or None.
        side: -1 when the collapse is on the patient's right, 1 when on the left.
        plates: (height, tilt, length) of each plate of atelectasis.
        gamma, contrast, bright, noise: The display curve and the relative noise.
        slope_x, slope_y: Uneven exposure across the film.
        leads: Start, bend and end of each monitor lead on the chest.
        collimator: Film edges (left, right, top, bottom) in film coordinates; beyond +-1 means not seen.
        letter, marker: The side letter on the film and its (x, y).
        labels: (4,) 1, 0 or NaN for `FINDINGS`.
        grain: (GRAIN, GRAIN) float32 standard normal: the quanta.
        fluff: (GRAIN // 8, GRAIN // 8) float32 standard normal: the ragged shape of opacities.
    """

    shift_x: float
    shift_y: float
    angle: float
    zoom: float
    yaw: float
    breath: float
    supine: bool
    ratio: float
    edema: float
    consolidation: float
    atelectasis: float
    focus: tuple[float, float, float]
    second: tuple[float, float, float] | None
    side: int
    plates: tuple[tuple[float, float, float], ...]
    gamma: float
    contrast: float
    bright: float
    noise: float
    slope_x: float
    slope_y: float
    leads: tuple[tuple[Point, Point, Point], ...]
    collimator: tuple[float, float, float, float]
    letter: Side
    marker: tuple[float, float]
    labels: tuple[float, float, float, float]
    grain: np.ndarray
    fluff: np.ndarray


def count_studies(hospital: Hospital, seed: int, number: int) -> int:
    """Number of studies of person `number`: 1 to 6."""
    rng = np.random.default_rng(derive(seed, hospital.name, "studies", number))
    return 1 + int(rng.choice(6, p=(0.25, 0.22, 0.20, 0.15, 0.10, 0.08)))


def severity(excess: float) -> float:
    """Severity in [0, 1] by the liability above a soft threshold.

    >>> severity(-1.0), round(severity(0.0), 2), severity(2.5)
    (0.0, 0.17, 1.0)
    """
    return float(np.clip((excess + 0.3) / 1.8, 0.0, 1.0))


def draw_study(hospital: Hospital, person: Person, seed: int, number: int, visit: int) -> Study:
    """Study `visit` of person `number`; depends on seed, person and visit only."""
    rng = np.random.default_rng(derive(seed, hospital.name, "study", number, visit))

    def normal(mean: float, spread: float) -> float:
        return mean + spread * float(np.clip(rng.standard_normal(), -2.5, 2.5))

    def uniform(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    supine = bool(rng.random() < hospital.supine)
    breath = normal(-0.5 if supine else 0.0, 0.5)
    ratio = person.ratio * (1.05 if supine else 1.0) - 0.006 * breath + normal(0.0, 0.012)
    excess = [
        liability + hospital.sickness + normal(0.0, 0.75) - threshold
        for liability, threshold in zip(person.liability, THRESHOLDS, strict=True)
    ]
    # Film readers measure the heart but only judge the rest: 0.035 of the ratio weighs like one standard deviation.
    margins = (excess[0], excess[1], (ratio - 0.5) / 0.035, excess[2])
    labels = [float(margin > 0) for margin in margins]
    for finding, margin in enumerate(margins):
        if rng.random() < 0.36 * np.exp(-((margin / 0.3) ** 2)):
            labels[finding] = float("nan")
    lobe = -1 if rng.random() < 0.55 else 1
    border = rng.random() < hospital.border
    rim = [uniform(0.84, 1.1) if border else 2.0 for _ in range(4)]
    leads = tuple(
        ((uniform(-0.8, 0.8), -1.0), (uniform(-0.5, 0.5), uniform(-0.3, 0.2)), (uniform(-0.6, 0.6), uniform(0.2, 0.7)))
        for _ in range(int(rng.integers(1, 3)) if supine and rng.random() < 0.5 else 0)
    )
    return Study(
        shift_x=normal(0.0, hospital.shift),
        shift_y=normal(0.0, hospital.shift),
        angle=normal(0.0, hospital.angle),
        zoom=normal(1.04 if supine else 1.0, hospital.zoom),
        yaw=normal(0.0, 0.02),
        breath=breath,
        supine=supine,
        ratio=ratio,
        edema=severity(excess[0]),
        consolidation=severity(excess[1]),
        atelectasis=severity(excess[2]),
        focus=(lobe * uniform(0.35, 0.72), uniform(-0.42, 0.36), uniform(0.13, 0.22)),
        second=(-lobe * uniform(0.35, 0.72), uniform(-0.3, 0.36), uniform(0.09, 0.16)) if rng.random() < 0.3 else None,
        side=-1 if rng.random() < 0.5 else 1,
        plates=tuple(
            (uniform(0.0, 0.16), uniform(-0.25, 0.25), uniform(0.10, 0.2)) for _ in range(int(rng.integers(1, 4)))
        ),
        gamma=float(np.exp(normal(np.log(hospital.gamma), 0.10))),
        contrast=float(np.exp(normal(np.log(hospital.contrast), 0.06))),
        bright=normal(0.0, 0.025),
        noise=float(np.exp(normal(0.0, 0.25)) / np.sqrt(hospital.dose)),
        slope_x=normal(0.0, 0.025),
        slope_y=normal(0.0, 0.025),
        leads=leads,
        collimator=(rim[0], rim[1], rim[2], rim[3]),
        letter=hospital.marker,
        marker=(uniform(0.72, 0.9), uniform(-0.92, -0.8)),
        labels=(labels[0], labels[1], labels[2], labels[3]),
        grain=rng.standard_normal((GRAIN, GRAIN), dtype=np.float32),
        fluff=rng.standard_normal((GRAIN // 8, GRAIN // 8), dtype=np.float32),
    )
