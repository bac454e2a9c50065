"""Class shift: the change of the classes' shares by the release.

Source: CVAE paper, section 4.2, which replicates "the same exact class proportions of the original dataset"; as the
total variation distance. A class of 13 among 2,064 rows hardly moves that distance: its own part shows its loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import SetEvidence
from bench.rows.grouping import label_classes, labelled
from bench.seeds import derive, generator
from bench.statistics.bootstrap import central
from bench.types import Column, Metric, NotApplicable, Score

DRAWS = 999


def shares(labels: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Each label's mean (k,) float64 over rows with that label known.

    Soft labels count by their size.

    Args:
        labels: (n, k), NaN if unknown or withheld.
        weights: (n,) how often each row counts; None stands for once.
    """
    known = ~labels.isnan()
    times = torch.ones(len(labels), dtype=torch.float64) if weights is None else weights.to(torch.float64)
    return (times @ labels.nan_to_num().to(torch.float64)) / (times @ known.to(torch.float64))


@dataclass(frozen=True)
class ClassShift(Metric[SetEvidence]):
    """Total variation distance between the released and the original classes' shares."""

    name: ClassVar[str] = "class-shift"
    unit: ClassVar[str] = "share of rows"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = (
        "Di Salvo et al. 2024 (CVAE paper), section 4.2: class proportions; total variation distance"
    )
    column: ClassVar[Column] = Column(
        title="Classes shift",
        meaning="How far the proportions of the classes in the release are from those of the original rows: half "
        "the sum of their absolute differences.",
        group="Released set",
        digits=3,
        chance="what a random draw of so many rows gives",
        order=20,
    )
    on_request: ClassVar[bool] = True
    for_features: ClassVar[bool] = True

    def __call__(self, evidence: SetEvidence) -> Score:
        """The distance; each class's part is its released minus original share.

        Both sets are counted whole, so that there is no interval. Chance is a draw of as many rows from the original's
        (`p` is two-sided: exact copies of the proportions are closer than chance). Rows with no known label, and
        labels that are unknown or withheld, count for nothing on either side.

        Raises:
            NotApplicable: One of the sets has no labels, or knows none of a finding.
        """
        if evidence.labels is None or evidence.released_labels is None:
            raise NotApplicable("class proportions need labels: the original or the released rows have none")
        original, released = (part[labelled(part)] for part in (evidence.labels, evidence.released_labels))
        if not len(original) or not len(released) or bool((original.isnan().all(0) | released.isnan().all(0)).any()):
            raise NotApplicable("class proportions need rows with a known label of each finding on both sides")
        expected, moved = shares(original), shares(released) - shares(original)
        drawn = _chance(original, len(released), derive(evidence.seed, "class-shift")) - expected
        drawn = drawn.nan_to_num()  # of a finding that is hardly ever known, a draw may hold nothing
        parts = {
            name: _score(moved[k], drawn[:, k], len(released), f"{float(expected[k]):.4g} of the original rows")
            for k, name in enumerate(evidence.findings)
        }
        lost = [name for k, name in enumerate(evidence.findings) if expected[k] > 0 and moved[k] == -expected[k]]
        note = "no interval, for both sets are counted whole; chance: as many rows drawn from the original"
        note += f"; not released at all: {', '.join(lost)}" if lost else ""
        value, null = (_distance(part, exclusive=evidence.exclusive) for part in (moved, drawn))
        return replace(_score(value, null, len(released), note), parts=parts)


def _distance(moved: torch.Tensor, *, exclusive: bool) -> torch.Tensor:
    """The distance (...,) for differences of shares (..., k): classes' total variation.

    Findings that are not exclusive have the classes yes and no each: the mean of their distances.
    """
    return moved.abs().sum(dim=-1) / 2 if exclusive else moved.abs().mean(dim=-1)


def _chance(original: torch.Tensor, m: int, seed: int) -> torch.Tensor:
    """(DRAWS, k): shares in m rows drawn from the labels (n, k)."""
    number, classes = label_classes(original, len(original))
    odds, random = torch.bincount(number).to(torch.float64), generator(seed)
    draws = (torch.multinomial(odds, m, replacement=True, generator=random) for _ in range(DRAWS))
    return torch.stack([shares(classes, torch.bincount(draw, minlength=len(classes))) for draw in draws])


def _score(value: torch.Tensor, null: torch.Tensor, n: int, note: str) -> Score:
    low, high = central(null)
    beyond = min(int((null >= value).sum()), int((null <= value).sum()))
    p = min(1.0, 2 * (1 + beyond) / (1 + len(null)))
    return Score(float(value), None, None, n, null=float(null.mean()), null_low=low, null_high=high, p=p, note=note)
