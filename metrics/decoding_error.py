"""Decoding error: detail lost to holders of the key (Syfer, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import DecodingEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ONE_PERSON, bootstrap_sums, bounds, units_of
from bench.types import Column, Metric, NotApplicable, Score

DRAWS = 1000


@dataclass(frozen=True)
class DecodingError(Metric[DecodingEvidence]):
    """Share of test images' variance that a key-holder's decoder leaves unexplained."""

    name: ClassVar[str] = "decoding-error"
    unit: ClassVar[str] = "share of variance"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 4.2: mean squared error, here over the variance about the mean image"
    column: ClassVar[Column] = Column(
        title="Decoding error",
        meaning="The share of the variance of test images that a decoder leaves unexplained if somebody with the "
        "key trains it: how much of the image the encoding loses. It says nothing about Eve, who has no "
        "such pairs.",
        group="Released set",
        digits=3,
        chance="1",
        order=5,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: DecodingEvidence) -> Score:
        """Squared error over squared distance from the mean training image.

        The interval bootstraps people. A decoder that knows nothing but that mean has 1. Raises NotApplicable if all
        test images are that mean.
        """
        raw = evidence.raw.double()
        lost = (evidence.decoded.double() - raw).square().flatten(1).sum(dim=1)
        whole = (raw - evidence.mean.double()).square().flatten(1).sum(dim=1)
        if not bool(whole.sum() > 0):
            raise NotApplicable("all test images are the mean image: there is no variance to explain")
        seed = derive(evidence.seed, "decoding-error")
        left, all_of_it = bootstrap_sums(torch.stack((lost, whole), dim=1), evidence.subjects, DRAWS, seed=seed).T
        value, people = float(lost.sum() / whole.sum()), units_of(evidence.subjects, len(raw))
        low, high = bounds(value, left / all_of_it.clamp_min(1e-300), people, least=0.0)
        note = ONE_PERSON if low is None else "95 % bootstrap over people"
        return Score(value, low, high, len(raw), null=1.0, note=note)
