"""Throughput: how many images a second a key releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import TimingEvidence
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class Throughput(Metric[TimingEvidence]):
    """Images released a second, median repeat, with the interquartile range."""

    name: ClassVar[str] = "throughput"
    unit: ClassVar[str] = "images/s"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "measured by the harness after warm-up, device synchronised"
    column: ClassVar[Column] = Column(
        title="Images per second",
        meaning="How many images the method releases in a second on the device named beside it, after warm-up; "
        "figures from different devices do not compare.",
        group="Cost",
        order=5,
    )

    def __call__(self, evidence: TimingEvidence) -> Score:
        """Median and quartiles of images / seconds."""
        rates = evidence.images / torch.tensor(evidence.seconds, dtype=torch.float64)
        low, middle, high = torch.quantile(rates, torch.tensor((0.25, 0.5, 0.75), dtype=torch.float64)).tolist()
        return Score(middle, low, high, len(rates), note="interquartile range of the repeats")
