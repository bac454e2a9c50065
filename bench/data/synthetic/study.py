"""A study of the chest phantom: one visit of a person to the X-ray room, with pose, exposure and findings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.data.synthetic.anatomy import Hospital, Person, Side
from bench.seeds import derive

Point = tuple[float, float]
FINDINGS = ("Edema", "Consolidation", "Cardiomegaly", "Atelectasis")
GRAIN = 128
# Where the liability for a finding turns into the finding, in standard deviations of the latent sum.
THRESHOLDS = (0.56, 0.58, 0.56)


@dataclass(frozen=True, eq=False)
class Study:
    """One film of one person.

    Args:
        shift_x, shift_y, angle, zoom: Where and how large the patient stands on the film.
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
    """How many studies person `number` has: 1 to 6."""
    rng = np.random.default_rng(derive(seed, hospital.name, "studies", number))
    return 1 + int(rng.choice(6, p=(0.25, 0.22, 0.20, 0.15, 0.10, 0.08)))


def severity(excess: float) -> float:
    """Severity in [0, 1] from the liability above the threshold; faint signs begin a little below it.

    >>> severity(-1.0), round(severity(0.0), 2), severity(2.5)
    (0.0, 0.17, 1.0)
    """
    return float(np.clip((excess + 0.3) / 1.8, 0.0, 1.0))


def draw_study(hospital: Hospital, person: Person, seed: int, number: int, visit: int) -> Study:
    """Study `visit` of person `number`: the same for the same seed, whatever else is drawn."""
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
