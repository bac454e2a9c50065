"""Reconstruction: likeness beyond the mean image, and identity in pixels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import ReconstructionEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import central, draw_weights, name_of, units_of
from bench.statistics.confidence_intervals import never_certain, with_interval
from bench.statistics.pair_statistics import one_sided
from bench.types import Column, Metric, Replicates, Score

DRAWS = 200
UNKNOWN = "no p: too few people with equally many images to exchange"


def _over_people(evidence: ReconstructionEvidence, figures: torch.Tensor, scale: Literal["plain", "share"]) -> Score:
    """Mean of figures (keys, n), with interval over people and keys."""
    n = figures.shape[1]
    score = Score(float(figures.mean()), None, None, n)
    people = units_of(evidence.subjects, n)
    if people < 2:
        return replace(score, note="no interval: all rows are of one person")
    weights = draw_weights(evidence.subjects, n, DRAWS, seed=derive(evidence.seed, "reconstruction"))
    drawn = figures @ (weights / weights.sum(dim=1, keepdim=True)).double().T
    replicates = Replicates(
        figures.mean(dim=1).tolist(), drawn.tolist(), float(min(people, DRAWS) - 1), name_of(weights), scale
    )
    return with_interval(score, replicates, over="people")


@dataclass(frozen=True)
class ReconstructionSSIM(Metric[ReconstructionEvidence]):
    """SSIM of reconstructions beyond that of the mean image."""

    name: ClassVar[str] = "reconstruction-ssim"
    unit: ClassVar[str] = "SSIM"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Wang et al. 2004, equation 13; against the mean image"
    column: ClassVar[Column] = Column(
        title="Reconstruction, SSIM gained",
        meaning="How much more the image that Eve rebuilds from a released row resembles the raw one (SSIM) than the "
        "mean image does, which is her guess without the release.",
        group="Other attack figures: weakest",
        digits=3,
        chance="0 or less",
        order=34,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: ReconstructionEvidence) -> Score:
        """Mean gain in SSIM over the mean image.

        Parts: SSIM, MS-SSIM and PSNR (dB) of reconstructions, of the mean image and of the nearest public image, and
        the gains over both. The interval is over people and keys. Null and p: people with equally many rows exchange
        their reconstructions, under the first key, 99 times. The null is the figure moved by what that changes.
        """
        main = evidence.likeness["SSIM"]
        score = _over_people(evidence, main.rebuilt - main.mean, "plain")
        parts = {}
        for name, part in evidence.likeness.items():
            parts[name] = _over_people(evidence, part.rebuilt, "plain")
            for guess, figures in (("the mean image", part.mean), ("the nearest public image", part.nearest)):
                parts[f"{name} of {guess}"] = Score(float(figures.mean()), None, None, len(figures))
                parts[f"{name} beyond {guess}"] = _over_people(evidence, part.rebuilt - figures, "plain")
        if not len(main.exchanged):
            return replace(score, parts=parts, note=f"{score.note}; {UNKNOWN}; MS-SSIM of {evidence.scales} scales")
        true, others = float(main.exchanged[0]), main.exchanged[1:]
        moved = score.value + others - true
        low, high = central(moved)
        note = f"{score.note}; MS-SSIM of {evidence.scales} scales"
        return replace(
            score, null=float(moved.mean()), null_low=low, null_high=high,
            p=one_sided(others, true, better="lower"), sides=1, parts=parts, note=note,
        )  # fmt: skip


@dataclass(frozen=True)
class ReconstructionReID(Metric[ReconstructionEvidence]):
    """ReID AUC of reconstructions against all raw images by pixels."""

    name: ClassVar[str] = "reconstruction-reid"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Packhäuser et al. 2022 (re-identification), on reconstructions"
    column: ClassVar[Column] = Column(
        title="Reconstruction identified",
        meaning="The probability that the image that Eve rebuilds from a released row is nearer, in pixels, to its own "
        "raw image than to another one.",
        group="Other attack figures: weakest",
        digits=3,
        chance="0.5",
        order=36,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: ReconstructionEvidence) -> Score:
        """Mean over rows and keys; ties count half. Part: top-1.

        The interval is over people and keys. Null and p: people with equally many rows exchange their raw images.
        """
        people = units_of(evidence.subjects, evidence.places.shape[1])
        score = never_certain(_over_people(evidence, evidence.places, "share"), people)
        first = never_certain(_over_people(evidence, evidence.first, "share"), people)
        parts = {"top-1": replace(first, null=1 / evidence.first.shape[1])}
        if not len(evidence.exchanged):
            return replace(score, null=0.5, parts=parts, note=f"{score.note}; {UNKNOWN}")
        low, high = central(evidence.exchanged[1:])
        p = one_sided(evidence.exchanged[1:], float(evidence.exchanged[0]), better="lower")
        return replace(score, null=0.5, null_low=low, null_high=high, p=p, sides=1, parts=parts)
