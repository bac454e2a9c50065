"""Procedural chest X-rays of two hospitals: `synth-nih`, `synth-mimic`, pair `synth-cxr`.

The pictures are drawn, not learned: no person's data stand behind them. See `anatomy` (persons), `study` (films and
findings) and `phantom` (drawing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np

from bench.contract.source import DataError, Scan, Source
from bench.data.synthetic.anatomy import FINDINGS, Hospital, count_studies, draw_person, draw_study
from bench.data.synthetic.film import draw
from bench.progress import report
from bench.randomness import Secret
from bench.validation import at_least

CLINIC = Hospital(
    name="synth-nih", age=48.0, ratio=0.480, devices=0.08, supine=0.25, dose=1.3, gamma=1.12, contrast=1.0,
    border=0.15, marker="L", shift=0.025, angle=0.022, zoom=0.02, sickness=0.0,
)  # fmt: skip
WARD = Hospital(
    name="synth-mimic", age=62.0, ratio=0.467, devices=0.18, supine=0.6, dose=0.9, gamma=0.84, contrast=1.06,
    border=0.3, marker="R", shift=0.028, angle=0.030, zoom=0.025, sickness=0.06,
)  # fmt: skip


@dataclass(frozen=True)
class Phantom(Source):
    """Films of one hospital.

    Args:
        images: Number of studies, at least 1. Study s of person p looks the same whatever it is. Presets draw twice as
            many as are released: three of five people are private.
        seed: Which population; at least 0. `secret`: one that the run secret draws, so that no method can carry it.
    """

    presets: ClassVar[Mapping[str, Mapping[str, int]]] = {"smoke": {"images": 320}, "first-look": {"images": 1200}}

    images: int = 3000
    seed: int | Literal["secret"] = 0

    hospital: ClassVar[Hospital]
    source: ClassVar[str] = "Veil Bench, bench/data/synthetic/film.py"
    shareable: ClassVar[bool] = True
    licence: ClassVar[str] = "generated, public domain (CC0)"
    obtain: ClassVar[str] = "drawn on the spot; nothing to obtain"
    default_size: ClassVar[int | None] = 64
    secret_people: ClassVar[Mapping[str, str]] = {"seed": "secret"}
    _secret: ClassVar[Secret | None] = None

    def __post_init__(self) -> None:
        at_least(1, images=self.images)
        at_least(0, seed=None if isinstance(self.seed, str) else self.seed)

    def under(self, secret: Secret) -> Self:
        """The films of people that a secret draws."""
        bound = replace(self)
        object.__setattr__(bound, "_secret", secret)
        return bound

    def stamp(self, roots: Sequence[Path]) -> str:
        """A mark of the secret population; none of a public one."""
        return "" if self._secret is None else self._secret.commitment()

    def _population(self) -> int:
        if isinstance(self.seed, int):
            return self.seed
        if self._secret is None:
            raise DataError(f"{self.name}[seed=secret] has no people yet: `bench run` draws them under its run secret")
        return int.from_bytes(self._secret.content)

    def scan(self, roots: Sequence[Path], size: int | None) -> Scan:
        """Draw films of `size` (None: 64) pixels a side, at least 32."""
        side, seed = 64 if size is None else size, self._population()
        samples = np.empty((self.images, 1, side, side), dtype=np.uint8)
        labels = np.empty((self.images, len(FINDINGS)), dtype=np.float32)
        subjects: list[str] = []
        attributes: dict[str, list[str]] = {"sex": [], "age": [], "view": []}
        number = 0
        while len(subjects) < self.images:
            person = draw_person(self.hospital, seed, number)
            for visit in range(count_studies(self.hospital, seed, number)):
                row = len(subjects)
                if row == self.images:
                    break
                study = draw_study(self.hospital, person, seed, number, visit)
                samples[row, 0] = draw(person, study, side)
                labels[row] = study.labels
                subjects.append(f"{self.hospital.name}-{number:06d}")
                attributes["sex"].append("F" if person.female else "M")
                attributes["age"].append(str(int(person.age)))
                attributes["view"].append("AP" if study.supine else "PA")
                report(f"draw films of {self.name}", len(subjects), self.images)
            number += 1
        return Scan(
            labels=labels,
            subjects=subjects,
            findings=FINDINGS,
            exclusive=False,
            samples=samples,
            version="phantom 1",
            notes=(
                f"{self.images} films drawn by a procedure; no patient stands behind these images",
                *(["people are drawn under the run secret"] if self.draws_people else []),
            ),
            attributes=attributes,
        )


@dataclass(frozen=True)
class SynthNIH(Phantom):
    """The public hospital: walk-in patients, mostly films from the back, good exposure."""

    name: ClassVar[str] = "synth-nih"
    title: ClassVar[str] = "Synthetic chest X-rays, public hospital"
    public: ClassVar[str] = "synth-mimic"
    origin: ClassVar[str] = "synth-nih"
    hospital: ClassVar[Hospital] = CLINIC


@dataclass(frozen=True)
class SynthMIMIC(Phantom):
    """The private hospital: older patients, more implants, noisy bedside films."""

    name: ClassVar[str] = "synth-mimic"
    title: ClassVar[str] = "Synthetic chest X-rays, private hospital"
    public: ClassVar[str] = "synth-nih"
    origin: ClassVar[str] = "synth-mimic"
    hospital: ClassVar[Hospital] = WARD


@dataclass(frozen=True)
class SynthCXR(SynthMIMIC):
    """The private hospital's films, with the public hospital's as public knowledge."""

    name: ClassVar[str] = "synth-cxr"
    title: ClassVar[str] = "Synthetic chest X-rays, a private and a public hospital"
